// A drainer with all that it needs, for a thread of its own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/settings.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "queue/broker.h"
#include "queue/deliverer.h"
#include "queue/drainer.h"
#include "queue/tickets.h"
#include "sluice/clock.h"
#include "store/memory/memory_store.h"
#include "store/redis/redis_store.h"

namespace sluice::queue {

struct DrainSetup {
  DrainerOptions options;
  const policy::SnapshotHolder* policies = nullptr;
  /// The counters; null: those of `redis`.
  std::shared_ptr<store::Store> memory;
  store::redis::RedisOptions redis;
  Tickets* tickets = nullptr;
  Broker* broker = nullptr;
  std::function<std::unique_ptr<Deliverer>(boost::asio::io_context& io)> make_deliverer;
};

/// What it points to must outlive it.
class DrainRunner {
 public:
  /// Throws std::runtime_error when the store cannot be made of its options.
  explicit DrainRunner(const DrainSetup& setup);
  ~DrainRunner();
  DrainRunner(const DrainRunner&) = delete;
  DrainRunner& operator=(const DrainRunner&) = delete;

  /// Drains until stop(), or until nothing can be delivered any more. On the thread that calls it.
  void run();
  /// Any thread; once.
  void stop();
  [[nodiscard]] boost::asio::io_context& io() { return io_; }
  /// On the thread of run(), or after it.
  [[nodiscard]] DrainerCounts counts() const { return drainer_->counts(); }
  /// Why nothing can be delivered any more; empty: stop() ended it. After run().
  [[nodiscard]] const std::string& fault() const { return drainer_->fault(); }

 private:
  void end();

  SystemClock clock_;
  metrics::Registry registry_;
  boost::asio::io_context io_{1};
  policy::SnapshotReader policy_;
  std::shared_ptr<store::Store> store_;
  std::unique_ptr<Deliverer> deliverer_;
  std::unique_ptr<Drainer> drainer_;
  bool ending_ = false;
};

/// Tickets on the Redis of these options.
[[nodiscard]] RedisTicketsOptions tickets_options_of(const store::redis::RedisOptions& options);
/// How a drainer must behave so that the broker of these settings keeps patience with it.
void fit_to_broker(const config::QueueSettings& settings, const policy::Policy& policy, config::QueueSettings& fitted,
                   DrainerOptions& options);

}  // namespace sluice::queue
