// Limits for gRPC servers in C++. Needs grpc++, nothing else.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/http_limits.h"

namespace sluice {

namespace internal {

/// A field of a Protocol Buffers message.
inline void append_proto_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}
inline void append_proto_number(std::string& out, unsigned field, std::uint64_t value) {
  append_proto_varint(out, std::uint64_t{field} << 3U);
  append_proto_varint(out, value);
}
inline void append_proto_text(std::string& out, unsigned field, std::string_view text) {
  append_proto_varint(out, std::uint64_t{field} << 3U | 2U);
  append_proto_varint(out, text.size());
  out += text;
}

/// A google.rpc.Status with a google.rpc.RetryInfo, for the trailer grpc-status-details-bin.
inline std::string grpc_retry_details(grpc::StatusCode code, std::string_view message, std::chrono::nanoseconds wait) {
  constexpr std::int64_t ticks = 1'000'000'000;
  std::string duration;
  append_proto_number(duration, 1, static_cast<std::uint64_t>(wait.count() / ticks));
  append_proto_number(duration, 2, static_cast<std::uint64_t>(wait.count() % ticks));
  std::string retry;
  append_proto_text(retry, 1, duration);
  std::string any;
  append_proto_text(any, 1, "type.googleapis.com/google.rpc.RetryInfo");
  append_proto_text(any, 2, retry);
  std::string status;
  append_proto_number(status, 1, static_cast<std::uint64_t>(code));
  append_proto_text(status, 2, message);
  append_proto_text(status, 3, any);
  return status;
}

/// "ipv4:192.0.2.7:50051" → "192.0.2.7:50051"; "ipv6:%5B::1%5D:50051" → "[::1]:50051"; "unix:/path" → kUnixPeer;
/// others are no addresses.
inline std::string grpc_peer_address(std::string_view peer) {
  if (peer.starts_with("unix:") || peer.starts_with("unix-abstract:")) return std::string(kUnixPeer);
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return {};
  peer.remove_prefix(5);
  std::string address;
  while (!peer.empty()) {
    const bool opens = peer.starts_with("%5B");
    if (opens || peer.starts_with("%5D")) {
      address += opens ? '[' : ']';
      peer.remove_prefix(3);
    } else {
      address += peer.front();
      peer.remove_prefix(1);
    }
  }
  return address;
}

}  // namespace internal

/// What a call tells, in storage of its own.
class GrpcRequest {
 public:
  /// `method`: "/shop.Articles/Create"; it must live as long as this.
  GrpcRequest(const grpc::ServerContextBase& context, std::string_view method)
      : peer_(internal::grpc_peer_address(context.peer())) {
    headers_.reserve(context.client_metadata().size());
    for (const auto& [name, value] : context.client_metadata()) {
      headers_.push_back({.name = {name.data(), name.size()}, .value = {value.data(), value.size()}});
    }
    request_.method = "POST";
    request_.target = method;
    request_.route = method;
    request_.peer = peer_;
    request_.headers = headers_;
  }
  GrpcRequest(const GrpcRequest&) = delete;
  GrpcRequest& operator=(const GrpcRequest&) = delete;
  ~GrpcRequest() = default;

  /// Views into this and the context.
  [[nodiscard]] const HttpRequest& get() const { return request_; }

 private:
  std::string peer_;
  std::vector<HeaderField> headers_;
  HttpRequest request_;
};

/// OK when it was let in. Denied by a limit: RESOURCE_EXHAUSTED, with google.rpc.RetryInfo in grpc-status-details-bin
/// unless there is no use in waiting; without an identity: UNAUTHENTICATED; because the store failed: UNAVAILABLE.
inline grpc::Status grpc_status(const HttpAnswer& answer) {
  using Reason = HttpAnswer::Reason;
  switch (answer.reason) {
    case Reason::none:
      return grpc::Status::OK;
    case Reason::unauthorized:
      return {grpc::StatusCode::UNAUTHENTICATED, answer.message};
    case Reason::invalid_keys:
      return {grpc::StatusCode::INTERNAL, answer.message};
    case Reason::unavailable:
      if (answer.answer.problem == LimiterAnswer::Problem::deadline) {
        return {grpc::StatusCode::DEADLINE_EXCEEDED, answer.message};
      }
      return {grpc::StatusCode::UNAVAILABLE, answer.message};
    case Reason::over_limit:
    case Reason::waiting:
      break;
  }
  const grpc::StatusCode code = grpc::StatusCode::RESOURCE_EXHAUSTED;
  const Wait wait = answer.answer.decision.retry_after;
  if (wait.is_never()) return {code, answer.message};
  return {code, answer.message, internal::grpc_retry_details(code, answer.message, wait.value())};
}

