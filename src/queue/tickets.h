// What became of a request that waits: its ticket, and where tickets are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/redis/target.h"

namespace sluice::queue {

/// How long an ended request can be asked for.
inline constexpr std::chrono::milliseconds kTicketAfterlife = std::chrono::hours(1);

/// What a ticket has still to live that ends at `now_us`, and whose request may wait until `expires_us`, or for ever: 0
/// (µs since 1970 UTC). Nothing: the life that it was given at first is as long, and not twice as long.
[[nodiscard]] std::optional<std::chrono::milliseconds> life_of_ended(std::int64_t expires_us, std::int64_t now_us);

enum class TicketState : std::uint8_t { queued, running, done, failed, expired, cancelled };

[[nodiscard]] std::string_view to_text(TicketState state);
[[nodiscard]] std::optional<TicketState> ticket_state(std::string_view text);

/// A value.
struct Ticket {
  std::string queue;
  TicketState state = TicketState::queued;
  std::int64_t created_us = 0;   ///< µs since 1970 UTC
  std::int64_t expected_us = 0;  ///< the same: when it was expected to be worked off, as it was stored
  std::uint64_t place = 0;       ///< in its queue as it was stored, from 1
  std::uint32_t attempts = 0;    ///< times that its delivery was tried, or is about to be
  int status = 0;                ///< of the last answer to its delivery; 0: none
  std::string reason;            ///< of a failure

  friend bool operator==(const Ticket&, const Ticket&) = default;
};

/// What a queue's drainers tell of themselves; all of them together.
struct DrainReport {
  std::uint64_t delivered = 0;
  std::uint64_t duplicates = 0;  ///< deliveries begun of what may have been delivered before
  std::uint64_t dead = 0;
  std::uint64_t expired = 0;
  std::uint64_t foreign = 0;
  std::uint64_t drainers = 0;  ///< that have reported lately
  std::uint64_t held = 0;      ///< messages in their hands
  std::int64_t oldest_us = 0;  ///< when the oldest message in their hands was created; 0: none
};

/// Where tickets are. Thread-safe. Answers come by any thread, perhaps before the call returns; they must not block. No
/// answer within the store's own time limit: `reached` is false, and the change may have been made.
class Tickets {
 public:
  virtual ~Tickets() = default;

  using Created = std::function<void(bool reached)>;
  /// A new ticket, or no change when there is one of that id already.
  virtual void create(std::string id, Ticket ticket, std::chrono::milliseconds life, Created done) = 0;

  using Got = std::function<void(bool reached, std::optional<Ticket> ticket)>;
  virtual void get(std::string id, Got done) = 0;

  /// `before`: the state that was found; nothing: there was no ticket.
  using Moved = std::function<void(bool reached, std::optional<TicketState> before)>;
  /// A drainer begins: queued and running become running, with one more attempt. Others stay. What has no ticket gets
  /// one.
  virtual void claim(std::string id, std::string queue, std::chrono::milliseconds life, Moved done) = 0;
  /// Adds attempts to the one that each claim stands for, or takes that one back: of running, others stay. What
  /// nobody has tried is queued again. Lost when the store is away.
  virtual void add_attempts(std::string id, int more) = 0;
  /// queued becomes cancelled; others stay.
  virtual void cancel(std::string id, std::string reason, std::chrono::milliseconds life, Moved done) = 0;
  /// Its request was refused, though it may lie in the broker: queued, or no ticket, becomes `ticket`, which is
  /// cancelled; others stay.
  virtual void refuse(std::string id, Ticket ticket, std::chrono::milliseconds life, Moved done) = 0;
  /// queued and running become `state`; others stay. Without a `life` it may keep the one that it has, which costs
  /// less.
  virtual void finish(std::string id, TicketState state, int status, std::string reason,
                      std::optional<std::chrono::milliseconds> life, Moved done) = 0;

  /// Adds the counts to those of `queue`; the rest replaces what `drainer` told before. Lost when the store is away.
  virtual void report(std::string queue, std::string drainer, DrainReport added) = 0;
  using Told = std::function<void(bool reached, DrainReport report)>;
  virtual void read_report(std::string queue, Told done) = 0;
};

/// In this process. At most `most` tickets: then none is created.
[[nodiscard]] std::unique_ptr<Tickets> make_memory_tickets(std::size_t most);

struct RedisTicketsOptions {
  std::string url;                ///< one server, sentinels that name it, or nodes of a cluster
  store::redis::Access access{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers without it
  std::string prefix;             ///< of all keys
  std::chrono::milliseconds timeout = std::chrono::seconds(1);
};
/// In Redis or Valkey, by one thread of its own, which has one connection (in a cluster: to each master). Fails when
/// the URL or a file for TLS cannot be used.
[[nodiscard]] Result<std::unique_ptr<Tickets>> make_redis_tickets(const RedisTicketsOptions& options);

}  // namespace sluice::queue
