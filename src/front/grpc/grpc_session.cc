#include "front/grpc/grpc_session.h"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "front/grpc/connection.h"
#include "front/grpc/service.h"

namespace sluice::front {
namespace {

using boost::system::error_code;

constexpr std::size_t kReadSize = std::size_t{64} * 1024;
constexpr std::size_t kWriteSize = std::size_t{256} * 1024;  // no more is taken from the connection at once
constexpr std::size_t kKeptCapacity = std::size_t{64} * 1024;
constexpr std::chrono::nanoseconds kLinger = std::chrono::seconds(2);

/// The gRPC service of an io thread, made with the thread's first session and gone with its event loop.
class WorkerService final : public boost::asio::execution_context::service {
 public:
  using key_type = WorkerService;
  static inline boost::asio::execution_context::id id;  // NOLINT(readability-identifier-naming)

  explicit WorkerService(boost::asio::execution_context& context) : service(context) {}
  grpc::Service& get(server::Worker& worker) {
    if (!service_) {
      service_ = std::make_unique<grpc::Service>(worker.policy, worker.store, worker.metrics, worker.draining);
    }
    return *service_;
  }
  /// Room for what a turn sends, most of which leaves within the turn.
  std::string& output() { return output_; }
  /// Room for what a turn reads.
  std::span<char> input() { return input_; }

 private:
  void shutdown() override {}
  std::unique_ptr<grpc::Service> service_;
  std::string output_;
  std::array<char, kReadSize> input_{};
};

/// Carries out what the connection says; holds itself alive by its pending operations.
class GrpcSession final : public server::Session,
                          public grpc::Connection::Owner,
                          public std::enable_shared_from_this<GrpcSession> {
 public:
  GrpcSession(server::Worker& worker, server::Transport transport, const GrpcOptions& options)
      : worker_(worker),
        options_(options),
        transport_(std::move(transport)),
        timer_(worker.io),
        shared_(boost::asio::use_service<WorkerService>(worker.io)),
        connection_(*this, shared_.get(worker), options, worker.clock.now(), transport_.is_certified()) {}

  void start() {
    worker_.admit(*this);
    if (worker_.draining) connection_.drain(worker_.clock.now());
    flush();
    arm();
    read();
  }

  void drain() override {
    const auto self = shared_from_this();
    connection_.drain(worker_.clock.now());
    flush();
    arm();
  }

  void abort() override { close(); }

  void output_ready() override {
    boost::asio::post(worker_.io, [self = shared_from_this()] {
      self->flush();
      self->arm();
    });
  }

 private:
  void read() {
    if (is_reading_ || is_writing_ || is_closed_) return;
    is_reading_ = true;
    transport_.async_read(shared_.input(), [self = shared_from_this()](error_code error, std::string_view bytes) {
      self->is_reading_ = false;
      self->on_read(error, bytes);
    });
  }

  void on_read(error_code error, std::string_view bytes) {
    if (is_closed_) return;
    if (error) {
      close();
      return;
    }
    if (is_ending_) {
      read();  // what still comes is of no use, but leaving it unread would reset the connection
      return;
    }
    const bool goes_on =
        connection_.feed({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, worker_.clock.now());
    flush();
    if (!goes_on) finish();
    arm();
    read();
  }

  /// Sends what there is: at once as far as the socket takes it, the rest when it takes more. No reading meanwhile, so
  /// that a peer that does not read cannot make output pile up.
  void flush() {
    if (is_writing_ || is_closed_ || is_ending_) return;
    std::string& output = shared_.output();
    for (;;) {
      output.clear();
      connection_.take_output(output, kWriteSize);
      if (output.empty()) break;
      error_code error;
      const std::size_t sent = transport_.write_some(output, error);
      if (error && error != boost::asio::error::would_block) {
        close();
        return;
      }
      if (sent < output.size()) {
        unsent_.assign(output, sent);
        write();
        break;
      }
      if (output.size() < kWriteSize) break;
    }
    if (output.capacity() > 2 * kWriteSize) output = std::string();
    if (!is_writing_ && connection_.finished()) finish();
  }

  void write() {
    write_deadline_ = deadline(options_.write_timeout);
    wait_writable();
  }

  void wait_writable() {
    is_writing_ = true;
    transport_.async_wait_writable([self = shared_from_this()](error_code error) {
      self->is_writing_ = false;
      self->on_writable(error);
    });
  }

  void on_writable(error_code error) {
    if (is_closed_) return;
    const std::size_t size = error ? 0 : transport_.write_some(unsent_, error);
    if (error == boost::asio::error::would_block) {
      wait_writable();
      return;
    }
    if (error) {
      close();
      return;
    }
    unsent_.erase(0, size);
    if (!unsent_.empty()) {
      write();
    } else {
      write_deadline_ = INT64_MAX;
      if (unsent_.capacity() > kKeptCapacity) unsent_ = std::string();
      flush();
      read();
    }
    arm();
  }

  /// Nothing more will be said: half-closes, and leaves the peer a moment to read and close.
  void finish() {
    if (is_ending_ || is_closed_ || is_writing_) return;
    is_ending_ = true;
    linger_deadline_ = deadline(kLinger);
    transport_.shutdown_send();
  }

  void close() {
    if (is_closed_) return;
    is_closed_ = true;
    transport_.close();
    timer_.cancel();
    connection_.abandon();
  }

  [[nodiscard]] std::int64_t deadline(std::chrono::nanoseconds wait) const {
    return worker_.clock.now().steady + wait.count();
  }

  /// Sees to it that the timer fires no later than the next deadline. It is only ever moved to an earlier time:
  /// deadlines move away with each call, and a timer that fires in vain once costs less than one that moves along.
  void arm() {
    if (is_closed_) return;
    const std::int64_t next =
        std::min({is_ending_ ? INT64_MAX : connection_.next_deadline(), write_deadline_, linger_deadline_});
    if (next >= armed_) return;
    armed_ = next;
    const std::int64_t wait = std::max<std::int64_t>(0, next - worker_.clock.now().steady);
    timer_.expires_after(std::chrono::nanoseconds(wait));
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->on_timer();
    });
  }

  void on_timer() {
    if (is_closed_) return;
    armed_ = INT64_MAX;
    const Time now = worker_.clock.now();
    if (now.steady >= write_deadline_ || now.steady >= linger_deadline_) {
      close();
      return;
    }
    if (!is_ending_) {
      connection_.expire(now);
      flush();
    }
    arm();
  }

  server::Worker& worker_;
  const GrpcOptions& options_;
  server::Transport transport_;
  boost::asio::steady_timer timer_;
  WorkerService& shared_;
  grpc::Connection connection_;
  std::string unsent_;
  bool is_reading_ = false;
  bool is_writing_ = false;
  bool is_ending_ = false;
  bool is_closed_ = false;
  std::int64_t armed_ = INT64_MAX;
  std::int64_t write_deadline_ = INT64_MAX;
  std::int64_t linger_deadline_ = INT64_MAX;
};

}  // namespace

void start_grpc_session(server::Worker& worker, server::Transport transport, const GrpcOptions& options) {
  std::make_shared<GrpcSession>(worker, std::move(transport), options)->start();
}

}  // namespace sluice::front
