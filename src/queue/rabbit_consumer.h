// Takes messages out of the lanes of RabbitMQ.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include <vector>

#include "config/queue_settings.h"
#include "queue/broker.h"
#include "queue/rabbit_thread.h"

namespace sluice::queue::rabbit {

/// Acknowledges each message when it is finished, and takes no more at once than `prefetch` a lane. When the connection
/// is lost the server hands out anew what was not acknowledged, and begin() refuses the old.
class LaneConsumer final : public Consumer, private Thread::Owner {
 public:
  LaneConsumer(const config::QueueSettings& settings, const ConsumerOptions& options);
  ~LaneConsumer() override;
  LaneConsumer(const LaneConsumer&) = delete;
  LaneConsumer& operator=(const LaneConsumer&) = delete;

  std::vector<Delivery> take(std::size_t most) override;
  bool begin(std::uint64_t tag) override;
  void pause(std::uint64_t /*tag*/) override {}
  void finish(std::uint64_t tag) override;
  void stop() override;

 private:
  void serve(Link& link) override;
  void lost(const std::string& why) override;
  void tick() override {}

  [[nodiscard]] bool read_deliveries(Link& link);
  [[nodiscard]] bool send_acknowledgements(Link& link);

  const config::QueueSettings settings_;
  const ConsumerOptions options_;
  std::mutex mutex_;
  std::deque<Delivery> arrived_;
  std::map<std::uint64_t, std::uint64_t> held_;  ///< tag → the server's number, of this connection
  std::vector<std::uint64_t> finished_;          ///< numbers to be acknowledged
  std::uint64_t next_tag_ = 1;
  bool told_ = false;
  Thread thread_;
};

}  // namespace sluice::queue::rabbit
