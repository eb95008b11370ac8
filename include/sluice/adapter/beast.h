// Limits for servers made of Boost.Beast. Needs Boost's headers, nothing else.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/http_limits.h"

namespace sluice {

/// What a message says of a request. `peer`: the address of who is connected, "192.0.2.7", or kUnixPeer; `headers` is
/// the storage of the fields. The views live as long as all three.
template <typename Fields>
HttpRequest beast_request(const boost::beast::http::request_header<Fields>& request, std::string_view peer,
                          std::vector<HeaderField>& headers) {
  const auto view = [](const auto& text) { return std::string_view(text.data(), text.size()); };
  headers.clear();
  for (const auto& field : request)
    headers.push_back({.name = view(field.name_string()), .value = view(field.value())});
  HttpRequest result;
  result.method = view(request.method_string());
  result.target = view(request.target());
  if (const auto host = request.find(boost::beast::http::field::host); host != request.end()) {
    result.host = view(host->value());
  }
  result.peer = peer;
  result.headers = headers;
  return result;
}

/// Adds the rate limit fields to the response to a request that was let in.
template <typename Fields>
void put_answer(const HttpAnswer& answer, boost::beast::http::response_header<Fields>& response) {
  for (const HttpHeader& field : answer.headers.fields()) {
    response.set(boost::beast::string_view(field.name.data(), field.name.size()), field.value);
  }
}

/// The response to a request that was denied.
template <typename Body, typename Fields>
boost::beast::http::response<boost::beast::http::string_body> denied_response(
    const HttpAnswer& answer, const boost::beast::http::request<Body, Fields>& request) {
  namespace http = boost::beast::http;
  http::response<http::string_body> response(http::int_to_status(answer.status), request.version());
  put_answer(answer, response);
  response.set(http::field::content_type, answer.content_type);
  response.keep_alive(request.keep_alive());
  response.body() = answer.body;
  response.prepare_payload();
  return response;
}

namespace internal {

/// What is asked about a request: by its own properties.
template <typename Fields>
struct BeastAsk {
  HttpLimits& limits;
  const boost::beast::http::request_header<Fields>& request;
  std::string_view peer;

  void check(HttpAnswer& out) const { limits.check(views(), out); }
  Limiter::Pending start(HttpLimits::Done done) const { return limits.start(views(), std::move(done)); }

 private:
  [[nodiscard]] HttpRequest views() const {
    thread_local std::vector<HeaderField> headers;  // its memory serves every request
    return beast_request(request, peer, headers);
  }
};
/// By keys of the program's.
template <typename Fields>
struct BeastKeysAsk {
  HttpLimits& limits;
  const boost::beast::http::request_header<Fields>& request;
  std::optional<LimiterRequest> keys;

  void check(HttpAnswer& out) const {
    std::vector<HeaderField> headers;
    limits.check(keys, beast_request(request, {}, headers), out);
  }
  Limiter::Pending start(HttpLimits::Done done) {
    std::vector<HeaderField> headers;
    return limits.start(std::move(keys), beast_request(request, {}, headers), std::move(done));
  }
};

/// One request that waits for a store elsewhere, or for a leaky bucket's slot. Runs on the stream's executor.
template <typename Socket, typename Handler>
class BeastWait : public std::enable_shared_from_this<BeastWait<Socket, Handler>> {
 public:
  using Executor = boost::asio::associated_executor_t<Handler, typename Socket::executor_type>;

  BeastWait(HttpLimits& limits, Socket& socket, Handler handler)
      : limits_(limits),
        socket_(socket),
        executor_(socket.get_executor()),
        target_(boost::asio::get_associated_executor(handler, executor_)),
        slot_(boost::asio::get_associated_cancellation_slot(handler)),
        handler_(std::move(handler)),
        timer_(executor_) {}

  /// Asks a store elsewhere.
  template <typename Ask>
  void begin(Ask ask) {
    pending_ = ask.start([self = this->shared_from_this()](HttpAnswer& answer) {
      boost::asio::post(self->executor_, [self, told = std::make_unique<HttpAnswer>(std::move(answer))]() mutable {
        self->answered(std::move(told));
      });
    });
    listen();
  }
  /// The answer is there, and to be held back.
  void begin(std::unique_ptr<HttpAnswer> answer) {
    answered(std::move(answer));
    listen();
  }

 private:
  void listen() {
    if (slot_.is_connected()) {
      slot_.assign([self = this->weak_from_this()](boost::asio::cancellation_type type) {
        const auto wait = self.lock();
        if (wait != nullptr && type != boost::asio::cancellation_type::none) wait->cancel();
      });
    }
    watch();
  }
  /// A client that leaves makes its socket readable, with nothing to read.
  void watch() {
    socket_.async_wait(Socket::wait_read,
                       boost::asio::bind_cancellation_slot(
                           hang_up_.slot(), [self = this->shared_from_this()](boost::system::error_code failed) {
                             if (!failed && !self->finished_ && self->has_left()) self->cancel();
                           }));
  }
  [[nodiscard]] bool has_left() {
    char byte = 0;
    boost::system::error_code error;
    (void)socket_.receive(boost::asio::buffer(&byte, 1), boost::asio::socket_base::message_peek, error);
    return error && error != boost::asio::error::would_block && error != boost::asio::error::try_again;
  }
  void cancel() {
    cancelled_ = true;
    pending_.cancel();
    timer_.cancel();
  }
  void answered(std::unique_ptr<HttpAnswer> answer) {
    if (cancelled_ && answer->hold.count() != 0) *answer = limits_.stopped();
    if (answer->hold.count() == 0) {
      finish(std::move(answer));
      return;
    }
    timer_.expires_after(answer->hold);
    timer_.async_wait(
        [self = this->shared_from_this(), told = std::move(answer)](boost::system::error_code cancelled) mutable {
          if (cancelled) *told = self->limits_.stopped();
          self->finish(std::move(told));
        });
  }
  void finish(std::unique_ptr<HttpAnswer> answer) {
    finished_ = true;
    hang_up_.emit(boost::asio::cancellation_type::terminal);
    if (slot_.is_connected()) slot_.clear();
    auto call = std::move(handler_);
    boost::asio::dispatch(
        target_, [call = std::move(call), told = std::move(answer)]() mutable { std::move(call)(std::move(*told)); });
  }

