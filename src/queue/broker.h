// The one interface of what requests wait in: memory, Kafka, RabbitMQ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::queue {

/// What is to be stored.
struct Publish {
  std::string payload;
  std::string spread;  ///< equal ones stay in order, and lie in one partition or lane
  bool dead = false;   ///< a dead letter
  std::string reason;  ///< of a dead letter, for people who look into the broker
};

/// A message taken from a broker and not finished.
struct Delivery {
  std::uint64_t tag = 0;  ///< names it towards its consumer
  std::string payload;
  bool redelivered = false;  ///< the broker has handed it out before
};

/// Takes messages out of a broker. Its functions may be called by one thread at a time, not the consumer's own.
class Consumer {
 public:
  virtual ~Consumer() = default;
  /// Takes up to `most` that have arrived. Never blocks.
  [[nodiscard]] virtual std::vector<Delivery> take(std::size_t most) = 0;
  /// It has neither gone to another consumer nor will be handed out anew, as far as is known.
  [[nodiscard]] virtual bool holds(std::uint64_t tag) = 0;
  /// Delivery of a message is about to begin. False: the broker has given it to another consumer, or will hand it out
  /// anew; it is to be forgotten. While begun messages are unfinished the consumer tries not to let go of them.
  [[nodiscard]] virtual bool begin(std::uint64_t tag) = 0;
  /// Delivery has ended without success and will begin again later.
  virtual void pause(std::uint64_t tag) = 0;
  /// It is done with, and the broker may forget it.
  virtual void finish(std::uint64_t tag) = 0;
  /// Tells the broker what is finished and leaves it. Blocks, for some seconds at most. What is unfinished goes to
  /// others.
  virtual void stop() = 0;
};

struct ConsumerOptions {
  std::size_t most = 1000;  ///< messages taken and not finished, a partition or lane; from 1
  /// Called when take() has something, by any thread: it may only pass it on.
  std::function<void()> arrived;
  /// Called when some that were handed out are held no longer, by any thread: it may only pass it on. May be null.
  std::function<void()> lost;
};

/// What is known of a queue at the moment.
struct BrokerFigures {
  bool up = false;
  std::string problem;  ///< why it is not up
  /// Messages waiting, with those published since the broker was asked; nothing: not known yet.
  std::optional<std::uint64_t> length;
  std::optional<std::uint64_t> most;  ///< that may wait, as its own settings say; nothing: no bound
  bool counts_held = false;           ///< the length holds those that consumers have in hand
  std::uint64_t published = 0;        ///< confirmed
  std::uint64_t failed = 0;           ///< not confirmed
  std::uint64_t pending = 0;          ///< being published
};

/// Why a broker that may hold no more has stored nothing.
inline constexpr std::string_view kBrokerFull = "the queue is full";

/// One queue. Thread-safe. What blocks lives in threads of the broker's own.
class Broker {
 public:
  /// `stored`: the broker has confirmed it; else `why` not. It may be there all the same when it was not confirmed in
  /// time.
  using Done = std::function<void(bool stored, std::string_view why)>;

  virtual ~Broker() = default;
  /// Never blocks. Calls `done` once: within the queue's timeout, by any thread, perhaps before it returns. It must not
  /// block and must not throw.
  virtual void publish(Publish what, Done done) = 0;
  /// At most one consumer at a time. The broker must outlive it.
  [[nodiscard]] virtual std::unique_ptr<Consumer> consume(const ConsumerOptions& options) = 0;
  [[nodiscard]] virtual BrokerFigures figures() const = 0;
  /// What is pending is answered; then nothing is stored any more. Blocks, for some seconds at most.
  virtual void stop() = 0;
};

}  // namespace sluice::queue
