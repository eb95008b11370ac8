#include "tests/fault/load.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <stdexcept>
#include <utility>

#include "store/denial_cache.h"

namespace sluice::testing {

using namespace std::chrono_literals;
using store::Progress;

namespace {

template <typename Done>
bool wait_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace

struct Load::Thread {
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::redis::RedisStore* redis = nullptr;
  std::unique_ptr<store::Store> store;
  std::vector<std::unique_ptr<Caller>> callers;
  sluice::load::Checker checker;  ///< of this thread's callers
  std::vector<sluice::load::Checker::KeyId> keys;
  std::atomic<bool> ready{false};
  std::thread thread;
};

// Asks, waits for the answer, pauses, and asks again.
class Load::Caller final : public store::Check {
 public:
  Caller(Load& load, Thread& thread, std::size_t first_key)
      : load_(load), thread_(thread), timer_(thread.io), key_(first_key) {
    charge_.limit = &load.limit_;
    charges = {&charge_, 1};
    decisions = {&decision_, 1};
  }

  void ask() {
    if (!load_.asking_) {
      --load_.pending_;
      return;
    }
    key_ = (key_ + 1) % load_.keys_.size();
    charge_.key = load_.keys_[key_];
    asked_ = SystemClock().now();
    const std::int64_t shift = load_.options_.clock_shift.count();
    const Time told{.steady = asked_.steady + shift, .utc = asked_.utc + shift};
    if (thread_.store->check(*this, told) == Progress::answered) complete();
  }

  void complete() override {
    note();
    timer_.expires_after(load_.options_.pause);
    timer_.async_wait([this](boost::system::error_code error) {
      if (!error) ask();
    });
  }

 private:
  void note() {
    const Time now = SystemClock().now();
    const std::int64_t waited = now.steady - asked_.steady;
    std::int64_t longest = load_.longest_;
    while (waited > longest && !load_.longest_.compare_exchange_weak(longest, waited)) continue;
    Count& count = load_.counts_[key_];
    if (decision_.source == Source::redis) {
      ++(admitted ? count.shared : count.denied);
    } else {
      ++(admitted ? count.local : count.failed);
    }
    thread_.checker.note(thread_.keys[key_], charge_.cost, asked_, now, answered());
  }

  [[nodiscard]] sluice::load::Answered answered() const {
    using sluice::load::Answered;
    if (decision_.source == Source::fallback_deny) return Answered::failed;
    if (!admitted) return Answered::denied;
    return decision_.source == Source::redis ? Answered::admitted : Answered::admitted_local;
  }

  Load& load_;
  Thread& thread_;
  boost::asio::steady_timer timer_;
  std::size_t key_;
  store::Charge charge_;
  Decision decision_;
  Time asked_;
};

Load::Load(const Options& options) : options_(options), nodes_(store::redis::make_nodes(options.redis)) {
  limit_.numbers = options.numbers;
  limit_.identity = "fault/user;tb";
  limit_.id = 1;
  limit_.on_store_failure = options.on_store_failure;
  for (std::size_t i = 0; i < options.keys; ++i) {
    keys_.push_back("user-" + std::to_string(i));
    counts_.emplace_back();
  }
  store::redis::RedisOptions redis = options.redis;
  redis.nodes = nodes_;
  for (std::size_t i = 0; i < options.threads; ++i) {
    Thread& thread = *threads_.emplace_back(std::make_unique<Thread>());
    for (const std::string& key : keys_) thread.keys.push_back(thread.checker.key(options.numbers, key));
    metrics::Shard& shard = registry_.add_shard();
    auto created = store::redis::RedisStore::create(thread.io, redis, shard);
    if (!created) throw std::invalid_argument(created.error().message);
    thread.redis = created->get();
    std::unique_ptr<store::Store> primary = *std::move(created);
    if (options.cache_denials) {
      primary = std::make_unique<store::DenialCache>(std::move(primary), 1s, epochs_, shard);
    }
    thread.store = std::make_unique<store::FallbackStore>(std::move(primary), memory_, readiness_, shard);
    for (std::size_t n = 0; n < options.callers; ++n) {
      thread.callers.push_back(std::make_unique<Caller>(*this, thread, n));
    }
    thread.thread = std::thread([&thread] { thread.io.run(); });
  }
}

Load::~Load() {
  (void)stop();
  for (const auto& thread : threads_) {
    boost::asio::post(thread->io, [&thread = *thread] {
      thread.store.reset();
      thread.work.reset();
    });
    thread->thread.join();
  }
}

void Load::start() {
  const bool connected = wait_until([this] {
    bool all = true;
    for (const auto& thread : threads_) {
      boost::asio::post(thread->io, [&thread = *thread] { thread.ready = thread.redis->ready(); });
      all = all && thread->ready;
    }
    return all;
  });
  if (!connected) throw std::runtime_error("no connection to Redis");
  began_ = SystemClock().now();
  asking_ = true;
  for (const auto& thread : threads_) {
    pending_ += thread->callers.size();
    boost::asio::post(thread->io, [&thread = *thread] {
      for (const auto& caller : thread.callers) caller->ask();
    });
  }
}

std::chrono::nanoseconds Load::stop() {
  asking_ = false;
  if (!wait_until([this] { return pending_ == 0; })) throw std::runtime_error("a question was never answered");
  return std::chrono::nanoseconds(SystemClock().now().steady - began_.steady);
}

sluice::load::Checker Load::seen() const {
  sluice::load::Checker all;
  for (const auto& thread : threads_) all.add(thread->checker);
  return all;
}

sluice::load::CheckReport Load::check(const sluice::load::Allowance& allowance) const {
  return seen().report(allowance);
}

bool Load::hear(std::uint64_t answers) const {
  const auto heard = [this] { return sum(&Count::shared) + sum(&Count::denied); };
  const std::uint64_t goal = heard() + answers;
  return wait_until([&] { return heard() >= goal; });
}

bool Load::miss(std::uint64_t answers) const {
  const auto missed = [this] { return sum(&Count::local) + sum(&Count::failed); };
  const std::uint64_t goal = missed() + answers;
  return wait_until([&] { return missed() >= goal; });
}

bool Load::recover() const {
  return wait_until(
      [&] { return std::ranges::none_of(nodes_->servers(), [](const auto& server) { return server.is_failing; }); });
}

std::uint64_t Load::sum(std::atomic<std::uint64_t> Count::* member) const {
  std::uint64_t all = 0;
  for (const Count& count : counts_) all += count.*member;
  return all;
}

}  // namespace sluice::testing
