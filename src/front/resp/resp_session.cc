#include "front/resp/resp_session.h"

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>

#include "front/resp/connection.h"
#include "server/deadline_watch.h"

namespace sluice::resp {
namespace {

namespace asio = boost::asio;

using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;

/// How long a peer may take to read the last words and close.
constexpr std::chrono::nanoseconds kLinger = std::chrono::seconds(2);

/// What the sessions of one event loop share.
class RespThread final : public asio::execution_context::service {
 public:
  using key_type = RespThread;                   // NOLINT(readability-identifier-naming): Asio's name
  static inline asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit RespThread(asio::io_context& io) : asio::execution_context::service(io), watch(io) {}

  server::DeadlineWatch watch;
  ThrottleLimits limits;
  std::array<char, std::size_t{64} * 1024> buffer{};

 private:
  void shutdown() override { watch.shutdown(); }
};

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Reads when the socket is readable into the thread's buffer, so that an idle connection holds none, and writes at
/// once what one read has brought about.
class RespSession final : public server::Session,
                          public server::Watched,
                          public std::enable_shared_from_this<RespSession>,
                          private Connection::Host {
 public:
  RespSession(server::Worker& worker, RespThread& thread, Tcp::socket socket, const RespOptions& options)
      : worker_(worker),
        thread_(thread),
        socket_(std::move(socket)),
        connection_(Environment{.options = options,
                                .policy = worker.policy,
                                .store = *worker.store,
                                .metrics = worker.metrics,
                                .limits = thread.limits,
                                .draining = worker.draining},
                    *this, next_id(), worker.clock.now()) {}

  void start() {
    self_ = shared_from_this();
    worker_.admit(*this);
    thread_.watch.add(*this, worker_.clock);
    ErrorCode error;
    std::ignore = socket_.non_blocking(true, error);
    if (error) {
      end();
    } else {
      proceed();
    }
  }

  void drain() override { proceed(); }
  void abort() override { end(); }

  void check_deadline(Time now) override {
    if (connection_.is_expired(now) || now.steady >= linger_deadline_) end();
  }
  void release() override { self_.reset(); }

 private:
  void resumed() override {
    if (std::exchange(is_resuming_, true)) return;
    asio::post(worker_.io, [self = shared_from_this()] {
      self->is_resuming_ = false;
      self->proceed();
    });
  }

  void wait_readable() {
    if (waits_readable_ || (!connection_.wants_input() && !is_shut_)) return;
    waits_readable_ = true;
    socket_.async_wait(Tcp::socket::wait_read, [self = shared_from_this()](const ErrorCode& error) {
      self->waits_readable_ = false;
      self->readable(error);
    });
  }

  void readable(const ErrorCode& failed) {
    if (is_ended_) return;
    if (failed) {
      end();
      return;
    }
    if (!connection_.wants_input() && !is_shut_) return;  // full meanwhile: proceed() waits again
    ErrorCode error;
    const std::size_t size = socket_.read_some(asio::buffer(thread_.buffer), error);
    if (error == asio::error::would_block) {
      wait_readable();
      return;
    }
    if (error && error != asio::error::eof) {
      end();
      return;
    }
    if (is_shut_) {  // what comes after the last words is not read, but it must be taken, or they are lost
      if (error) {
        end();
      } else {
        wait_readable();
      }
      return;
    }
    const Time now = worker_.clock.now();
    if (error) {
      connection_.end_of_input(now);
    } else {
      connection_.feed({thread_.buffer.data(), size}, now);
    }
    proceed(now);
  }

  void wait_writable() {
    waits_writable_ = true;
    socket_.async_wait(Tcp::socket::wait_write, [self = shared_from_this()](const ErrorCode& error) {
      self->waits_writable_ = false;
      if (self->is_ended_) return;
      if (error) {
        self->end();
      } else {
        self->proceed();
      }
    });
  }

  void proceed() { proceed(worker_.clock.now()); }

  /// Sends what there is to send, and goes on with commands that waited for room; then reads on, or ends.
  void proceed(Time now) {
    if (is_ended_) return;
    do {
      connection_.proceed(now);
      if (!send(now)) return;
    } while (connection_.can_proceed());
    if (connection_.finished()) {
      shut();
    }
    wait_readable();
  }

  /// False: the session has ended.
  bool send(Time now) {
    while (!waits_writable_ && !connection_.output().empty()) {
      ErrorCode error;
      const std::string_view output = connection_.output();
      const std::size_t size = socket_.write_some(asio::buffer(output.data(), output.size()), error);
      if (error && error != asio::error::would_block) {
        end();
        return false;
      }
      connection_.sent(error ? 0 : size, now);
      if (error) wait_writable();
    }
    return true;
  }

  void shut() {
    if (std::exchange(is_shut_, true)) return;
    linger_deadline_ = worker_.clock.now().steady + kLinger.count();
    ErrorCode ignored;
    std::ignore = socket_.shutdown(Tcp::socket::shutdown_send, ignored);
  }

  void end() {
    if (std::exchange(is_ended_, true)) return;
    ErrorCode ignored;
    std::ignore = socket_.close(ignored);
    Watched::unlink();
    thread_.watch.session_ended();
    // Whoever called may still be at work in this object.
    asio::post(worker_.io, [self = std::move(self_)] {});
  }

  server::Worker& worker_;
  RespThread& thread_;
  Tcp::socket socket_;
  Connection connection_;
  std::shared_ptr<RespSession> self_;  ///< until the end: while a store has yet to answer, nothing else holds it
  std::int64_t linger_deadline_ = INT64_MAX;
  bool is_resuming_ = false;
  bool waits_readable_ = false;
  bool waits_writable_ = false;
  bool is_shut_ = false;
  bool is_ended_ = false;
};

}  // namespace

void start_resp_session(server::Worker& worker, Tcp::socket socket, const RespOptions& options) {
  auto& thread = asio::use_service<RespThread>(worker.io);
  std::make_shared<RespSession>(worker, thread, std::move(socket), options)->start();
}

}  // namespace sluice::resp
