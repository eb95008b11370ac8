#include "front/http/http_session.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive/list.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "front/http/http_connection.h"

namespace sluice::http {
namespace {

namespace asio = boost::asio;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;

class HttpSession;

/// Marks a session in its thread's list of those whose deadlines are watched.
using Watched = boost::intrusive::list_base_hook<boost::intrusive::tag<class WatchedTag>,
                                                 boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// What the sessions of one event loop share: buffers, and one timer for all of their deadlines.
class HttpThread final : public asio::execution_context::service {
 public:
  using key_type = HttpThread;            // NOLINT(readability-identifier-naming): Asio's name
  static asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit HttpThread(asio::io_context& io) : asio::execution_context::service(io), timer_(io) {}

  void watch(HttpSession& session);
  /// Stops the timer after the last session, so that an idle process sleeps and a loop without work ends.
  void session_ended();

  Scratch scratch;
  std::array<char, std::size_t{64} * 1024> buffer{};

 private:
  void shutdown() override;
  void arm();
  void sweep();

  /// Deadlines are met this late at most.
  static constexpr std::chrono::milliseconds kTick{250};

  asio::steady_timer timer_;
  bool armed_ = false;
  boost::intrusive::list<HttpSession, boost::intrusive::base_hook<Watched>, boost::intrusive::constant_time_size<false>>
      sessions_;
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
                          public Watched,
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
    thread_.watch(*this);
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

  void check_deadline(Time now) {
    if (now.steady < connection_.deadline()) return;
    connection_.expire(now);
    if (connection_.aborted()) {
      end();
    } else {
      proceed(now);
    }
  }

  /// For the end of the event loop: nothing will call this session any more.
  void release() { self_.reset(); }

  [[nodiscard]] const Clock& clock() const { return worker_.clock; }

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
    thread_.session_ended();
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

void HttpThread::watch(HttpSession& session) {
  sessions_.push_back(session);
  if (!armed_) arm();
}

void HttpThread::session_ended() {
  if (sessions_.empty()) timer_.cancel();
}

void HttpThread::arm() {
  armed_ = true;
  timer_.expires_after(kTick);
  timer_.async_wait([this](const ErrorCode&) {
    armed_ = false;
    if (!sessions_.empty()) sweep();
  });
}

void HttpThread::sweep() {
  const Time now = sessions_.front().clock().now();
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    HttpSession& session = *next++;
    session.check_deadline(now);
  }
  if (!sessions_.empty()) arm();
}

void HttpThread::shutdown() {
  while (!sessions_.empty()) {
    HttpSession& session = sessions_.front();
    sessions_.pop_front();
    session.release();
  }
}

}  // namespace

void start_http_session(server::Worker& worker, Tcp::socket socket, const HttpContext& context, std::string client) {
  auto& thread = asio::use_service<HttpThread>(worker.io);
  std::make_shared<HttpSession>(worker, thread, std::move(socket), context, std::move(client))->start();
}

}  // namespace sluice::http
