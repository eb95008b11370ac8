#include "sluice/limiter.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cassert>
#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include "limiter/backend.h"
#include "limiter/call.h"
#include "limiter/redis_options.h"
#include "limiter/verb_call.h"
#include "limiter/wait_for.h"
#include "metrics/metrics.h"
#include "policy/policy.h"
#include "policy/snapshot_holder.h"
#include "store/denial_cache.h"
#include "store/fallback_store.h"
#include "store/memory/memory_store.h"
#include "store/readiness.h"
#include "store/redis/exactness.h"
#include "store/redis/redis_store.h"

namespace sluice {

namespace {

LimiterAnswer::Problem problem_of(limiter::Answer::Problem problem) {
  switch (problem) {
    case limiter::Answer::Problem::empty_domain:
      return LimiterAnswer::Problem::empty_domain;
    case limiter::Answer::Problem::no_descriptors:
      return LimiterAnswer::Problem::no_descriptors;
    case limiter::Answer::Problem::cost_out_of_range:
      return LimiterAnswer::Problem::cost_out_of_range;
    case limiter::Answer::Problem::needs_lease:
      return LimiterAnswer::Problem::needs_lease;
    case limiter::Answer::Problem::none:
    case limiter::Answer::Problem::no_policy:
    case limiter::Answer::Problem::not_enforced:      // it has no bans
    case limiter::Answer::Problem::too_long_to_hold:  // nor leases
      break;
  }
  return LimiterAnswer::Problem::none;
}

LimiterAnswer answer_of(const limiter::Answer& answer) {
  const bool failed = answer.failure != store::Failure::none;
  return {.problem = failed ? LimiterAnswer::Problem::store_failed : problem_of(answer.problem),
          .allowed = answer.allowed,
          .known_domain = answer.known_domain,
          .has_figures = answer.has_figures,
          .decision = answer.decision,
          .limit = answer.deciding == nullptr ? std::string() : answer.deciding->label()};
}

LimiterVerbAnswer answer_of(const limiter::VerbAnswer& answer) {
  LimiterVerbAnswer told{.problem = problem_of(answer.problem),
                         .known_domain = answer.known_domain,
                         .done = answer.any_done && !answer.failed};
  for (const limiter::VerbStatus& status : answer.statuses) {
    LimiterVerbAnswer::Counter& counter = told.descriptors.emplace_back();
    if (status.rule == nullptr) continue;
    const bool failed = status.failure != store::Failure::none;
    counter.found = status.done || failed;
    counter.done = status.done;
    counter.may_be_done = failed && store::may_be_done(status.failure);
    counter.decision = status.decision;
    counter.limit = status.rule->label();
    if (failed) counter.failure = store::to_text(status.failure);
  }
  return told;
}

limiter::CounterVerb verb_of(const LimiterVerb& verb) {
  limiter::CounterVerb told{.reserved = verb.reserved, .actual = verb.actual};
  switch (verb.kind) {
    case LimiterVerb::Kind::refund:
      told.kind = limiter::CounterVerb::Kind::refund;
      break;
    case LimiterVerb::Kind::settle:
      told.kind = limiter::CounterVerb::Kind::settle;
      break;
    case LimiterVerb::Kind::penalize:
      told.kind = limiter::CounterVerb::Kind::penalize;
      break;
    case LimiterVerb::Kind::reset:
      break;
  }
  if (verb.charged_at) {
    told.at = std::chrono::duration_cast<std::chrono::nanoseconds>(verb.charged_at->time_since_epoch()).count();
  }
  return told;
}

template <typename Answer>
Answer unanswered(LimiterAnswer::Problem problem) {
  Answer answer;
  answer.problem = problem;
  return answer;
}

// A request as the policy takes it; views into the caller's.
class Asked {
 public:
  explicit Asked(const LimiterRequest& request) {
    std::size_t count = 0;
    for (const auto& descriptor : request.descriptors) count += descriptor.size();
    entries_.reserve(count);
    for (const auto& descriptor : request.descriptors) {
      const std::size_t first = entries_.size();
      for (const auto& [key, value] : descriptor) entries_.push_back({.key = key, .value = value});
      Descriptor one;
      one.entries = std::span(entries_).subspan(first);
      descriptors_.push_back(one);
    }
    request_ = {.domain = request.domain, .descriptors = descriptors_, .cost = request.cost, .peek = request.peek};
  }
  [[nodiscard]] const Request& request() const { return request_; }

