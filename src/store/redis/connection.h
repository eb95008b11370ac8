// One pipelined connection's protocol: log in, load the script, match replies to batches. No socket, no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "store/failure.h"
#include "store/redis/batch.h"
#include "store/redis/reply_reader.h"
#include "store/redis/script.h"

namespace sluice::store::redis {

/// How a connection begins. What it says when it begins counts, so a password may change in between.
struct Hello {
  std::string user;
  std::string password;       ///< empty: no AUTH
  int database = 0;           ///< 0: no SELECT
  bool load_script = true;    ///< false: the first call brings the script's text
  bool wants_master = false;  ///< asks for the server's role, and refuses any but a master
  bool wants_alone = false;   ///< the same by HELLO, where the server knows it, and refuses sentinels and cluster nodes
};

/// Not thread-safe. Owner's functions may call send().
class Connection {
 public:
  class Owner {
   public:
    /// Logged in, script loaded: send() may be used.
    virtual void logged_in() = 0;
    /// The reply to a sent batch; each is answered or failed exactly once.
    virtual void answered(Batch& batch, const redisReply& reply) = 0;
    /// No reply will come; it may have been executed.
    virtual void failed(Batch& batch, Failure failure) = 0;
    /// So many replicas have what was sent before wait_for_replicas().
    virtual void replicated(std::uint64_t /*replicas*/) {}
    /// The reply to ask_statistics().
    virtual void told_statistics(const redisReply& /*reply*/) {}

   protected:
    ~Owner() = default;
  };

  /// All must outlive the connection.
  Connection(const Hello& hello, const Script& script, Owner& owner) : hello_(hello), script_(script), owner_(owner) {}

  /// A transport is up: forgets everything of the last one and greets.
  void open();
  /// Bytes have come. Anything but none: the transport must be closed for that reason.
  [[nodiscard]] Failure feed(std::string_view bytes);
  /// The transport is gone: everything in flight has failed.
  void close(Failure failure);

  /// Sends what is awaited of a batch, as one call; `asking`: to a node that is only about to get its keys.
  /// Precondition: is_ready(), and something is awaited.
  void send(Batch& batch, bool asking = false);
  /// Waits until so many replicas have what was sent before, or for so long; Owner::replicated() tells.
  void wait_for_replicas(unsigned replicas, std::chrono::milliseconds patience);
  /// Asks for the server's role, between calls: feed() fails with read_only when it is a master no more.
  void ask_role();
  /// Asks the server what it counts. Precondition: is_ready().
  void ask_statistics();
  [[nodiscard]] bool is_ready() const { return ready_; }
  /// Batches that have no reply yet.
  [[nodiscard]] std::size_t in_flight() const { return calls_; }
  /// Does anything have no reply yet?
  [[nodiscard]] bool is_waiting() const { return !awaited_.empty(); }

  /// What the server said when feed() failed, and what to mend, if that tells more than the failure.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  /// Bytes to be written; the transport takes them away.
  [[nodiscard]] std::string& output() { return output_; }

 private:
  enum class Kind : std::uint8_t { auth, hello, select, role, load, asking, call, call_with_text, statistics, wait };
  struct Awaited {
    Kind kind;
    Batch* batch;
    bool asking;
  };

  [[nodiscard]] Failure handle(const Awaited& awaited, const redisReply& reply);
  void greeted();
  [[nodiscard]] Failure handle_greeting(Kind kind, const redisReply& reply);
  [[nodiscard]] Failure handle_hello(const redisReply& reply);
  [[nodiscard]] static Failure handle_role(const redisReply& reply);
  [[nodiscard]] Failure refused(const redisReply& reply);
  [[nodiscard]] Failure refused_as(Failure failure, std::string_view why);
  void await(Kind kind, Batch* batch = nullptr, bool asking = false) { awaited_.push_back({kind, batch, asking}); }
  void write(Batch& batch, Kind kind, bool asking);

  const Hello& hello_;
  const Script& script_;
  Owner& owner_;
  ReplyReader reader_;
  std::deque<Awaited> awaited_;
  std::size_t calls_ = 0;      ///< among them
  std::size_t greetings_ = 0;  ///< among them: what must be answered before send() may be used
  std::string output_;
  std::string refusal_;
  bool ready_ = false;
  bool text_on_its_way_ = false;  ///< a call that brings the script has no reply yet
};

}  // namespace sluice::store::redis
