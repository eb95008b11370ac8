// Requests beyond a limit that wait in Kafka, RabbitMQ or memory: taken in, and worked off by a function of the
// program's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/internal/export.h"
#include "sluice/limiter.h"

namespace sluice {

namespace queue {
class QueuesAccess;
}  // namespace queue

/// The request itself, as it is kept and delivered later. A value.
struct WaitingRequest {
  // NOLINTBEGIN(readability-redundant-member-init): without it, gcc warns of designated initializers that leave it out
  /// Requests of one key are delivered in order, one at a time; empty: in any order.
  std::string key{};
  std::string method = "POST";  ///< a word
  std::string path = "/";       ///< begins with a slash; no spaces and line breaks, as in a request
  /// Name and value, in order. What belongs to one connection, and secrets that the queue's `stored_headers` don't
  /// name, are left out.
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};            ///< any bytes, at most 512 KiB
  std::string body_reference{};  ///< where the body is, when it is not here
  // NOLINTEND(readability-redundant-member-init)
};

/// What became of a request.
struct Admitted {
  /// Which way it went.
  enum class Kind : std::uint8_t {
    allowed,  ///< within its limits: go on
    waiting,  ///< stored: the broker has confirmed it
    denied    ///< by a limit without `overflow`, or it cannot wait; `problem` tells which
  };
  Kind kind = Kind::denied;  ///< which way it went
  // NOLINTBEGIN(readability-redundant-member-init): as above
  LimiterAnswer check{};  ///< what the limits said
  std::string ticket{};   ///< waiting: 32 hexadecimal digits, a secret of its client
  // NOLINTEND(readability-redundant-member-init)
  std::uint64_t place = 0;              ///< waiting: in its queue, from 1
  std::chrono::nanoseconds expected{};  ///< waiting: until it is worked off
  // NOLINTBEGIN(readability-redundant-member-init): as above
  /// Why it cannot wait: queue_full, queue_too_slow, queue_too_old, queue_down, invalid_request, too_large; empty: no
  /// queue was asked.
  std::string problem{};
  std::string message{};  ///< the same in words
  // NOLINTEND(readability-redundant-member-init)
  std::chrono::nanoseconds retry_after{};  ///< of a queue that cannot take it; 0: not known
};

/// What a ticket says.
struct TicketState {
  /// How far the request has come.
  enum class Kind : std::uint8_t { queued, running, done, failed, expired, cancelled };
  Kind kind = Kind::queued;  ///< how far it has come
  // NOLINTBEGIN(readability-redundant-member-init): as above
  std::string queue{};                               ///< its name
  unsigned attempts = 0;                             ///< times that its delivery was tried, or is about to be
  int status = 0;                                    ///< of the last answer to its delivery; 0: none
  std::uint64_t place = 0;                           ///< in its queue as it was stored, from 1
  std::chrono::system_clock::time_point created{};   ///< when it was stored
  std::chrono::system_clock::time_point expected{};  ///< when it was expected to be worked off, as it was stored
  std::string reason{};                              ///< of a failure
  // NOLINTEND(readability-redundant-member-init)
};

/// How a queue is doing.
struct QueueState {
  std::string name;                     ///< as `queues:` has it
  bool ready = false;                   ///< the broker can be reached
  std::string problem;                  ///< why it is not ready
  std::optional<std::uint64_t> length;  ///< requests that wait; nothing: not known yet
  std::uint64_t stored = 0;             ///< by this process
  std::uint64_t refused = 0;            ///< by this process
  std::uint64_t delivered = 0;          ///< by all drainers
};

/// How Queues is made. A value.
struct QueuesOptions {
  /// YAML: what stands below `queues:` in the daemon's server file (docs/overflow.md). A queue in memory needs no
  /// `deliver` here. Paths of files are taken from the working directory.
  std::string queues;
};

/// Where requests beyond their limit wait. Kafka and RabbitMQ need a limiter with Redis, where tickets lie, too;
/// without it both are in this process.
///
/// Thread-safe. Starts threads for each broker and connects at once, but does not wait for that: a queue whose broker
/// cannot be reached is not ready, and what would wait is denied.
class SLUICE_API Queues {
 public:
  /// What `start` calls with the answer.
  using Done = std::function<void(Admitted answer)>;