 private:
  std::vector<Entry> entries_;
  std::vector<Descriptor> descriptors_;
  Request request_;
};

}  // namespace

// A check or a verb on its way: the limiter's thread only.
struct Limiter::Pending::Ask : std::enable_shared_from_this<Ask> {
  Ask(Impl& limiter, LimiterRequest what) : impl(limiter), request(std::move(what)) {}
  Ask(const Ask&) = delete;
  Ask& operator=(const Ask&) = delete;
  virtual ~Ask() = default;

  /// Answered: finish() is to be called; pending: it calls Impl::finish() later.
  virtual store::Progress start(const Request& asked, const std::shared_ptr<const policy::Policy>& policy,
                                store::Store& store, Time now, metrics::Shard& metrics) = 0;
  /// Tells what came of it.
  virtual void finish() = 0;
  /// Tells that it was stopped, whether it was started or not.
  virtual void stop() = 0;

  Impl& impl;
  LimiterRequest request;
};

class Limiter::Impl final : public limiter::Backend, public std::enable_shared_from_this<Limiter::Impl> {
 public:
  using Ask = Pending::Ask;

  explicit Impl(const LimiterOptions& options)
      : options_(options), memory_(options.memory_max_keys), reader_(policies_) {
    if (const std::string problems = load(); !problems.empty()) throw std::invalid_argument(problems);
    if (options.redis_url.empty()) return;
    auto created = store::redis::RedisStore::create(io_, limiter::redis_options(options), metrics_);
    if (!created) throw std::invalid_argument(created.error().message);
    std::unique_ptr<store::Store> primary = *std::move(created);
    if (options.redis_denial_cache_max.count() > 0) {
      primary =
          std::make_unique<store::DenialCache>(std::move(primary), options.redis_denial_cache_max, epochs_, metrics_);
    }
    shared_ = std::make_unique<store::FallbackStore>(std::move(primary), memory_, readiness_, metrics_);
    thread_ = std::thread([this] { io_.run(); });
  }

  // All that is pending is answered, then the thread ends.
  void stop() {
    if (!thread_.joinable()) return;
    boost::asio::post(io_, [this] {
      for (const auto& ask : std::exchange(asks_, {})) ask->stop();
      shared_.reset();
      work_.reset();
    });
    thread_.join();
  }

  [[nodiscard]] bool is_shared() const override { return thread_.joinable(); }
  [[nodiscard]] store::Store& memory() override { return memory_; }
  [[nodiscard]] const policy::SnapshotHolder& policies() const override { return policies_; }
  [[nodiscard]] const LimiterOptions& options() const override { return options_; }
  Pending start(std::shared_ptr<limiter::Check> check) override {
    return send(std::make_shared<CheckAsk>(*this, std::move(check)));
  }
  [[nodiscard]] bool ready() {
    if (!is_shared()) return true;
    if (std::this_thread::get_id() == thread_.get_id()) return shared_->ready();
    std::promise<bool> answer;
    boost::asio::post(io_, [&] { answer.set_value(shared_->ready()); });
    return answer.get_future().get();
  }

  std::string load() {
    if (options_.policy_paths.empty() && options_.policy_text.empty()) return "no policy: give a path or a text\n";
    policy::LoadOptions load_options;
    if (!options_.redis_url.empty()) load_options.refuse_limit = store::redis::inexact_in_redis;
    const std::vector<std::filesystem::path> paths(options_.policy_paths.begin(), options_.policy_paths.end());
    policy::Loaded loaded =
        options_.policy_text.empty()
            ? policy::load(paths, load_options)
            : policy::load_texts(std::vector<policy::SourceText>{{"policy", options_.policy_text}}, load_options);
    if (loaded.policy == nullptr) {
      std::string problems;
      for (const policy::Finding& finding : loaded.findings) problems += finding.to_string() + "\n";
      return problems.empty() ? "no policy\n" : problems;
    }
    policies_.set(std::move(loaded.policy));
    epochs_.forget_all();
    return {};
  }

  // In memory, on the caller's thread.
  LimiterAnswer check_here(const LimiterRequest& request) {
    return on_worker<LimiterAnswer>([&](Worker& worker) {
      const Asked asked(request);
      // The memory store answers at once.
      (void)worker.call.start(asked.request(), worker.policy.get(), memory_, clock_.now());
      return answer_of(worker.call.answer());
    });
  }
  LimiterVerbAnswer apply_here(const LimiterRequest& request, const LimiterVerb& verb) {
    return on_worker<LimiterVerbAnswer>([&](Worker& worker) {
      const Asked asked(request);
      limiter::VerbCall call(worker, worker.metrics);
      (void)call.start(asked.request(), verb_of(verb), worker.policy.get(), memory_, clock_.now());
      return answer_of(call.answer());
    });
  }

