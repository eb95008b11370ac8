// All that a connection to one server needs beyond its bytes: deadlines, the breaker, reconnecting. No socket, no
// clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/failure.h"
#include "store/redis/breaker.h"
#include "store/redis/call.h"
#include "store/redis/connection.h"
#include "store/redis/jitter.h"

namespace sluice::store::redis {

/// One server, one pipelined connection. Every `now` is steady time in ns. A transport carries out what wish() says and
/// tells what happens. Not thread-safe.
class Client final : private Connection::Owner {
 public:
  class Owner {
   public:
    /// Reads the answer into the call's check; what is wrong with it, if anything.
    virtual Failure read(Call& call, const redisReply& reply) = 0;
    /// A check's call has ended, well or not. Not called for checks that were withdrawn. May submit and cancel.
    virtual void done(Check& check, Failure failure) = 0;
    /// Fills in a call that charges a key made for it alone, to see whether the server would serve.
    virtual void write_probe(Call& call) = 0;
    /// Checks can be answered from the server, or not (any longer), and why. Told once when it is first known.
    /// `detail`: the server's own words, if they tell more than the reason.
    virtual void state_changed(bool up, Failure reason, std::string_view detail) = 0;

   protected:
    ~Owner() = default;
  };

  struct Options {
    std::chrono::nanoseconds timeout = std::chrono::milliseconds(20);
    unsigned failures = 5;  ///< in a row, until the breaker opens
    std::chrono::nanoseconds probe_interval = std::chrono::milliseconds(500);
    std::uint64_t seed = 0;  ///< of the jitter
  };

  /// What the transport should do now.
  enum class Wish : std::uint8_t { nothing, connect, disconnect };

  static constexpr std::int64_t kNoWakeup = std::numeric_limits<std::int64_t>::max();

  /// `endpoint`, `script` and `owner` must outlive the client.
  Client(const Endpoint& endpoint, const Script& script, const Options& options, Owner& owner);

  // -- calls ------------------------------------------------------------------------------------------------------
  /// A call to fill in. It goes back by submit() or discard().
  [[nodiscard]] Call& new_call();
  void discard(Call& call);
  /// None: done() will be called, within the timeout. Else the call has failed at once and is discarded.
  [[nodiscard]] Failure submit(Call& call, std::int64_t now);
  /// Withdraws the call of `check`: never sent if it has not been, else its answer is ignored.
  void cancel(const Check& check);

  // -- time -------------------------------------------------------------------------------------------------------
  /// When wake() is to be called next.
  [[nodiscard]] std::int64_t next_wakeup() const;
  void wake(std::int64_t now);

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
  [[nodiscard]] bool is_up() const { return link_ == Link::ready && !breaker_.is_open(); }

 private:
  enum class Link : std::uint8_t { down, connecting, greeting, ready };
  struct Deadline {
    Call* call;
    std::uint64_t serial;
    std::int64_t at;
  };

  void logged_in() override;
  void answered(Call& call, const redisReply& reply) override;
  void failed(Call& call, Failure failure) override;

  void release(Call& call);
  void finish(Call& call, Failure failure);
  void fail_waiting(Failure failure);
  void note_failure(Failure failure, std::string detail = {});
  void note_success();
  void tell_state();
  void drop(Failure failure, std::string detail = {});
  void send_probe();
  void forget_stale_deadlines();
  [[nodiscard]] std::int64_t retry_wait();

  const Options options_;
  Owner& owner_;
  Connection connection_;
  Breaker breaker_;
  Jitter jitter_;

  std::vector<std::unique_ptr<Call>> calls_;  ///< all of them
  std::vector<Call*> free_;
  std::deque<Call*> waiting_;  ///< for the connection to be ready
  std::deque<Deadline> deadlines_;

  Link link_ = Link::down;
  Wish wish_ = Wish::connect;
  std::int64_t now_ = 0;                    ///< of the event being handled
  std::int64_t link_deadline_ = kNoWakeup;  ///< connecting and greeting: give up then
  std::int64_t retry_at_ = kNoWakeup;       ///< down: connect again then; open breaker: probe then
  std::int64_t backoff_ = 0;
  Call* probe_ = nullptr;  ///< the probe in flight
  std::int64_t probe_sent_ = 0;
  Failure doomed_ = Failure::none;         ///< the link is to be dropped for this, once the bytes at hand are read
  std::optional<bool> told_;               ///< what the owner was last told of is_up()
  Failure reason_ = Failure::unreachable;  ///< of the last failure
  std::string detail_;                     ///< of the last failure, in the server's words
};

}  // namespace sluice::store::redis