/// Asks `limits` about a call of a synchronous service, of any kind, at the beginning of its method: what is not OK is
/// to be returned. The policy's `requests:` says what the call is counted by; `method` ("/shop.Articles/Create") is its
/// path and its route, metadata are its headers. The thread waits for the store, as long as its time-out lets it, and
/// for a leaky bucket's slot (`delay: hold`), both no longer than the call's deadline.
inline grpc::Status grpc_limit(HttpLimits& limits, const grpc::ServerContext& context, std::string_view method);
/// The same by keys of the program's: nothing means that it does not know who calls.
inline grpc::Status grpc_limit(HttpLimits& limits, const grpc::ServerContext& context,
                               const std::optional<LimiterRequest>& keys);

namespace internal {

/// Until the call's deadline; nothing: it has none, or a far one.
inline std::optional<std::chrono::nanoseconds> grpc_patience(const grpc::ServerContextBase& context) {
  const auto deadline = context.deadline();
  const auto now = std::chrono::system_clock::now();
  if (deadline > now + std::chrono::hours(1)) return std::nullopt;
  return std::max(std::chrono::nanoseconds(0), std::chrono::nanoseconds(deadline - now));
}

/// The reactor of a call that waits for its decision; then it is the handler's. Deletes itself, as gRPC's do.
class GrpcLimitedCall final : public grpc::ServerUnaryReactor {
 public:
  using Handler = std::function<void(grpc::ServerUnaryReactor* reactor)>;

  explicit GrpcLimitedCall(Handler handler) : handler_(std::move(handler)) {}

  /// `start(done)` begins the check. Called before gRPC knows this, so that neither OnCancel nor OnDone comes
  /// meanwhile.
  template <typename Start>
  void begin(Start start) {
    pending_ = start([this](const HttpAnswer& answer) {
      if (answer.allowed) {
        // On a thread of gRPC's: the limiter's must not be held up.
        go_on_after(answer.hold);
      } else {
        Finish(grpc_status(answer));
      }
    });
  }
  /// It was let in, after `hold`. Called as begin() is.
  void begin(std::chrono::nanoseconds hold) { go_on_after(hold); }

 private:
  void go_on_after(std::chrono::nanoseconds hold) {
    const std::scoped_lock lock(mutex_);
    if (!cancelled_) {
      is_set_ = true;
      // Rounded up: not a tick too early.
      const auto when = std::chrono::ceil<std::chrono::system_clock::duration>(hold) + std::chrono::system_clock::now();
      alarm_.Set(when, [this](bool in_time) {
        if (in_time) {
          handler_(this);
        } else {
          Finish(grpc::Status::CANCELLED);
        }
      });
      return;
    }
    alarm_.Set(std::chrono::system_clock::now(), [this](bool /*in_time*/) { Finish(grpc::Status::CANCELLED); });
  }
  void OnCancel() override {
    pending_.cancel();
    const std::scoped_lock lock(mutex_);
    cancelled_ = true;
    if (is_set_) alarm_.Cancel();
  }
  void OnDone() override { delete this; }

  Handler handler_;
  Limiter::Pending pending_;
  std::mutex mutex_;        // guards what follows
  bool cancelled_ = false;  // the client has left
  bool is_set_ = false;     // the alarm
  grpc::Alarm alarm_;
};

/// A call of a callback service: `check(answer, patience)` asks where that answers at once, `start(done, patience)`
/// where it does not.
template <typename Check, typename Start>
grpc::ServerUnaryReactor* grpc_limited_call(HttpLimits& limits, grpc::CallbackServerContext& context,
                                            GrpcLimitedCall::Handler handler, Check check, Start start) {
  const std::optional<std::chrono::nanoseconds> patience = grpc_patience(context);
  if (!limits.is_immediate()) {
    auto* const call = new GrpcLimitedCall(std::move(handler));
    call->begin([&](HttpLimits::Done done) { return start(std::move(done), patience); });
    return call;
  }
  thread_local HttpAnswer answer;  // its memory serves every call
  check(answer, patience);
  if (answer.allowed && answer.hold.count() != 0) {
    auto* const call = new GrpcLimitedCall(std::move(handler));
    call->begin(answer.hold);
    return call;
  }
  // gRPC's own reactor needs no memory, and its end no other thread.
  grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
  if (answer.allowed) {
    handler(reactor);
  } else {
    reactor->Finish(grpc_status(answer));
  }
  return reactor;
}

/// For a synchronous method, whose thread waits for a leaky bucket's slot.
inline grpc::Status grpc_held_status(const HttpAnswer& answer) {
  if (answer.hold.count() > 0) std::this_thread::sleep_for(answer.hold);
  return grpc_status(answer);
}

}  // namespace internal

