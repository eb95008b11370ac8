// Takes messages out of the lanes of RabbitMQ.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "config/queue_settings.h"
#include "queue/ack_ledger.h"
#include "queue/broker.h"
#include "queue/rabbit_thread.h"

namespace sluice::queue::rabbit {

/// Acknowledges messages some milliseconds after they are finished, many together, and takes no more at once than
/// `prefetch` a lane. When the connection is lost the server hands out anew what was not acknowledged, and begin()
/// refuses the old.
class LaneConsumer final : public Consumer, private Thread::Owner {
 public:
  LaneConsumer(config::QueueSettings settings, ConsumerOptions options);
  ~LaneConsumer() override;
  LaneConsumer(const LaneConsumer&) = delete;
  LaneConsumer& operator=(const LaneConsumer&) = delete;

  std::vector<Delivery> take(std::size_t most) override;
  bool holds(std::uint64_t tag) override;
  bool begin(std::uint64_t tag) override;
  void pause(std::uint64_t /*tag*/) override {}
  void finish(std::uint64_t tag) override;
  void stop() override;

 private:
  void serve(Link& link) override;
  void lost(const std::string& why) override;
  void tick() override {}

  [[nodiscard]] bool read_deliveries(Link& link);
  [[nodiscard]] bool send_acknowledgements(Link& link, std::int64_t now);
  [[nodiscard]] std::chrono::milliseconds patience();

  const config::QueueSettings settings_;
  const ConsumerOptions options_;
  const std::size_t prefetch_;
  std::mutex mutex_;
  std::deque<Delivery> arrived_;
  AckLedger ledger_;
  bool told_ = false;
  Thread thread_;
};

}  // namespace sluice::queue::rabbit
