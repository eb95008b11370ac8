#include "server/tls_handshake.h"

#include <algorithm>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "base/drain.h"
#include "base/log.h"
#include "server/deadline_watch.h"

namespace sluice::server {
namespace {

namespace asio = boost::asio;

// A few round trips over the worst of links.
constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(10);
// How long a peer may take to read why it was refused.
constexpr std::chrono::nanoseconds kLinger = std::chrono::seconds(2);
constexpr std::chrono::nanoseconds kLogInterval = std::chrono::seconds(1);

/// When this event loop has last told of a failure, and how many there were since.
class FailureLog final : public asio::execution_context::service {
 public:
  using key_type = FailureLog;                   // NOLINT(readability-identifier-naming): Asio's name
  static inline asio::execution_context::id id;  // NOLINT(readability-identifier-naming): Asio's name

  explicit FailureLog(asio::execution_context& context) : service(context) {}

  void tell(Time now, std::string_view client, std::string_view reason) {
    if (now.steady < next_) {
      ++untold_;
      return;
    }
    log::warn("a TLS handshake has failed",
              {{"client", client}, {"reason", reason}, {"not_logged_before", std::to_string(untold_)}});
    next_ = now.steady + kLogInterval.count();
    untold_ = 0;
  }

 private:
  void shutdown() override {}
  std::int64_t next_ = INT64_MIN;
  std::uint64_t untold_ = 0;
};

/// Owns itself until hands are shaken or the connection ends.
class TlsHandshake final : public Session, public Watched, public std::enable_shared_from_this<TlsHandshake> {
 public:
  TlsHandshake(Worker& worker, Transport transport, const StartSession& start, std::string client)
      : worker_(worker),
        watch_(asio::use_service<DeadlineWatch>(worker.io)),
        transport_(std::move(transport)),
        start_(start),
        client_(std::move(client)),
        deadline_(worker.clock.now().steady + kPatience.count()) {}

  void begin() {
    self_ = shared_from_this();
    worker_.admit(*this);
    watch_.add(*this, worker_.clock);
    if (worker_.draining) drain();
    transport_.async_handshake([self = shared_from_this()](const Transport::ErrorCode& error) {
      if (self->is_ended_) return;
      if (error) {
        self->refuse(self->transport_.failure());
      } else {
        self->succeed();
      }
    });
  }

  /// The first request may be on its way behind it.
  void drain() override {
    if (!is_refused_) deadline_ = std::min(deadline_, worker_.clock.now().steady + kDrainGrace.count());
  }
  void abort() override { end(); }
  void check_deadline(Time now) override {
    if (now.steady < deadline_) return;
    if (!is_refused_) tell("the peer has not finished it in time");
    end();
  }
  void release() override { self_.reset(); }

 private:
  void succeed() {
    Transport transport = std::move(transport_);
    // Before the end of this session, which may be the last one of a worker that is to stop.
    try {
      start_(worker_, std::move(transport), std::move(client_));
    } catch (const std::exception& problem) {
      log::error("cannot serve a connection", {{"what", problem.what()}});
    }
    leave();
  }

  void tell(std::string_view reason) {
    worker_.metrics.add(metrics::Counter::tls_failures);
    const std::string client = client_.empty() ? transport_.peer_address() : client_;
    asio::use_service<FailureLog>(worker_.io).tell(worker_.clock.now(), client, reason);
  }

  /// OpenSSL has told the peer why. To close now, with bytes of its unread, could destroy that on its way.
  void refuse(const std::string& reason) {
    tell(reason.empty() ? "the connection was lost" : reason);
    is_refused_ = true;
    deadline_ = worker_.clock.now().steady + kLinger.count();
    transport_.drop_tls();
    transport_.shutdown_send();
    discard();
  }

  void discard() {
    transport_.async_read({}, [self = shared_from_this()](const Transport::ErrorCode& error, std::string_view) {
      if (self->is_ended_) return;
      if (error) {
        self->end();
      } else {
        self->discard();
      }
    });
  }

  void end() {
    if (is_ended_) return;
    transport_.close();
    leave();
  }

  void leave() {
    is_ended_ = true;
    Watched::unlink();
    watch_.session_ended();
    // Whoever called may still be at work in this object.
    asio::post(worker_.io, [self = std::move(self_)] {});
  }

  Worker& worker_;
  DeadlineWatch& watch_;
  Transport transport_;
  const StartSession& start_;
  std::string client_;
  std::int64_t deadline_;
  std::shared_ptr<TlsHandshake> self_;
  bool is_refused_ = false;
  bool is_ended_ = false;
};

}  // namespace

void start_tls_session(Worker& worker, Transport transport, const StartSession& start, std::string client) {
  std::make_shared<TlsHandshake>(worker, std::move(transport), start, std::move(client))->begin();
}

}  // namespace sluice::server
