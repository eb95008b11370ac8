// All that a connection to one server needs beyond its bytes: what leaves when, deadlines, reconnecting. No socket, no
// clock.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/failure.h"
#include "store/redis/call.h"
#include "store/redis/check_call.h"
#include "store/redis/connection.h"
#include "store/redis/jitter.h"
#include "store/redis/machine.h"
#include "store/redis/node.h"
#include "store/redis/redirect.h"

namespace sluice::store::redis {

/// One server, one pipelined connection.
///
/// Checks wait in calls, in order of arrival. A call leaves as soon as the session is free and few others are on their
/// way, so what comes in the meantime leaves together; there is no timer, and an idle system adds no wait. Where keys
/// may share a call only with others of their group (a slot of a cluster), small calls leave together, in one write.
class Client final : public Machine, private Connection::Owner {
 public:
  class Owner {
   public:
    /// A check has been answered, or not. Not called for checks that were withdrawn. May submit and cancel. `at`: the
    /// server's time at the answer, µs.
    virtual void done(Check& check, Failure failure, std::int64_t at) = 0;
    /// One of the keys of a call could not be used; `words`: what the server says of it.
    virtual void bad_key(Failure failure, std::string_view words) = 0;
    /// A call has left.
    virtual void call_sent(std::size_t requests) = 0;
    /// The server has sent a call elsewhere, or its time to be tried again has come (no redirect). The owner is to give
    /// it to some client's adopt(), or to fail() it.
    virtual void redirected(Client& client, Call& call, const Redirect* redirect);
    /// The connection is up, or could not be made or kept.
    virtual void link_changed(Client& /*client*/, bool /*is_up*/) {}
    /// Fewer replicas than asked for had a call in time.
    virtual void replicas_missed() {}
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
    std::chrono::nanoseconds role_interval{};  ///< between looks at whether it is a master; 0: none
    /// What a new connection carries out of the script, before it is told of and used.
    enum class Trial : std::uint8_t {
      none,
      lenient,  ///< one charge; only what a user may not do, or a login, ends it: other servers may be behind the proxy
      strict    ///< one charge, which must be answered or, in a cluster, sent elsewhere
    };
    Trial trial = Trial::none;
    std::uint32_t groups = 0;  ///< see KeyNaming
    unsigned replicas = 0;     ///< that must have what was charged before that is answered
    std::chrono::milliseconds replica_patience{10};
    std::uint64_t seed = 0;                ///< of the jitter
    std::shared_ptr<CallPool> calls = {};  // NOLINT(readability-redundant-member-init): gcc warns otherwise
  };

  /// Volleys, each of calls that left together, on their way before one that is not full waits for an answer, and
  /// before a full one does.
  static constexpr std::size_t kFewCalls = 2;
  static constexpr std::size_t kMostCalls = 4;
  /// ns: to connect, to log in, and without any answer.
  static constexpr std::int64_t kPatience = 1'000'000'000;

  /// All but `options` must outlive the client.
  Client(const Hello& hello, const Script& script, const Options& options, Node& node, Owner& owner);
  ~Client();

  // -- checks -----------------------------------------------------------------------------------------------------
  /// None: done() will be called, within the timeout. Else the check has failed at once. `caller`: its time.
  [[nodiscard]] Failure submit(Check& check, Limits limits, Time caller, std::int64_t now, std::uint64_t group = 0) {
    return submit_until(check, limits, caller, now, group, now + options_.timeout.count());
  }
  /// The same with a deadline, steady ns. `group`: of the keys; a call holds keys of one group.
  [[nodiscard]] Failure submit_until(Check& check, Limits limits, Time caller, std::int64_t now, std::uint64_t group,
                                     std::int64_t deadline);
  /// May checks be submitted now, as far as can be told?
  [[nodiscard]] Failure obstacle() const;
  /// Withdraws a check: never sent if it has not been, else its answer is ignored. Cost: proportional to the checks
  /// pending.
  /// False: it is not here.
  bool cancel(const Check& check);