  /// The limiter must outlive it. Throws std::invalid_argument with all that is wrong, a line each: the settings, and
  /// queues that its policy names and that are not there.
  Queues(Limiter& limiter, const QueuesOptions& options);
  /// What is pending is answered, within the queues' time-outs.
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  /// Asks the limits; what is over one that has `overflow` is stored. Blocks until the broker has confirmed it, at most
  /// for the queue's `timeout` beyond the limiter's own.
  [[nodiscard]] Admitted admit(const LimiterRequest& keys, WaitingRequest request);
  /// The same without blocking: `done` is called once, perhaps before it returns, on any thread, where it must not
  /// block. It must not throw. Withdrawing it ends the question to the limits, not what is stored already.
  Limiter::Pending start(LimiterRequest keys, WaitingRequest request, Done done);

  /// What became of a request. Nothing: there is no such ticket, or not any more. Blocks for a round trip; throws
  /// std::runtime_error when the store of tickets cannot be reached.
  [[nodiscard]] std::optional<TicketState> ticket(const std::string& id);
  /// True: it was queued, and will not be delivered. As ticket() otherwise.
  bool cancel(const std::string& id);
  /// Of all queues, as they were told twice a second.
  [[nodiscard]] std::vector<QueueState> states() const;

 private:
  friend class queue::QueuesAccess;
  class SLUICE_HIDDEN Impl;
  std::shared_ptr<Impl> impl_;
};

/// A request that has waited, on its way to the program.
struct QueuedDelivery {
  std::string ticket;             ///< the same in each attempt: an idempotency key
  WaitingRequest request;         ///< as it was admitted, without what is never stored
  unsigned attempt = 1;           ///< from 1, of this drain
  bool may_be_duplicate = false;  ///< somebody has begun to deliver it before
};

/// How a delivery ended.
struct DeliveryEnd {
  /// What is to become of the request.
  enum class Kind : std::uint8_t {
    delivered,  ///< it is done
    retry,      ///< not now: it is tried again after a pause
    refused     ///< never: it becomes a dead letter
  };
  Kind kind = Kind::delivered;  ///< what is to become of it
  int status = 0;               ///< for its ticket
  // NOLINTNEXTLINE(readability-redundant-member-init): as above
  std::string reason{};                    ///< of a failure, for its ticket
  std::chrono::nanoseconds retry_after{};  ///< retry: not before that, but for an hour at most; 0: after the pause
};

/// How a QueueDrain works. A value.
struct QueueDrainOptions {
  std::size_t in_flight = 64;                                         ///< most deliveries at once; from 1
  unsigned attempts = 5;                                              ///< then it is a dead letter; from 1
  std::chrono::nanoseconds first_pause = std::chrono::seconds(1);     ///< after a failure; doubled after each
  std::chrono::nanoseconds longest_pause = std::chrono::seconds(30);  ///< at most
  std::chrono::nanoseconds drain_timeout = std::chrono::seconds(10);  ///< for what is in flight when it stops
};

/// Works off one queue at the rate of its limits, as `sluice drain` does: all drainers of a queue, in whichever
/// process, share one rate with the requests that do not wait. At least once; requests of one key in order. One drain
/// at a time of a queue in a process.
class SLUICE_API QueueDrain {
 public:
  /// Ends a delivery: to be called once, by any thread.
  using Done = std::function<void(DeliveryEnd end)>;
  /// Begins one. Called on the drain's thread, which it must not block: what takes long is done elsewhere, and tells
  /// `done` later. It must not throw.
  using Deliver = std::function<void(QueuedDelivery delivery, Done done)>;
  /// What it has done.
  struct Counts {
    std::uint64_t delivered = 0;   ///< with success
    std::uint64_t duplicates = 0;  ///< begun of what may have been delivered before
    std::uint64_t retries = 0;     ///< to be tried again
    std::uint64_t dead = 0;        ///< became dead letters
    std::uint64_t expired = 0;     ///< dropped, as they had waited too long
    std::uint64_t cancelled = 0;   ///< dropped, as their clients wished
    std::uint64_t foreign = 0;     ///< skipped: messages of other programs
  };

  /// Starts a thread that drains. `queues` must outlive it. Throws std::invalid_argument when there is no queue of that
  /// name or an option is out of range, and std::runtime_error when it cannot begin.
  QueueDrain(Queues& queues, const std::string& name, Deliver deliver, const QueueDrainOptions& options = {});
  /// stop().
  ~QueueDrain();
  QueueDrain(const QueueDrain&) = delete;
  QueueDrain& operator=(const QueueDrain&) = delete;

  /// Takes nothing more, and waits for what is in flight, within `drain_timeout`. Blocks; not from `deliver`.
  void stop();
  /// Thread-safe.
  [[nodiscard]] Counts counts() const;

 private:
  class SLUICE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