inline grpc::Status grpc_limit(HttpLimits& limits, const grpc::ServerContext& context, std::string_view method) {
  HttpAnswer answer;
  limits.check(GrpcRequest(context, method).get(), answer, internal::grpc_patience(context),
               HttpAnswerParts::without_headers);
  return internal::grpc_held_status(answer);
}
inline grpc::Status grpc_limit(HttpLimits& limits, const grpc::ServerContext& context,
                               const std::optional<LimiterRequest>& keys) {
  HttpAnswer answer;
  limits.check(keys, HttpRequest(), answer, internal::grpc_patience(context), HttpAnswerParts::without_headers);
  return internal::grpc_held_status(answer);
}

/// A method of a synchronous service, limited: `handler()` gives its status, and is called when the call was let in.
/// `what` is the method's name or the keys: see grpc_limit.
///
///     grpc::Status Create(grpc::ServerContext* context, const Article* request, Receipt* response) override {
///       return sluice::grpc_limited(limits_, context, "/shop.Articles/Create", [&] { return create(*request,
///       response); });
///     }
template <typename What, typename Handler>
grpc::Status grpc_limited(HttpLimits& limits, grpc::ServerContext* context, const What& what, Handler&& handler) {
  const grpc::Status status = grpc_limit(limits, *context, what);
  return status.ok() ? std::forward<Handler>(handler)() : status;
}

/// A unary method of a callback service, limited: `handler(reactor)` is called when the call was let in, and finishes
/// it, then or later. No thread waits, neither for the store nor for a leaky bucket's slot (`delay: hold`, at most
/// until the call's deadline); a client that leaves ends the wait.
///
///     grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context, const Article* request,
///                                      Receipt* response) override {
///       return sluice::grpc_limited(limits_, context, "/shop.Articles/Create",
///                                   [=](grpc::ServerUnaryReactor* call) { call->Finish(create(*request, response));
///                                   });
///     }
inline grpc::ServerUnaryReactor* grpc_limited(HttpLimits& limits, grpc::CallbackServerContext* context,
                                              std::string_view method,
                                              std::function<void(grpc::ServerUnaryReactor*)> handler) {
  using Patience = std::optional<std::chrono::nanoseconds>;
  return internal::grpc_limited_call(
      limits, *context, std::move(handler),
      [&](HttpAnswer& answer, Patience patience) {
        limits.check(GrpcRequest(*context, method).get(), answer, patience, HttpAnswerParts::without_headers);
      },
      [&](HttpLimits::Done done, Patience patience) {
        return limits.start(GrpcRequest(*context, method).get(), std::move(done), patience,
                            HttpAnswerParts::without_headers);
      });
}
/// The same by keys of the program's: nothing means that it does not know who calls.
inline grpc::ServerUnaryReactor* grpc_limited(HttpLimits& limits, grpc::CallbackServerContext* context,
                                              std::optional<LimiterRequest> keys,
                                              std::function<void(grpc::ServerUnaryReactor*)> handler) {
  using Patience = std::optional<std::chrono::nanoseconds>;
  return internal::grpc_limited_call(
      limits, *context, std::move(handler),
      [&](HttpAnswer& answer, Patience patience) {
        limits.check(keys, HttpRequest(), answer, patience, HttpAnswerParts::without_headers);
      },
      [&](HttpLimits::Done done, Patience patience) {
        return limits.start(std::move(keys), HttpRequest(), std::move(done), patience,
                            HttpAnswerParts::without_headers);
      });
}

}  // namespace sluice
