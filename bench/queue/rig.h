// Servers of one's own, and the queues of a round in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "config/queue_settings.h"
#include "policy/snapshot_holder.h"
#include "queue/bare.h"
#include "queue/desk.h"
#include "queue/drain_runner.h"
#include "tests/integration/brokers/kafka_server.h"
#include "tests/integration/brokers/rabbit_server.h"
#include "tests/integration/support/server.h"

namespace sluice::bench {

/// A Redis, and one broker of the kind asked for. Throws std::runtime_error when one cannot be started.
class Rig {
 public:
  explicit Rig(config::QueueSettings::Kind kind);

  /// A queue that nobody has used: its topic (4 partitions) or lanes (8), and their dead letters.
  [[nodiscard]] config::QueueSettings new_queue(const std::string& name);
  [[nodiscard]] std::string redis_url() const { return "redis://127.0.0.1:" + std::to_string(redis_port_); }
  [[nodiscard]] const testing::ServerFolder& folder() const { return folder_; }
  /// A server file and a policy for it; path of the server file. `rate`: of the limit, a second.
  [[nodiscard]] std::filesystem::path server_file(const config::QueueSettings& settings, std::uint64_t rate) const;

 private:
  const config::QueueSettings::Kind kind_;
  testing::ServerFolder folder_{"queue-bench"};
  std::uint16_t redis_port_ = testing::free_tcp_port();
  testing::ServerProcess redis_;
  std::unique_ptr<testing::KafkaServer> kafka_;
  std::unique_ptr<testing::RabbitServer> rabbit_;
};

/// Waits, ten seconds at most, until the machine has next to nothing to do: a broker is at work on what it was given
/// for a while after it has confirmed it.
void wait_for_rest();
/// Messages of 40 keys with a body of 100 bytes each, and a ticket of their own.
[[nodiscard]] Load make_load(std::size_t count);
/// The policy of a limit of `rate` a second with overflow into the queue "orders".
[[nodiscard]] std::string policy_text(std::uint64_t rate);

/// One queue taken in and worked off within this process.
class Shop {
 public:
  Shop(const Rig& rig, const config::QueueSettings& settings, std::uint64_t rate);
  ~Shop() { desk_->stop(); }
  Shop(const Shop&) = delete;
  Shop& operator=(const Shop&) = delete;

  /// Waits until the broker is connected.
  void open();
  /// Puts all into the broker as they are; nobody is admitted, so it is quick.
  void fill(const Load& load);
  [[nodiscard]] Loop admit(std::size_t count, std::size_t in_flight);
  /// Delivers `count` messages to a function. The rate is that between the first and the last.
  [[nodiscard]] Loop drain(std::size_t count);

 private:
  const Rig& rig_;
  const config::QueueSettings settings_;
  policy::SnapshotHolder policies_;
  std::unique_ptr<queue::Desk> desk_;
};

}  // namespace sluice::bench