  HttpLimits& limits_;
  Socket& socket_;
  typename Socket::executor_type executor_;
  Executor target_;
  boost::asio::executor_work_guard<typename Socket::executor_type> stream_work_{executor_};
  boost::asio::executor_work_guard<Executor> work_{target_};
  boost::asio::associated_cancellation_slot_t<Handler> slot_;
  Handler handler_;
  boost::asio::steady_timer timer_;
  Limiter::Pending pending_;
  boost::asio::cancellation_signal hang_up_;
  bool cancelled_ = false;
  bool finished_ = false;
};

/// Posts `call` to `target`. An io_context's executor is addressed by its own type where it is known by
/// any_io_executor, which would copy itself for each property of a post.
template <typename Executor, typename Call>
void beast_post(const Executor& target, Call&& call) {
  if constexpr (std::is_same_v<Executor, boost::asio::any_io_executor>) {
    if (const auto* const io = target.template target<boost::asio::io_context::executor_type>()) {
      boost::asio::post(*io, std::forward<Call>(call));
      return;
    }
  }
  boost::asio::post(target, std::forward<Call>(call));
}

/// What async_initiate calls.
struct InitiateBeastLimit {
  template <typename Handler, typename Stream, typename Ask>
  void operator()(Handler&& handler, HttpLimits* limits, Stream* stream, Ask ask) const {
    using Held = std::decay_t<Handler>;
    std::unique_ptr<HttpAnswer> answer;  // moved from hand to hand by its address
    if (limits->is_immediate()) {
      answer = std::make_unique<HttpAnswer>();
      ask.check(*answer);
      if (answer->hold.count() == 0) {
        const auto target = boost::asio::get_associated_executor(handler, stream->get_executor());
        beast_post(target, [call = Held(std::forward<Handler>(handler)), told = std::move(answer)]() mutable {
          std::move(call)(std::move(*told));
        });
        return;
      }
    }
    auto& socket = boost::beast::get_lowest_layer(*stream);
    const auto wait = [&](auto& bare) {
      const auto waiting = std::make_shared<BeastWait<std::decay_t<decltype(bare)>, Held>>(
          *limits, bare, std::forward<Handler>(handler));
      if (answer == nullptr) {
        waiting->begin(std::move(ask));
      } else {
        waiting->begin(std::move(answer));
      }
    };
    if constexpr (requires { socket.socket(); }) {
      wait(socket.socket());
    } else {
      wait(socket);
    }
  }
};

}  // namespace internal

/// Asks `limits` about a request; the policy's `requests:` says what it is counted by. Completes as void(HttpAnswer),
/// never within this call, on the token's executor or else the stream's. Any completion token will do. `stream` is a
/// socket or has one as its lowest layer; nothing is read from it or written to it.
///
///     sluice::async_limit(limits, stream, request, peer, [this](sluice::HttpAnswer answer) {
///       if (!answer.allowed) return write(sluice::denied_response(answer, request_));
///       …
///     });
///
/// No thread waits, neither for the store nor for a leaky bucket's slot (`delay: hold`). Meanwhile a client that closes
/// its connection (a half of it will do) ends the wait, and so does cancellation of any type: then the answer has the
/// problem `stopped`, and a charge that was not sent is not made. Until completion `limits` and `stream` must live, and
/// nothing may be read from the stream.
template <typename Stream, typename Fields, typename Token>
auto async_limit(HttpLimits& limits, Stream& stream, const boost::beast::http::request_header<Fields>& request,
                 std::string_view peer, Token&& token) {
  return boost::asio::async_initiate<Token, void(HttpAnswer)>(
      internal::InitiateBeastLimit(), token, &limits, &stream,
      internal::BeastAsk<Fields>{.limits = limits, .request = request, .peer = peer});
}
/// The same by keys of the program's: nothing means that it does not know who asks (401).
template <typename Stream, typename Fields, typename Token>
auto async_limit(HttpLimits& limits, Stream& stream, const boost::beast::http::request_header<Fields>& request,
                 std::optional<LimiterRequest> keys, Token&& token) {
  return boost::asio::async_initiate<Token, void(HttpAnswer)>(
      internal::InitiateBeastLimit(), token, &limits, &stream,
      internal::BeastKeysAsk<Fields>{.limits = limits, .request = request, .keys = std::move(keys)});
}

}  // namespace sluice
