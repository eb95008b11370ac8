// A connection whose protocol takes bytes and gives bytes: HTTP/1.1, RESP. Everything about sockets is here, everything
// about a protocol in its connection.
#pragma once

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "front/session_host.h"
#include "server/deadline_watch.h"
#include "server/transport.h"
#include "server/worker.h"

namespace sluice::front {

/// Room that the connections of one event loop read into, as only one of them works at a time.
class ReadRoom final : public boost::asio::execution_context::service {
 public:
  using key_type = ReadRoom;                            // NOLINT(readability-identifier-naming): Asio's name
  static inline boost::asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit ReadRoom(boost::asio::execution_context& context) : service(context) {}
  std::array<char, std::size_t{64} * 1024> bytes{};

 private:
  void shutdown() override {}
};

/// `Connection` is what HttpConnection and resp::Connection are: feed, end_of_input, wants_input, output, sent,
/// finished, lingers, deadline, expire, aborted, drain; and held_until, if it holds answers back; and may_end, must_end
/// and end, if its protocol has no word for that. Writes at once what one read has brought about. Owns itself until the
/// connection ends.
template <typename Connection>
class ByteSession final : public server::Session,
                          public server::Watched,
                          public std::enable_shared_from_this<ByteSession<Connection>>,
                          private SessionHost {
 public:
  /// `make(host)` makes the connection.
  template <typename Make>
  ByteSession(server::Worker& worker, server::Transport transport, Make make)
      : worker_(worker),
        watch_(boost::asio::use_service<server::DeadlineWatch>(worker.io)),
        room_(boost::asio::use_service<ReadRoom>(worker.io)),
        transport_(std::move(transport)),
        connection_(make(static_cast<SessionHost&>(*this))) {}

  void start() {
    self_ = this->shared_from_this();
    worker_.admit(*this);
    watch_.add(*this, worker_.clock);
    if (worker_.draining) connection_.drain(worker_.clock.now());
    read_on();
  }

  void drain() override {
    const Time now = worker_.clock.now();
    connection_.drain(now);
    check_deadline(now);
    proceed(now);
  }
  void abort() override { end(); }

  void check_deadline(Time now) override {
    if (now.steady < connection_.deadline()) return;
    // What has come while the connection was thought to be quiet is about to be read.
    if (worker_.draining && connection_.wants_input() && transport_.has_arrived()) return;
    connection_.expire(now);
    if (connection_.aborted()) {
      end();
    } else {
      proceed(now);
    }
  }

  void release() override { self_.reset(); }

 private:
  using ErrorCode = boost::system::error_code;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  static constexpr bool kHoldsBack = requires(const Connection& connection) { connection.held_until(); };
  static constexpr bool kEndsUntold = requires(const Connection& connection) { connection.may_end(); };

  void resumed() override {
    if (std::exchange(is_resuming_, true)) return;
    boost::asio::post(worker_.io, [self = this->shared_from_this()] {
      self->is_resuming_ = false;
      self->proceed(self->worker_.clock.now());
    });
  }
  Poster poster() override {
    return [&io = worker_.io](std::function<void()> work) { boost::asio::post(io, std::move(work)); };
  }

  [[nodiscard]] bool watches_peer() const {
    if constexpr (kHoldsBack) return connection_.held_until() != kNever && !has_more_;
    return false;
  }

  void read_on() {
    if (is_reading_) return;
    if (connection_.wants_input()) {
      is_reading_ = true;
      transport_.async_read(room_.bytes,
                            [self = this->shared_from_this()](const ErrorCode& error, std::string_view bytes) {
                              self->is_reading_ = false;
                              self->has_read(error, bytes);
                            });
    } else if (watches_peer()) {
      is_reading_ = true;
      transport_.async_wait_readable([self = this->shared_from_this()](const ErrorCode& error) {
        self->is_reading_ = false;
        self->look_at_peer(error);
      });
    }
  }

  void has_read(const ErrorCode& error, std::string_view bytes) {
    if (is_ended_) return;
    const Time now = worker_.clock.now();
    if (!error) {
      connection_.feed(bytes, now);
    } else if (error == boost::asio::error::eof) {
      connection_.end_of_input(now);
    } else {
      end();
      return;
    }
    proceed(now);
  }

  /// While an answer is held back: a peer that leaves ends it; one that sends more is read when it has been answered.
  void look_at_peer(const ErrorCode& failed) {
    if (is_ended_) return;
    if (failed) {
      end();
      return;
    }
    if (!connection_.wants_input()) {
      switch (transport_.peek()) {
        case server::Transport::Peek::ended:
          end();
          return;
        case server::Transport::Peek::bytes:
          has_more_ = true;
          break;
        case server::Transport::Peek::nothing:
          break;
      }
    }
    read_on();
  }

  /// Answers are held back to the time of their slot, not to the next tick.
  void arm_hold() {
    if constexpr (kHoldsBack) {
      const std::int64_t until = connection_.held_until();
      if (until == kNever) {
        has_more_ = false;
        return;
      }
      if (hold_ == nullptr) hold_ = std::make_unique<boost::asio::steady_timer>(worker_.io);
      const std::int64_t wait = std::max<std::int64_t>(0, until - worker_.clock.now().steady);
      hold_->expires_after(std::chrono::nanoseconds(wait));
      hold_->async_wait([self = this->shared_from_this()](const ErrorCode& cancelled) {
        if (!cancelled && !self->is_ended_) self->check_deadline(self->worker_.clock.now());
      });
    }
  }

  void wait_writable() {
    is_writing_ = true;
    transport_.async_wait_writable([self = this->shared_from_this()](const ErrorCode& error) {
      self->is_writing_ = false;
      if (self->is_ended_) return;
      if (error) {
        self->end();
      } else {
        self->proceed(self->worker_.clock.now());
      }
    });
  }

  /// Sends what there is to send; then reads on, or ends.
  void proceed(Time now) {
    if (is_ended_) return;
    if constexpr (kEndsUntold) {
      if (connection_.must_end(now) || (connection_.may_end() && !transport_.has_arrived())) {
        transport_.cork();
        connection_.end(now);
      }
    }
    while (!is_writing_ && !connection_.output().empty()) {
      ErrorCode error;
      const std::size_t size = transport_.write_some(connection_.output(), error);
      if (error && error != boost::asio::error::would_block) {
        end();
        return;
      }
      connection_.sent(error ? 0 : size, now);
      if (error) wait_writable();
    }
    if (connection_.finished()) {
      if (!connection_.lingers()) {
        end();
        return;
      }
      if (!std::exchange(is_shut_, true)) transport_.shutdown_send();
    }
    arm_hold();
    read_on();
  }

  void end() {
    if (std::exchange(is_ended_, true)) return;
    transport_.close();
    if (hold_ != nullptr) hold_->cancel();
    Watched::unlink();
    watch_.session_ended();
    // Whoever called may still be at work in this object.
    boost::asio::post(worker_.io, [self = std::move(self_)] {});
  }

  server::Worker& worker_;
  server::DeadlineWatch& watch_;
  ReadRoom& room_;
  server::Transport transport_;
  Connection connection_;
  std::shared_ptr<ByteSession> self_;  ///< until the end: while a store has yet to answer, nothing else holds it
  std::unique_ptr<boost::asio::steady_timer> hold_;  ///< made when an answer is first held back
  bool has_more_ = false;                            ///< meanwhile the peer has sent something
  bool is_resuming_ = false;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_shut_ = false;
  bool is_ended_ = false;
};

}  // namespace sluice::front