  // -- calls that move from node to node --------------------------------------------------------------------------
  /// Takes over a call from another client; it leaves first, or not before `not_before` (0: at once). Then the owner is
  /// asked anew where it belongs.
  void adopt(Call& call, bool asking, std::int64_t not_before, std::int64_t now);
  /// A call that cannot be adopted.
  void fail(Call& call, Failure failure);
  /// The same after this server has refused it; which counts as a failure of the server, if it refuses all.
  void give_up(Call& call, Failure failure);
  /// All that waits is handed to the owner by redirected(), as this server has lost its keys.
  void hand_over(std::int64_t now);
  /// A check is not even submitted, for a reason that obstacle() gave.
  void refuse(Failure reason, std::int64_t now) {
    now_ = now;
    note_check(reason);
  }
  /// Nothing waits and nothing is on its way.
  [[nodiscard]] bool is_idle() const {
    return waiting_.empty() && held_.empty() && connection_.in_flight() == 0 && volleys_in_flight_ == 0;
  }
  /// Where it connects to, for what is told of failures, when the node's name does not say it.
  void set_place(std::string place) { place_ = std::move(place); }
  /// Changes with each connection.
  [[nodiscard]] std::uint64_t link_serial() const { return link_serial_; }
  [[nodiscard]] std::size_t load() const { return waiting_.size() + volleys_in_flight_; }
  /// The key that a probe charges, so that it lies in a slot of this node.
  void set_probe_key(std::string key);
  /// The server is elsewhere now: what is on its way is lost, and a connection is made at once, whatever the breaker
  /// says. That is no failure.
  void switch_over(std::int64_t now);

  // -- time -------------------------------------------------------------------------------------------------------
  /// The node's breaker has opened or closed.
  void node_changed(std::int64_t now);

  // -- of Machine -------------------------------------------------------------------------------------------------
  [[nodiscard]] Wish wish() const override { return wish_; }
  void begin_connect(std::int64_t now) override;
  void finish_disconnect() override { wish_ = Wish::nothing; }
  void connected(std::int64_t now) override;
  void received(std::string_view bytes, std::int64_t now) override;
  void closed(std::int64_t now, std::string_view detail = {}) override;
  void flush(std::int64_t now) override;
  [[nodiscard]] std::string& output() override { return connection_.output(); }
  [[nodiscard]] std::int64_t next_wakeup() const override;
  void wake(std::int64_t now) override;

  /// Connected and logged in.
  [[nodiscard]] bool is_connected() const { return link_ == Link::ready; }
  /// That, and the breaker is closed.
  [[nodiscard]] bool is_up() const { return link_ == Link::ready && !node_.is_open(); }

 private:
  enum class Link : std::uint8_t { down, connecting, greeting, trying, ready };
  struct Pending {
    std::int64_t deadline;
    Call* call;
    std::uint64_t serial;
    friend bool operator>(const Pending& a, const Pending& b) { return a.deadline > b.deadline; }
  };
  struct Open {
    Call* call;
    std::uint64_t serial;
  };
  struct Held {
    std::int64_t until;
    Call* call;
  };
  struct Said {
    Failure about = Failure::none;
    std::string words;
  };
  /// What a probe is judged as.
  struct ProbeCheck final : Check {
    void complete() override {}
  };

  void logged_in() override;
  void answered(Batch& batch, const redisReply& reply) override;
  void failed(Batch& batch, Failure failure) override;
  void replicated(std::uint64_t replicas) override;
  void told_statistics(const redisReply& reply) override;

