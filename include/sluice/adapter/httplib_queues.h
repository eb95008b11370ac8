// Routes of a cpp-httplib server whose requests may wait. Needs cpp-httplib, nothing else.
#pragma once

#include <httplib.h>

#include <thread>
#include <utility>
#include <vector>

#include "sluice/adapter/httplib.h"
#include "sluice/http_queues.h"

namespace sluice {

/// A route's handler that asks `queues` before `handler` (void(const httplib::Request&, httplib::Response&)) is called,
/// which it is for what is within its limits. What is over one that has `overflow` is stored with its body, and
/// answered by 202; the rest is denied.
///
///     server.Post("/orders", sluice::httplib_queued(queues, [](const auto& request, auto& response) { … }));
///
/// In a route, as a body has not been read before. Its thread waits for the store and for the broker's confirmation.
/// `queues` must outlive the server.
template <typename Handler>
httplib::Server::Handler httplib_queued(HttpQueues& queues, Handler handler) {
  return [&queues, handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
    std::vector<HeaderField> headers;
    HttpAnswer answer;
    queues.admit(httplib_request(request, headers), request.body, answer);
    if (answer.hold.count() > 0) std::this_thread::sleep_for(answer.hold);
    put_answer(answer, response);
    if (answer.allowed) handler(request, response);
  };
}

}  // namespace sluice
