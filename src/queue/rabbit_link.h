// One connection to RabbitMQ over librabbitmq, which blocks: bounded by a watch of the owner's.
#pragma once

#include <amqp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "config/queue_settings.h"

namespace sluice::queue::rabbit {

/// The name of one of the queues that keys are spread over.
[[nodiscard]] std::string lane_name(const config::QueueSettings& settings, std::uint64_t lane);
[[nodiscard]] amqp_bytes_t bytes_of(std::string_view text);

/// Used by one thread, but for abort_if_stuck() and abort(). Every function that fails leaves the link closed and says
/// why in problem(). Destroyed with its connection.
class Link {
 public:
  static constexpr amqp_channel_t kChannel = 1;

  Link(const config::QueueSettings& settings, int wake_descriptor);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Connects, logs in, opens the channel. Bounded by the queue's timeout for each step.
  [[nodiscard]] bool open();
  /// Says good-bye, if it is open.
  void close();
  /// Makes the queues: durable quorum queues, of which one consumer at a time is served, so that order is kept.
  [[nodiscard]] bool declare();
  /// Messages ready in all lanes.
  [[nodiscard]] std::optional<std::uint64_t> count();
  [[nodiscard]] bool select_confirms();
  [[nodiscard]] bool publish(const std::string& queue, std::uint64_t serial, std::string_view payload,
                             const std::string& reason);
  /// The consumers' names are the numbers of their lanes.
  [[nodiscard]] bool consume(std::uint16_t prefetch);
  [[nodiscard]] bool acknowledge(std::uint64_t tag, bool all_before);
  /// While it lives what is sent goes in full packets, and the rest as it ends: each packet wakes the server.
  class Together;

  enum class Event : std::uint8_t { none, frame, failed };
  /// The next frame that has arrived. Never waits.
  [[nodiscard]] Event next(amqp_frame_t& frame);
  /// Reads the rest of a message whose method frame has been read.
  [[nodiscard]] bool read_message(amqp_message_t& message);
  /// Waits until something may be read, the owner's descriptor is readable, or time is up.
  void wait(std::chrono::milliseconds patience);
  /// Gives back memory of what has been read.
  void tidy();

  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }

  /// Ends a call that has been blocked for longer than `patience`, by any thread.
  void abort_if_stuck(std::chrono::nanoseconds patience);

 private:
  class Busy;
  [[nodiscard]] bool check(const amqp_rpc_reply_t& reply, std::string_view doing);
  [[nodiscard]] bool check(int status, std::string_view doing);
  bool fail(std::string why);
  [[nodiscard]] bool connect();
  [[nodiscard]] bool declare_queue(const std::string& name, bool one_consumer);

  const config::QueueSettings& settings_;
  const int wake_descriptor_;
  amqp_connection_state_t state_ = nullptr;
  bool is_open_ = false;
  std::string problem_ = "not connected yet";
  std::atomic<std::int64_t> busy_since_{0};  ///< steady ns; 0: no call is under way
  std::mutex descriptor_mutex_;
  int descriptor_ = -1;
};

class Link::Together {
 public:
  explicit Together(Link& link);
  ~Together();
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

 private:
  Link& link_;
};

}  // namespace sluice::queue::rabbit
