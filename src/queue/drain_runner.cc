#include "queue/drain_runner.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <stdexcept>
#include <utility>

#include "base/log.h"

namespace sluice::queue {
namespace {

/// What a partition or lane gives in this time is taken out of it ahead.
constexpr std::chrono::milliseconds kTakenAhead{500};
constexpr double kLeastInHand = 2'000;
constexpr double kMostInHand = 20'000;

}  // namespace

DrainRunner::DrainRunner(const DrainSetup& setup) : policy_(*setup.policies), store_(setup.memory) {
  if (store_ == nullptr) {
    auto redis = store::redis::RedisStore::create(io_, setup.redis, registry_.add_shard());
    if (!redis) throw std::runtime_error("store.redis: " + redis.error().message);
    store_ = *std::move(redis);
  }
  deliverer_ = setup.make_deliverer(io_);
  drainer_ = std::make_unique<Drainer>(io_, setup.options, policy_, *store_, *setup.tickets, *setup.broker, *deliverer_,
                                       clock_);
}

DrainRunner::~DrainRunner() {
  drainer_.reset();
  deliverer_.reset();
}

void DrainRunner::run() {
  const auto work = boost::asio::make_work_guard(io_);
  drainer_->start([this] { end(); });
  io_.run();
}

void DrainRunner::stop() {
  boost::asio::post(io_, [this] { end(); });
}

void DrainRunner::end() {
  if (!std::exchange(ending_, true)) drainer_->stop([this] { io_.stop(); });
}

RedisTicketsOptions tickets_options_of(const store::redis::RedisOptions& options) {
  return {.url = options.url, .access = options.access, .prefix = options.prefix};
}

void fit_to_broker(const config::QueueSettings& settings, const policy::Policy& policy, config::QueueSettings& fitted,
                   DrainerOptions& options) {
  fitted = settings;
  double fastest = 0;
  double slowest = 0;
  for (const policy::Rule* rule : policy.rules()) {
    if (!rule->overflow || rule->overflow->queue != settings.name || rule->counted.numbers.rate == 0) continue;
    const Limit& numbers = rule->counted.numbers;
    const double rate = static_cast<double>(numbers.rate) / std::chrono::duration<double>(numbers.period).count();
    fastest = std::max(fastest, rate);
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  const double ahead = std::chrono::duration<double>(kTakenAhead).count() * fastest;
  options.in_hand = static_cast<std::size_t>(std::clamp(ahead, kLeastInHand, kMostInHand));
  if (settings.kind != config::QueueSettings::Kind::rabbitmq) return;
  // RabbitMQ closes a consumer that keeps a message for longer than consumer_timeout. Half of that is for the line that
  // messages of the slowest limit stand in, a quarter for tries.
  const double half = std::chrono::duration<double>(settings.consumer_timeout).count() / 2;
  if (slowest > 0) {
    // Each lane has its own, and all of them may be full of messages that stand in one line.
    const double each = slowest * half / static_cast<double>(settings.lanes);
    if (each < 1) {
      log::warn(
          "a limit is so slow that RabbitMQ may lose patience with messages in hand: use fewer lanes, or a longer "
          "consumer_timeout",
          {{"queue", settings.name}, {"lanes", std::to_string(settings.lanes)}});
    }
    const double most = std::max(1.0, each);
    if (most < static_cast<double>(fitted.prefetch)) fitted.prefetch = static_cast<std::uint64_t>(most);
  }
  options.longest_hold = settings.consumer_timeout / 4;
}

}  // namespace sluice::queue
