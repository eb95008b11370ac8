// Requests of a Boost.Beast server that may wait. Needs Boost's headers, nothing else.
#pragma once

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/http/message.hpp>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/adapter/beast.h"
#include "sluice/http_queues.h"

namespace sluice {

namespace internal {

/// What async_initiate calls.
struct InitiateBeastAdmit {
  template <typename Handler, typename Executor>
  void operator()(Handler&& handler, HttpQueues* queues, const Executor& executor, HttpRequest request,
                  std::string_view body) const {
    using Target = boost::asio::associated_executor_t<std::decay_t<Handler>, Executor>;
    struct Waiting {
      Waiting(Handler&& its_handler, const Executor& fallback)
          : target(boost::asio::get_associated_executor(its_handler, fallback)),
            handler(std::forward<Handler>(its_handler)) {}
      Target target;
      boost::asio::executor_work_guard<Target> work{target};
      std::decay_t<Handler> handler;
    };
    const auto waiting = std::make_shared<Waiting>(std::forward<Handler>(handler), executor);
    queues->start(request, body, [waiting](HttpAnswer& answer) {
      boost::asio::post(waiting->target, [waiting, told = std::make_unique<HttpAnswer>(std::move(answer))]() mutable {
        std::move(waiting->handler)(std::move(*told));
      });
    });
  }
};

}  // namespace internal

/// Asks `queues` about a request with its body (string_body, or any whose value is a text). Completes as
/// void(HttpAnswer), never within this call, on the token's executor or else the stream's: allowed (after
/// HttpAnswer::hold, if that is not 0), or to be answered by denied_response(), which is right for a request that waits
/// (202), too. Any completion token will do.
///
/// No thread waits. A client that leaves changes nothing, as its request may be stored already. Until completion
/// `queues` must live.
template <typename Stream, typename Body, typename Fields, typename Token>
auto async_admit(HttpQueues& queues, Stream& stream, const boost::beast::http::request<Body, Fields>& request,
                 std::string_view peer, Token&& token) {
  std::vector<HeaderField> headers;
  return boost::asio::async_initiate<Token, void(HttpAnswer)>(
      internal::InitiateBeastAdmit(), token, &queues, stream.get_executor(), beast_request(request, peer, headers),
      std::string_view(request.body().data(), request.body().size()));
}

}  // namespace sluice