  [[nodiscard]] Call& new_call(std::uint64_t group);
  [[nodiscard]] Call& open_call(std::uint64_t group, std::int64_t deadline);
  void release(Call& call);
  void await(Call& call);
  [[nodiscard]] bool may_leave(const Call& first) const;
  void send_volley();
  void send(Call& call);
  void landed(Call& call);
  void forget_open(const Call& call);
  void wait_if_due(std::size_t volley);
  void confirm(bool missed);
  void finish_all(Call& call, Failure failure);
  void note_check(Failure failure);
  void fail_waiting(Failure failure);
  void pop_pending();
  void expire();
  [[nodiscard]] bool expire(Call& call);
  void forget_stale();
  void release_held();
  void surrender(Call& call, const Redirect* redirect);
  void note_failure(Failure failure, std::string_view detail = {});
  void note_failure_of(Call& call, Failure failure, std::string_view detail = {});
  void note_answer(Call& call, Failure failure);
  void say(Failure about, std::string_view words);
  [[nodiscard]] std::string_view words_for(Failure failure) const;
  void answered_probe(Call& call, Failure failure);
  void answered_trial(Failure failure);
  void link_made();
  void drop(Failure failure, const std::string& detail = {});
  void drop_quietly();
  void unlink(Failure failure, const std::string& words);
  [[nodiscard]] Failure reason_without_link() const;
  [[nodiscard]] Failure reason_of_expiry(const Call& call) const;
  void retry();
  void renew();
  void reconnect();
  void send_probe();
  void send_trial();
  void send_of_its_own(Check& check);
  void look_for_evictions();
  void forget_evictions();
  [[nodiscard]] std::int64_t retry_time();
  [[nodiscard]] std::int64_t stuck_at() const;

  const Hello& hello_;
  const Options options_;
  Node& node_;
  Owner& owner_;
  Connection connection_;
  AnswerReader answers_;
  Jitter jitter_;

  const std::shared_ptr<CallPool> calls_;
  std::deque<Call*> waiting_;                            ///< not sent; of each group only the last may be open
  std::vector<Held> held_;                               ///< not to be sent yet
  std::vector<Call*> unconfirmed_;                       ///< answered, but replicas have yet to confirm
  std::vector<Pending> pending_;                         ///< a heap of those with checks, the earliest deadline first
  boost::unordered_flat_map<std::uint64_t, Open> open_;  ///< by group; entries may be stale
  std::vector<std::size_t> volleys_;                     ///< of each the calls that are on their way
  std::size_t volleys_in_flight_ = 0;

  Link link_ = Link::down;
  Wish wish_ = Wish::connect;
  std::int64_t now_ = 0;                    ///< of the event being handled
  std::int64_t link_deadline_ = kNoWakeup;  ///< connecting and greeting: give up then
  std::int64_t retry_at_ = kNoWakeup;       ///< down: connect again then; open breaker: perhaps probe then
  std::int64_t renew_at_ = kNoWakeup;       ///< the connection's greatest age
  std::int64_t role_at_ = 0;                ///< its role is to be asked again
  std::uint64_t link_serial_ = 0;
  std::int64_t look_at_ = kNoWakeup;      ///< for evictions
  std::optional<std::uint64_t> evicted_;  ///< as the server told last on this connection
  std::int64_t progress_at_ = 0;          ///< an answer came, or the first call without one left
  std::int64_t backoff_ = 0;
  bool is_counted_ = false;               ///< by the node as a link
  bool probing_ = false;                  ///< this client was chosen to try the server
  Failure unfit_ = Failure::none;         ///< the link is to be dropped for that, once the bytes at hand are read
  Failure link_failure_ = Failure::none;  ///< why there is no link, since there was one
  Said said_;                             ///< by the server or the system, last

  std::string place_;
  std::string probe_key_;
  CountedLimit probe_limit_;
  std::shared_ptr<const RedisLimit> probe_numbers_;
  store::Charge probe_charge_;
  Decision probe_decision_;
  ProbeCheck probe_check_;
  std::int64_t probe_deadline_ = 0;
  ProbeCheck clean_check_;  ///< what a trial has written is removed again
};

}  // namespace sluice::store::redis
