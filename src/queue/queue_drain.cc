#include <boost/asio/post.hpp>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "limiter/redis_options.h"
#include "queue/callback_deliverer.h"
#include "queue/drain_runner.h"
#include "queue/loop_handle.h"
#include "queue/queues_impl.h"
#include "sluice/queues.h"

namespace sluice {
namespace {

/// Nobody waits for a drainer's questions but itself.
constexpr std::chrono::seconds kCheckTimeout{5};
constexpr std::size_t kMostInFlight = 100'000;

QueuedDelivery delivery_of(const queue::Attempt& attempt) {
  const queue::Message& message = *attempt.message;
  return {.ticket = message.ticket,
          .request = {.key = message.key,
                      .method = message.method,
                      .path = message.path,
                      .headers = message.headers,
                      .body = message.body,
                      .body_reference = message.body_reference},
          .attempt = attempt.number,
          .may_be_duplicate = attempt.may_be_duplicate};
}

queue::Outcome outcome_of(DeliveryEnd end) {
  queue::Outcome outcome;
  if (end.kind == DeliveryEnd::Kind::retry) outcome.kind = queue::Outcome::Kind::retry;
  if (end.kind == DeliveryEnd::Kind::refused) outcome.kind = queue::Outcome::Kind::refused;
  outcome.status = end.status;
  outcome.reason = std::move(end.reason);
  outcome.retry_after = end.retry_after;
  return outcome;
}

void check_options(const QueueDrainOptions& options) {
  if (options.in_flight < 1 || options.in_flight > kMostInFlight) {
    throw std::invalid_argument("in_flight: expected 1 to 100000, found " + std::to_string(options.in_flight));
  }
  if (options.attempts < 1) throw std::invalid_argument("attempts: expected 1 or more, found 0");
  if (options.first_pause.count() < 0 || options.longest_pause < options.first_pause) {
    throw std::invalid_argument("first_pause: expected 0 or more, and at most longest_pause");
  }
}

}  // namespace

class QueueDrain::Impl {
 public:
  Impl(queue::QueuesAccess::Impl& queues, const std::string& name, Deliver deliver, const QueueDrainOptions& options)
      : runner_(setup(queues, name, std::move(deliver), options)), handle_(made_handle_) {
    thread_ = std::thread([this] { runner_.run(); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { stop(); }

  void stop() {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) return;
    runner_.stop();
    thread_.join();
    handle_->end();
  }

  Counts counts() {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable() || thread_.get_id() == std::this_thread::get_id()) return counts_of(runner_.counts());
    std::promise<Counts> told;
    boost::asio::post(runner_.io(), [&] { told.set_value(counts_of(runner_.counts())); });
    return told.get_future().get();
  }

 private:
  queue::DrainSetup setup(queue::QueuesAccess::Impl& queues, const std::string& name, Deliver deliver,
                          const QueueDrainOptions& options) {
    const config::QueueSettings* settings = queues.settings(name);
    if (settings == nullptr) throw std::invalid_argument("there is no queue " + name);
    check_options(options);
    limiter::Backend& backend = queues.backend();
    queue::DrainSetup setup;
    setup.options.queue = name;
    setup.options.drainer = queue::new_ticket();
    setup.options.in_flight = options.in_flight;
    setup.options.attempts = options.attempts;
    setup.options.first_pause = options.first_pause;
    setup.options.longest_pause = options.longest_pause;
    setup.options.drain_timeout = options.drain_timeout;
    config::QueueSettings fitted;  // as its broker was made
    queue::fit_to_broker(*settings, *backend.policies().get(), fitted, setup.options);
    setup.policies = &backend.policies();
    if (backend.is_shared()) {
      setup.redis = limiter::redis_options(backend.options());
      setup.redis.timeout = kCheckTimeout;
    } else {
      setup.memory = std::shared_ptr<store::Store>(std::shared_ptr<void>(), &backend.memory());  // the limiter's
    }
    setup.tickets = &queues.desk().tickets();
    setup.broker = queues.desk().broker(name);
    setup.make_deliverer = [this, deliver = std::move(deliver)](boost::asio::io_context& io) {
      made_handle_ = std::make_shared<queue::LoopHandle>(io);
      return std::make_unique<queue::CallbackDeliverer>(
          [handle = made_handle_, deliver](const queue::Attempt& attempt, const queue::Deliverer::Done& done) {
            deliver(delivery_of(attempt), [handle, done](DeliveryEnd end) {
              queue::LoopHandle::post(handle,
                                      [done, end = std::move(end)]() mutable { done(outcome_of(std::move(end))); });
            });
          });
    };
    return setup;
  }

  static Counts counts_of(const queue::DrainerCounts& counts) {
    return {.delivered = counts.report.delivered,
            .duplicates = counts.report.duplicates,
            .retries = counts.retries,
            .dead = counts.report.dead,
            .expired = counts.report.expired,
            .cancelled = counts.cancelled,
            .foreign = counts.report.foreign};
  }

  std::shared_ptr<queue::LoopHandle> made_handle_;
  queue::DrainRunner runner_;
  const std::shared_ptr<queue::LoopHandle> handle_;
  std::mutex mutex_;
  std::thread thread_;
};

QueueDrain::QueueDrain(Queues& queues, const std::string& name, Deliver deliver, const QueueDrainOptions& options)
    : impl_(std::make_unique<Impl>(queue::QueuesAccess::impl(queues), name, std::move(deliver), options)) {}

QueueDrain::~QueueDrain() = default;

void QueueDrain::stop() { impl_->stop(); }

QueueDrain::Counts QueueDrain::counts() const { return impl_->counts(); }

}  // namespace sluice
