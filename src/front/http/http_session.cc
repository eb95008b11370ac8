#include "front/http/http_session.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "front/http/http_connection.h"
#include "server/deadline_watch.h"

namespace sluice::http {
namespace {

namespace asio = boost::asio;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;

/// What the sessions of one event loop share.
class HttpThread final : public asio::execution_context::service {
 public:
  using key_type = HttpThread;            // NOLINT(readability-identifier-naming): Asio's name
  static asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit HttpThread(asio::io_context& io) : asio::execution_context::service(io), watch(io) {}

  server::DeadlineWatch watch;
  Scratch scratch;
  std::array<char, std::size_t{64} * 1024> buffer{};

 private:
  void shutdown() override { watch.shutdown(); }
};

asio::execution_context::id HttpThread::id;

std::string address_of(const Tcp::socket& socket) {
  ErrorCode error;
  const Tcp::endpoint peer = socket.remote_endpoint(error);
  return error ? std::string() : peer.address().to_string(error);
}

/// Reads when the socket is readable into the thread's buffer, so that an idle connection holds none, and writes at
/// once what one read has brought about.
class HttpSession final : public server::Session,
                          public server::Watched,
                          public std::enable_shared_from_this<HttpSession>,
                          private HttpConnection::Host {
 public:
  HttpSession(server::Worker& worker, HttpThread& thread, Tcp::socket socket, const HttpContext& context,
              std::string client)
      : worker_(worker),
        thread_(thread),
        socket_(std::move(socket)),
        connection_(Environment{.context = context,
                                .policy = worker.policy,
                                .store = *worker.store,
                                .metrics = worker.metrics,
                                .clock = worker.clock,
                                .draining = worker.draining,
                                .scratch = thread.scratch},
                    *this, worker.clock.now(), client.empty() ? address_of(socket_) : std::move(client)) {}

  void start() {
    self_ = shared_from_this();
    worker_.admit(*this);
    thread_.watch.add(*this, worker_.clock);
    ErrorCode error;
    std::ignore = socket_.set_option(Tcp::no_delay(true), error);
    if (!error) std::ignore = socket_.non_blocking(true, error);
    if (error) {
      end();
    } else {
      wait_readable();
    }
  }

  void drain() override {
    connection_.drain();
    proceed(worker_.clock.now());
  }
  void abort() override { end(); }

  void check_deadline(Time now) override {
    if (now.steady < connection_.deadline()) return;
    connection_.expire(now);
    if (connection_.aborted()) {
      end();
    } else {
      proceed(now);
    }
  }

  void release() override { self_.reset(); }

 private:
  void resumed() override { proceed(worker_.clock.now()); }
  Poster poster() override {
    return [&io = worker_.io](std::function<void()> work) { asio::post(io, std::move(work)); };
  }

  void wait_readable() {
    const bool watches = connection_.held_until() != kNever && !has_more_;
    if (waits_readable_ || (!connection_.wants_input() && !watches)) return;
    waits_readable_ = true;
    socket_.async_wait(Tcp::socket::wait_read, [self = shared_from_this()](const ErrorCode& error) {
      self->waits_readable_ = false;
      self->readable(error);
    });
  }

  void readable(const ErrorCode& failed) {
    if (ended_) return;
    if (failed) {
      end();
      return;
    }
    const Time now = worker_.clock.now();
    if (!connection_.wants_input()) {
      watch_peer();
      return;
    }
    ErrorCode error;
    const std::size_t size = socket_.read_some(asio::buffer(thread_.buffer), error);
    if (!error) {
      connection_.feed({thread_.buffer.data(), size}, now);
    } else if (error == asio::error::eof) {
      connection_.end_of_input(now);
    } else if (error != asio::error::would_block) {
      end();
      return;
    }
    proceed(now);
  }

  /// While an answer is held back: a peer that leaves ends it; one that sends more is read when it has been answered.
  void watch_peer() {
    char next = 0;
    const ssize_t size = ::recv(socket_.native_handle(), &next, 1, MSG_PEEK);
    if (size > 0) {
      has_more_ = true;
    } else if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
      wait_readable();
    } else {
      end();
    }
  }

  /// Answers are held back to the time of their slot, not to the next tick.
  void arm_hold() {
    const std::int64_t until = connection_.held_until();
    if (until == kNever) {
      has_more_ = false;
      return;
    }
    if (hold_ == nullptr) hold_ = std::make_unique<asio::steady_timer>(worker_.io);
    const std::int64_t wait = std::max<std::int64_t>(0, until - worker_.clock.now().steady);
    hold_->expires_after(std::chrono::nanoseconds(wait));
    hold_->async_wait([self = shared_from_this()](const ErrorCode& cancelled) {
      if (!cancelled && !self->ended_) self->check_deadline(self->worker_.clock.now());
    });
  }

  void wait_writable() {
    waits_writable_ = true;
    socket_.async_wait(Tcp::socket::wait_write, [self = shared_from_this()](const ErrorCode& error) {
      self->waits_writable_ = false;
      if (self->ended_) return;
      if (error) {
        self->end();
      } else {
        self->proceed(self->worker_.clock.now());
      }
    });
  }

  /// Sends what there is to send; then reads on, or ends.
  void proceed(Time now) {
    if (ended_) return;
    while (!waits_writable_ && !connection_.output().empty()) {
      ErrorCode error;
      const std::string_view output = connection_.output();
      const std::size_t size = socket_.write_some(asio::buffer(output.data(), output.size()), error);
      if (error == asio::error::would_block) {
        wait_writable();
      } else if (error) {
        end();
        return;
      } else {
        connection_.sent(size, now);
      }
    }
    if (connection_.finished()) {
      if (!connection_.lingers()) {
        end();
        return;
      }
      ErrorCode ignored;
      if (!std::exchange(shut_, true)) std::ignore = socket_.shutdown(Tcp::socket::shutdown_send, ignored);
    }
    arm_hold();
    wait_readable();
  }

  void end() {
    if (std::exchange(ended_, true)) return;
    ErrorCode ignored;
    std::ignore = socket_.close(ignored);
    if (hold_ != nullptr) hold_->cancel();
    Watched::unlink();
    thread_.watch.session_ended();
    // Whoever called may still be at work in this object.
    asio::post(worker_.io, [self = std::move(self_)] {});
  }

  server::Worker& worker_;
  HttpThread& thread_;
  Tcp::socket socket_;
  HttpConnection connection_;
  std::shared_ptr<HttpSession> self_;         ///< until the end: while a store has yet to answer, nothing else holds it
  std::unique_ptr<asio::steady_timer> hold_;  ///< made when an answer is first held back
  bool has_more_ = false;                     ///< meanwhile the peer has sent something
  bool waits_readable_ = false;
  bool waits_writable_ = false;
  bool shut_ = false;
  bool ended_ = false;
};

}  // namespace

void start_http_session(server::Worker& worker, Tcp::socket socket, const HttpContext& context, std::string client) {
  auto& thread = asio::use_service<HttpThread>(worker.io);
  std::make_shared<HttpSession>(worker, thread, std::move(socket), context, std::move(client))->start();
}

}  // namespace sluice::http
