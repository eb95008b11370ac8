// All that a connection to one server needs beyond its bytes: what leaves when, deadlines, reconnecting. No socket, no
// clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/failure.h"
#include "store/redis/batch.h"
#include "store/redis/check_call.h"
#include "store/redis/connection.h"
#include "store/redis/jitter.h"
#include "store/redis/node.h"

namespace sluice::store::redis {

/// One server, one pipelined connection. Every `now` is steady time in ns. A transport carries out what wish() says,
/// calls flush() when it is free to write, and tells what happens. Not thread-safe.
///
/// Checks wait in batches, in order of arrival. A batch leaves as soon as the transport is free and few others are on
/// their way, so what comes in the meantime leaves together; there is no timer, and an idle system adds no wait.
class Client final : private Connection::Owner {
 public:
  class Owner {
   public:
    /// A check has been answered, or not. Not called for checks that were withdrawn. May submit and cancel.
    virtual void done(Check& check, Failure failure) = 0;
    /// One of the keys of a call could not be used; `words`: what the server says of it.
    virtual void bad_key(Failure failure, std::string_view words) = 0;
    /// A call has left.
    virtual void call_sent() = 0;
    /// The server has dropped so many keys, of whomever, for want of memory. Told by one client of the node's.
    virtual void keys_evicted(std::uint64_t /*keys*/) {}

   protected:
    ~Owner() = default;
  };

  struct Options {
    std::string prefix = "sluice:";
    std::chrono::nanoseconds timeout = std::chrono::milliseconds(20);
    std::chrono::nanoseconds longest_backoff = std::chrono::milliseconds(500);  ///< between attempts to connect
    std::chrono::nanoseconds max_age{};  ///< of a connection, ± 20 %, then it is made anew; 0: no limit
    /// Between looks at what the server has evicted; 0: none.
    std::chrono::nanoseconds eviction_interval{};
    std::uint64_t seed = 0;  ///< of the jitter
  };

  /// What the transport should do now.
  enum class Wish : std::uint8_t { nothing, connect, disconnect };

  static constexpr std::int64_t kNoWakeup = std::numeric_limits<std::int64_t>::max();
  /// Calls on their way before one that is not full waits for an answer, and before a full one does.
  static constexpr std::size_t kFewCalls = 2;
  static constexpr std::size_t kMostCalls = 4;

  /// All but `options` must outlive the client.
  Client(const Endpoint& endpoint, const Script& script, const Options& options, Node& node, Owner& owner);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // -- checks -----------------------------------------------------------------------------------------------------
  /// None: done() will be called, within the timeout. Else the check has failed at once. `caller`: its time.
  [[nodiscard]] Failure submit(Check& check, Limits limits, Time caller, std::int64_t now);
  /// Withdraws a check: never sent if it has not been, else its answer is ignored. Cost: proportional to the checks
  /// pending.
  void cancel(const Check& check);
  /// The transport is free: puts what may leave now into output().
  void flush(std::int64_t now);

  // -- time -------------------------------------------------------------------------------------------------------
  /// When wake() is to be called next.
  [[nodiscard]] std::int64_t next_wakeup() const;
  void wake(std::int64_t now);
  /// The node's breaker has opened or closed.
  void node_changed(std::int64_t now);

  // -- transport --------------------------------------------------------------------------------------------------
  [[nodiscard]] Wish wish() const { return wish_; }
  /// The wish is being carried out. After disconnect the transport may not report closed().
  void begin_connect(std::int64_t now);
  void finish_disconnect() { wish_ = Wish::nothing; }
  void connected(std::int64_t now);
  void received(std::string_view bytes, std::int64_t now);
  /// The connection could not be made, or is gone.
  void closed(std::int64_t now);
  [[nodiscard]] std::string& output() { return connection_.output(); }

  /// Connected, logged in, and the breaker is closed.
  [[nodiscard]] bool is_up() const { return link_ == Link::ready && !node_.is_open(); }

 private:
  enum class Link : std::uint8_t { down, connecting, greeting, ready };
  struct Slot : Batch {
    bool is_probe = false;
    bool is_sent = false;
    bool is_sealed = false;         ///< takes no more requests
    bool is_full = false;           ///< because no more fit
    bool has_failed = false;        ///< was counted as a failure of the server
    std::size_t next_deadline = 0;  ///< first request whose deadline has not been looked at
    std::uint64_t serial = 0;       ///< changes with each use, so that a stale entry is known
  };
  struct Pending {
    Slot* slot;
    std::uint64_t serial;
  };
  /// What a probe is judged as.
  struct ProbeCheck final : Check {
    void complete() override {}
  };

  void logged_in() override;
  void answered(Batch& batch, const redisReply& reply) override;
  void failed(Batch& batch, Failure failure) override;
  void told_statistics(const redisReply& reply) override;

  [[nodiscard]] Slot& new_slot();
  [[nodiscard]] Slot& open_slot();
  void release(Slot& slot);
  void send(Slot& slot);
  void finish_all(Slot& slot, Failure failure);
  void fail_waiting(Failure failure);
  void expire();
  [[nodiscard]] bool expire(Slot& slot);
  void forget_stale();
  void note_failure(Failure failure, std::string_view detail = {});
  void note_failure_of(Slot& slot, Failure failure, std::string_view detail = {});
  void note_answer(Slot& slot, Failure failure, const redisReply& reply);
  void answered_probe(Slot& slot, Failure failure);
  void drop(Failure failure, const std::string& detail = {});
  void unlink(Failure failure, const std::string& detail);
  void retry();
  void renew();
  void send_probe();
  void look_for_evictions();
  void forget_evictions();
  [[nodiscard]] std::int64_t retry_time();
  [[nodiscard]] std::int64_t stuck_at() const;

  const Options options_;
  Node& node_;
  Owner& owner_;
  Connection connection_;
  AnswerReader answers_;
  Jitter jitter_;

  std::vector<std::unique_ptr<Slot>> slots_;  ///< all of them
  std::vector<Slot*> free_;
  std::deque<Slot*> waiting_;    ///< not sent; only the last may be open
  std::deque<Pending> pending_;  ///< those with checks, in order of arrival

  Link link_ = Link::down;
  Wish wish_ = Wish::connect;
  std::int64_t now_ = 0;                    ///< of the event being handled
  std::int64_t link_deadline_ = kNoWakeup;  ///< connecting and greeting: give up then
  std::int64_t retry_at_ = kNoWakeup;       ///< down: connect again then; open breaker: perhaps probe then
  std::int64_t renew_at_ = kNoWakeup;       ///< the connection's greatest age
  std::int64_t look_at_ = kNoWakeup;        ///< for evictions
  std::optional<std::uint64_t> evicted_;    ///< as the server told last on this connection
  std::int64_t progress_at_ = 0;            ///< an answer came, or the first call without one left
  std::int64_t backoff_ = 0;
  bool is_counted_ = false;  ///< by the node as a link
  bool probing_ = false;     ///< this client was chosen to try the server
  bool is_replica_ = false;  ///< the link is to be dropped, once the bytes at hand are read

  CountedLimit probe_limit_;
  std::shared_ptr<const RedisLimit> probe_numbers_;
  store::Charge probe_charge_;
  Decision probe_decision_;
  ProbeCheck probe_check_;
  std::int64_t probe_deadline_ = 0;
};

}  // namespace sluice::store::redis
