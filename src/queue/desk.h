// Where requests beyond their limit are taken in: all queues of a process and their tickets.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/queue_settings.h"
#include "metrics/text_format.h"
#include "policy/rule.h"
#include "queue/broker.h"
#include "queue/message.h"
#include "queue/tickets.h"

namespace sluice::queue {

/// What became of a request that was over its limit.
struct Admission {
  bool stored = false;
  // Stored:
  std::string ticket;
  std::uint64_t place = 0;              ///< in its queue, from 1
  std::chrono::nanoseconds expected{};  ///< until it is worked off
  // Not stored:
  std::string_view code;  ///< queue_full, queue_too_slow, queue_too_old, queue_down; a literal
  std::string message;
  std::chrono::nanoseconds retry_after{};
};

/// One queue as operators see it.
struct QueueFigures {
  std::string name;
  std::string type;
  bool ready = false;
  std::string problem;
  std::optional<std::uint64_t> length;
  std::optional<std::chrono::nanoseconds> oldest;  ///< age; nothing: none waits, or nobody has told
  double rate_in = 0;                              ///< per second, over the last seconds, of this process
  double rate_out = 0;                             ///< the same, of all drainers
  std::optional<std::chrono::nanoseconds> eta;     ///< until it is empty, if nothing else came
  std::uint64_t stored = 0;                        ///< of this process, as are the two below
  std::uint64_t refused = 0;
  std::uint64_t failed = 0;
  DrainReport drained;
};

/// Makes a broker of the settings, or says what is wrong with them.
using MakeBroker = std::function<Result<std::unique_ptr<Broker>>(const config::QueueSettings& settings)>;

/// Thread-safe. One thread of its own looks at the figures twice a second.
class Desk {
 public:
  using Answered = std::function<void(Admission answer)>;

  explicit Desk(std::unique_ptr<Tickets> tickets);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  /// Before start().
  void add(const config::QueueSettings& settings, std::unique_ptr<Broker> broker);
  void start();

  /// Stores `message` for `rule`, which has denied it and has an overflow (else it is refused). Ticket, times and what
  /// may be stored of its headers are seen to here. Calls `answered` once, by any thread, perhaps before it returns,
  /// within the time limits of the tickets and of the queue. Stored: the broker has confirmed it.
  void admit(const policy::Rule& rule, Message message, Answered answered);
  void ticket(const std::string& id, Tickets::Got done) { tickets_->get(id, std::move(done)); }
  void cancel(const std::string& id, Tickets::Moved done);

  [[nodiscard]] std::vector<QueueFigures> figures() const;
  /// As metrics.
  void expose(metrics::TextFormat& text) const;
  /// For drainers in this process; null: there is none of that name.
  [[nodiscard]] Broker* broker(std::string_view queue) const;
  [[nodiscard]] Tickets& tickets() { return *tickets_; }
  /// What is pending is answered. Blocks, for some seconds at most.
  void stop();

 private:
  struct Line;
  /// One request on its way into a broker.
  struct Intake;

  [[nodiscard]] Line* find(std::string_view name) const;
  [[nodiscard]] static std::optional<Admission> refusal(const Line& line, const policy::Overflow& overflow,
                                                        const Limit& limit, Intake& intake);
  void publish(const std::shared_ptr<Intake>& intake);
  /// A ticket that is to say that its request was refused, for as long as a drainer might find that.
  struct Refused;
  void refuse_ticket(Refused refused);
  static void settle_part(Intake& intake);
  void keep();
  void look();

  std::vector<std::unique_ptr<Line>> lines_;
  std::mutex refused_mutex_;
  std::vector<Refused> refused_;            ///< that could not be told to the tickets yet
  const std::unique_ptr<Tickets> tickets_;  ///< ends first, as its last answers concern those above
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::thread keeper_;
};

}  // namespace sluice::queue
