// One pipelined connection's protocol: log in, load the script, match replies to calls. No socket, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "store/failure.h"
#include "store/redis/call.h"
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
    /// The reply to a sent call; each call is answered or failed exactly once.
    virtual void answered(Call& call, const redisReply& reply) = 0;
    /// No reply will come; it may have been executed.
    virtual void failed(Call& call, Failure failure) = 0;

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

  /// Precondition: is_ready().
  void send(Call& call);
  [[nodiscard]] bool is_ready() const { return ready_; }
  /// Calls that have no reply yet.
  [[nodiscard]] std::size_t in_flight() const { return awaited_.size(); }

  /// What the server said when feed() failed while logging in, as error_detail() gives it.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

  /// Bytes to be written; the transport takes them away.
  [[nodiscard]] std::string& output() { return output_; }

 private:
  enum class Kind : std::uint8_t { auth, select, load, call };
  struct Awaited {
    Kind kind;
    Call* call;
  };

  [[nodiscard]] Failure handle(const Awaited& awaited, const redisReply& reply);
  [[nodiscard]] Failure refused(const redisReply& reply);
  void write_call(Call& call, std::string_view verb, std::string_view script);

  const Endpoint& endpoint_;
  const Script& script_;
  Owner& owner_;
  ReplyReader reader_;
  std::deque<Awaited> awaited_;
  std::string output_;
  std::string refusal_;
  bool ready_ = false;
};

}  // namespace sluice::store::redis