  std::shared_ptr<Ask> make(LimiterRequest request, Done done) {
    return std::make_shared<AskOf<limiter::Call, LimiterAnswer>>(*this, std::move(request), std::move(done));
  }
  std::shared_ptr<Ask> make(LimiterRequest request, const LimiterVerb& verb, VerbDone done) {
    using VerbAsk = AskOf<limiter::VerbCall, LimiterVerbAnswer>;
    return std::make_shared<VerbAsk>(*this, std::move(request), std::move(done), verb_of(verb));
  }
  Pending send(const std::shared_ptr<Ask>& ask) {
    Pending pending;
    pending.impl_ = weak_from_this();
    pending.ask_ = ask;
    post({ask});
    return pending;
  }
  // Those of one call leave in one turn of the loop, so for one round trip.
  void post(std::vector<std::shared_ptr<Ask>> asks) {
    boost::asio::post(io_, [this, asks = std::move(asks)] {
      for (const auto& ask : asks) start(ask);
    });
  }
  void post_cancel(std::weak_ptr<Ask> which) {
    boost::asio::post(io_, [self = weak_from_this(), which = std::move(which)] {
      const auto impl = self.lock();
      const auto ask = which.lock();
      if (impl != nullptr && ask != nullptr && impl->asks_.erase(ask) > 0) ask->stop();
    });
  }

  void finish(Ask& ask) {
    const auto held = ask.shared_from_this();  // until its own functions have returned
    asks_.erase(held);
    ask.finish();
  }

 private:
  template <typename CallType, typename Answer>
  struct AskOf final : Ask, CallType::Owner {
    AskOf(Impl& limiter, LimiterRequest what, std::function<void(Answer)> whom, limiter::CounterVerb how = {})
        : Ask(limiter, std::move(what)), done_(std::move(whom)), verb_(how) {}

    store::Progress start(const Request& asked, const std::shared_ptr<const policy::Policy>& policy,
                          store::Store& store, Time now, metrics::Shard& metrics) override {
      typename CallType::Owner& owner = *this;
      CallType& call = call_.emplace(owner, metrics);
      if constexpr (std::is_same_v<CallType, limiter::VerbCall>) {
        return call.start(asked, verb_, policy, store, now);
      } else {
        return call.start(asked, policy, store, now);
      }
    }
    void answered(CallType& /*finished*/) override { impl.finish(*this); }
    void finish() override {
      assert(call_.has_value());
      tell(answer_of(call_->answer()));
    }
    void stop() override {
      if (call_) call_->cancel();
      tell(unanswered<Answer>(LimiterAnswer::Problem::stopped));
    }

   private:
    void tell(Answer answer) {
      const auto function = std::move(done_);
      function(std::move(answer));
    }

    std::function<void(Answer)> done_;
    limiter::CounterVerb verb_;
    std::optional<CallType> call_;
  };

  // Whose request and answer are others' business.
  struct CheckAsk final : Ask, limiter::Call::Owner {
    CheckAsk(Impl& limiter, std::shared_ptr<limiter::Check> what) : Ask(limiter, {}), check_(std::move(what)) {}

    store::Progress start(const Request& /*asked*/, const std::shared_ptr<const policy::Policy>& policy,
                          store::Store& store, Time now, metrics::Shard& metrics) override {
      limiter::Call& call = call_.emplace(*this, metrics);
      return call.start(check_->request(), policy, store, now);
    }
    void answered(limiter::Call& /*finished*/) override { impl.finish(*this); }
    void finish() override {
      assert(call_.has_value());
      check_->answered(&*call_);
    }
    void stop() override {
      if (call_) call_->cancel();
      check_->answered(nullptr);
    }

   private:
    const std::shared_ptr<limiter::Check> check_;
    std::optional<limiter::Call> call_;
  };

  struct Worker final : limiter::Call::Owner, limiter::VerbCall::Owner {
    explicit Worker(const policy::SnapshotHolder& policies) : policy(policies) {}
    void answered(limiter::Call& /*call*/) override {}
    void answered(limiter::VerbCall& /*call*/) override {}

    metrics::Shard metrics;
    policy::SnapshotReader policy;
    limiter::Call call{*this, metrics};
  };

