// One pipelined connection's protocol: log in, load the script, match replies to batches. No socket, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "store/failure.h"
#include "store/redis/batch.h"
#include "store/redis/reply_reader.h"
#include "store/redis/script.h"
#include "store/redis/url.h"

namespace sluice::store::redis {

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
    /// The reply to ask_statistics().
    virtual void told_statistics(const redisReply& /*reply*/) {}

   protected:
    ~Owner() = default;
  };

  /// All must outlive the connection.
  Connection(const Endpoint& endpoint, const Script& script, Owner& owner)
      : endpoint_(endpoint), script_(script), owner_(owner) {}

  /// A transport is up: forgets everything of the last one and greets.
  void open();
  /// Bytes have come. Anything but none: the transport must be closed for that reason.
  [[nodiscard]] Failure feed(std::string_view bytes);
  /// The transport is gone: everything in flight has failed.
  void close(Failure failure);

  /// Sends what is awaited of a batch, as one call. Precondition: is_ready(), and something is awaited.
  void send(Batch& batch);
  /// Asks the server what it counts. Precondition: is_ready().
  void ask_statistics();
  [[nodiscard]] bool is_ready() const { return ready_; }
  /// Batches that have no reply yet.
  [[nodiscard]] std::size_t in_flight() const { return awaited_.size() - questions_; }
  /// Does anything have no reply yet?
  [[nodiscard]] bool is_waiting() const { return !awaited_.empty(); }

  /// What the server said when feed() failed while logging in, as error_detail() gives it.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  /// Bytes to be written; the transport takes them away.
  [[nodiscard]] std::string& output() { return output_; }

 private:
  enum class Kind : std::uint8_t { auth, select, load, call, call_with_text, statistics };
  struct Awaited {
    Kind kind;
    Batch* batch;
  };

  [[nodiscard]] Failure handle(const Awaited& awaited, const redisReply& reply);
  [[nodiscard]] Failure refused(const redisReply& reply);
  void write(Batch& batch, Kind kind);

  const Endpoint& endpoint_;
  const Script& script_;
  Owner& owner_;
  ReplyReader reader_;
  std::deque<Awaited> awaited_;
  std::size_t questions_ = 0;  ///< for statistics, among those awaited
  std::string output_;
  std::string refusal_;
  bool ready_ = false;
  bool text_on_its_way_ = false;  ///< a call that brings the script has no reply yet
};

}  // namespace sluice::store::redis
