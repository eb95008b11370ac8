// Publishes to RabbitMQ and waits for its confirms.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "config/queue_settings.h"
#include "queue/broker.h"
#include "queue/rabbit_thread.h"

namespace sluice::queue::rabbit {

/// Everything that is handed over is answered within the queue's timeout, also while the server is stopped and the
/// thread hangs in a call: the watch answers then. Public functions: any thread.
class Publisher final : private Thread::Owner {
 public:
  explicit Publisher(config::QueueSettings settings);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  void publish(Publish what, Broker::Done done);
  /// Waits for what is pending, within its time.
  void stop();

  struct Counts {
    bool up = false;
    std::string problem;
    std::uint64_t published = 0;
    std::uint64_t failed = 0;
    std::uint64_t pending = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  using Instant = std::chrono::steady_clock::time_point;
  struct Pending {
    Publish what;
    Broker::Done done;
    Instant deadline;
  };
  /// What was answered, to be told without the lock.
  struct Answer {
    Broker::Done done;
    bool stored = false;
    std::string why;
  };

  void serve(Link& link) override;
  void lost(const std::string& why) override;
  void tick() override;

  [[nodiscard]] bool send_waiting(Link& link);
  [[nodiscard]] bool read_confirms(Link& link);
  void confirmed(std::uint64_t tag, bool multiple, bool stored);
  void came_back(const amqp_message_t& message);
  void settle(Pending pending, bool stored, std::string_view why, std::vector<Answer>& answers);
  static void tell(std::vector<Answer>& answers);

  const config::QueueSettings settings_;
  mutable std::mutex mutex_;
  std::deque<Pending> waiting_;            ///< not sent
  std::map<std::uint64_t, Pending> sent_;  ///< by the server's number of them
  bool up_ = false;
  bool closing_ = false;
  bool told_ = false;
  std::string problem_ = "not connected yet";
  std::uint64_t published_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t serial_ = 0;  ///< of the link at hand; its thread's own
  Thread thread_;
};

}  // namespace sluice::queue::rabbit