  template <typename Answer, typename Function>
  Answer on_worker(Function function) {
    std::unique_ptr<Worker> worker = take_worker();
    Answer answer = function(*worker);
    const std::scoped_lock lock(workers_mutex_);
    workers_.push_back(std::move(worker));
    return answer;
  }

  std::unique_ptr<Worker> take_worker() {
    {
      const std::scoped_lock lock(workers_mutex_);
      if (!workers_.empty()) {
        std::unique_ptr<Worker> worker = std::move(workers_.back());
        workers_.pop_back();
        return worker;
      }
    }
    return std::make_unique<Worker>(policies_);
  }

  void start(const std::shared_ptr<Ask>& ask) {
    if (shared_ == nullptr) {
      ask->stop();
      return;
    }
    asks_.insert(ask);
    const Asked asked(ask->request);
    const auto progress = ask->start(asked.request(), reader_.get(), *shared_, clock_.now(), metrics_);
    if (progress == store::Progress::answered) finish(*ask);
  }

  const LimiterOptions options_;
  SystemClock clock_;
  policy::SnapshotHolder policies_;
  store::MemoryStore memory_;
  store::Readiness readiness_;
  store::DenialEpochs epochs_;
  std::mutex workers_mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;

  // With Redis: the limiter's thread only.
  metrics::Shard metrics_;
  policy::SnapshotReader reader_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<store::Store> shared_;
  std::unordered_set<std::shared_ptr<Ask>> asks_;
  std::thread thread_;
};

void Limiter::Pending::cancel() const {
  if (const auto impl = impl_.lock()) impl->post_cancel(ask_);
}

limiter::Backend& limiter::Access::backend(Limiter& limiter) { return *limiter.impl_; }

Limiter::Limiter(const LimiterOptions& options) : impl_(std::make_shared<Impl>(options)) {}

// NOLINTNEXTLINE(bugprone-exception-escape): what may throw is joining a thread that is there and not this one.
Limiter::~Limiter() { impl_->stop(); }

std::string Limiter::reload() { return impl_->load(); }

bool Limiter::ready() const { return impl_->ready(); }

Limiter::Pending Limiter::start(LimiterRequest request, Done done) {
  if (!impl_->is_shared()) {
    done(impl_->check_here(request));
    return {};
  }
  return impl_->send(impl_->make(std::move(request), std::move(done)));
}

Limiter::Pending Limiter::start(LimiterRequest request, const LimiterVerb& verb, VerbDone done) {
  if (!impl_->is_shared()) {
    done(impl_->apply_here(request, verb));
    return {};
  }
  return impl_->send(impl_->make(std::move(request), verb, std::move(done)));
}

LimiterAnswer Limiter::check(const LimiterRequest& request, std::optional<std::chrono::nanoseconds> patience) {
  if (!impl_->is_shared()) return impl_->check_here(request);
  return limiter::wait_for<LimiterAnswer>(patience, [&](Done done) { return start(request, std::move(done)); })
      .value_or(unanswered<LimiterAnswer>(LimiterAnswer::Problem::deadline));
}

LimiterVerbAnswer Limiter::apply(const LimiterRequest& request, const LimiterVerb& verb,
                                 std::optional<std::chrono::nanoseconds> patience) {
  if (!impl_->is_shared()) return impl_->apply_here(request, verb);
  return limiter::wait_for<LimiterVerbAnswer>(patience,
                                              [&](VerbDone done) { return start(request, verb, std::move(done)); })
      .value_or(unanswered<LimiterVerbAnswer>(LimiterAnswer::Problem::deadline));
}

std::vector<LimiterAnswer> Limiter::check_many(std::span<const LimiterRequest> requests) {
  std::vector<LimiterAnswer> answers(requests.size());
  if (!impl_->is_shared()) {
    for (std::size_t i = 0; i < requests.size(); ++i) answers[i] = impl_->check_here(requests[i]);
    return answers;
  }
  std::mutex mutex;
  std::condition_variable condition;
  std::size_t left = requests.size();
  std::vector<std::shared_ptr<Pending::Ask>> asks;
  asks.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    asks.push_back(impl_->make(requests[i], [&, i](LimiterAnswer answer) {
      const std::scoped_lock lock(mutex);
      answers[i] = std::move(answer);
      if (--left == 0) condition.notify_one();
    }));
  }
  impl_->post(std::move(asks));
  std::unique_lock lock(mutex);
  condition.wait(lock, [&] { return left == 0; });
  return answers;
}

}  // namespace sluice
