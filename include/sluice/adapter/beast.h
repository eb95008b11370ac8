// Limits for servers made of Boost.Beast. Needs Boost's headers, nothing else.
#pragma once

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
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
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

/// What a message says of a request. `peer`: the address of who is connected, "192.0.2.7"; `headers` is the storage of
/// the fields. The views live as long as all three.
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

/// One request that waits for a store elsewhere. Runs on the stream's executor.
template <typename Socket, typename Handler>
class BeastWait : public std::enable_shared_from_this<BeastWait<Socket, Handler>> {
 public:
  using Executor = boost::asio::associated_executor_t<Handler, typename Socket::executor_type>;

  BeastWait(Socket& socket, Handler handler)
      : socket_(socket),
        executor_(socket.get_executor()),
        target_(boost::asio::get_associated_executor(handler, executor_)),
        slot_(boost::asio::get_associated_cancellation_slot(handler)),
        handler_(std::move(handler)) {}

  /// `start(done)` begins it.
  template <typename Start>
  void begin(Start start) {
    pending_ = start([self = this->shared_from_this()](HttpAnswer& answer) {
      boost::asio::post(self->executor_, [self, told = std::move(answer)]() mutable { self->finish(std::move(told)); });
    });
    if (slot_.is_connected()) {
      slot_.assign([pending = pending_](boost::asio::cancellation_type type) {
        if (type != boost::asio::cancellation_type::none) pending.cancel();
      });
    }
    watch();
  }

 private:
  /// A client that leaves makes its socket readable, with nothing to read.
  void watch() {
    socket_.async_wait(Socket::wait_read,
                       boost::asio::bind_cancellation_slot(
                           hang_up_.slot(), [self = this->shared_from_this()](boost::system::error_code failed) {
                             if (!failed && !self->finished_ && self->has_left()) self->pending_.cancel();
                           }));
  }
  [[nodiscard]] bool has_left() {
    char byte = 0;
    boost::system::error_code error;
    (void)socket_.receive(boost::asio::buffer(&byte, 1), boost::asio::socket_base::message_peek, error);
    return error && error != boost::asio::error::would_block && error != boost::asio::error::try_again;
  }
  void finish(HttpAnswer answer) {
    finished_ = true;
    hang_up_.emit(boost::asio::cancellation_type::terminal);
    if (slot_.is_connected()) slot_.clear();
    auto call = std::move(handler_);
    boost::asio::dispatch(
        target_, [call = std::move(call), told = std::move(answer)]() mutable { std::move(call)(std::move(told)); });
  }

  Socket& socket_;
  typename Socket::executor_type executor_;
  Executor target_;
  boost::asio::executor_work_guard<typename Socket::executor_type> stream_work_{executor_};
  boost::asio::executor_work_guard<Executor> work_{target_};
  boost::asio::associated_cancellation_slot_t<Handler> slot_;
  Handler handler_;
  Limiter::Pending pending_;
  boost::asio::cancellation_signal hang_up_;
  bool finished_ = false;
};

/// What async_initiate calls: `start(done)` begins the check.
struct InitiateBeastLimit {
  template <typename Handler, typename Stream, typename Start>
  void operator()(Handler&& handler, HttpLimits* limits, Stream* stream, Start start) const {
    using Held = std::decay_t<Handler>;
    if (!limits->is_immediate()) {
      auto& socket = boost::beast::get_lowest_layer(*stream);
      if constexpr (requires { socket.socket(); }) {
        wait(socket.socket(), std::forward<Handler>(handler), std::move(start));
      } else {
        wait(socket, std::forward<Handler>(handler), std::move(start));
      }
      return;
    }
    std::unique_ptr<HttpAnswer> answer;  // moved from hand to hand by its address
    start([&answer](HttpAnswer& told) { answer = std::make_unique<HttpAnswer>(std::move(told)); });
    const auto target = boost::asio::get_associated_executor(handler, stream->get_executor());
    boost::asio::post(target, [call = Held(std::forward<Handler>(handler)), told = std::move(answer)]() mutable {
      std::move(call)(std::move(*told));
    });
  }

 private:
  template <typename Socket, typename Handler, typename Start>
  static void wait(Socket& socket, Handler&& handler, Start start) {
    using Wait = BeastWait<Socket, std::decay_t<Handler>>;
    std::make_shared<Wait>(socket, std::forward<Handler>(handler))->begin(std::move(start));
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
/// No thread waits for the store. While it is asked, a client that closes its connection (a half of it will do) ends
/// the wait, and so does cancellation of any type: then the answer has the problem `stopped`, and a charge that was not
/// sent is not made. Until completion `limits` and `stream` must live, and nothing may be read from the stream.
template <typename Stream, typename Fields, typename Token>
auto async_limit(HttpLimits& limits, Stream& stream, const boost::beast::http::request_header<Fields>& request,
                 std::string_view peer, Token&& token) {
  auto start = [&limits, &request, peer](HttpLimits::Done done) {
    std::vector<HeaderField> headers;
    return limits.start(beast_request(request, peer, headers), std::move(done));
  };
  return boost::asio::async_initiate<Token, void(HttpAnswer)>(internal::InitiateBeastLimit(), token, &limits, &stream,
                                                              std::move(start));
}
/// The same by keys of the program's: nothing means that it does not know who asks (401).
template <typename Stream, typename Fields, typename Token>
auto async_limit(HttpLimits& limits, Stream& stream, const boost::beast::http::request_header<Fields>& request,
                 std::optional<LimiterRequest> keys, Token&& token) {
  auto start = [&limits, &request, keys = std::move(keys)](HttpLimits::Done done) mutable {
    std::vector<HeaderField> headers;
    return limits.start(std::move(keys), beast_request(request, {}, headers), std::move(done));
  };
  return boost::asio::async_initiate<Token, void(HttpAnswer)>(internal::InitiateBeastLimit(), token, &limits, &stream,
                                                              std::move(start));
}

}  // namespace sluice
