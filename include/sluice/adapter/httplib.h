// Limits for a cpp-httplib server. Needs cpp-httplib, nothing else.
#pragma once

#include <httplib.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/http_limits.h"

namespace sluice {

/// What a cpp-httplib server knows of a request. `headers` is the storage of its fields. The views live as long as
/// both.
inline HttpRequest httplib_request(const httplib::Request& request, std::vector<HeaderField>& headers) {
  headers.clear();
  HttpRequest result;
  result.method = request.method;
  result.target = request.target;
  result.peer = request.remote_addr;
  for (const auto& [name, value] : request.headers) headers.push_back({.name = name, .value = value});
  if (const auto host = request.headers.find("Host"); host != request.headers.end()) result.host = host->second;
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  result.scheme = request.ssl != nullptr ? "https" : "http";
#else
  result.scheme = "http";
#endif
  result.headers = headers;
  return result;
}

/// Puts an answer into a response: the rate limit fields, and for a denial the status and the body, too.
inline void put_answer(const HttpAnswer& answer, httplib::Response& response) {
  // In the order of the map, mostly: set_header() would compare names by ignoring their case again and again.
  for (const HttpHeader& field : answer.headers.fields()) {
    response.headers.emplace_hint(response.headers.end(), field.name, field.value);
  }
  if (answer.allowed) return;
  response.status = static_cast<int>(answer.status);
  response.set_content(answer.body, answer.content_type);
}

/// A handler that asks `limits` about every request before its route is looked for. What is denied never comes to a
/// handler of yours. `keys` says what a request is counted by: std::optional<LimiterRequest>(const httplib::Request&);
/// nothing: 401.
///
///     sluice::Limiter limiter({.policy_paths = {"policy.yaml"}});
///     sluice::HttpLimits limits(limiter);
///     server.set_pre_routing_handler(sluice::httplib_limit(limits));
///
/// The server has a thread for each connection, which waits for the store; its time-out (LimiterOptions::redis_timeout)
/// is the longest. `limits` must outlive the server.
template <typename Keys>
httplib::Server::HandlerWithResponse httplib_limit(HttpLimits& limits, Keys keys) {
  return [&limits, keys = std::move(keys)](const httplib::Request& request, httplib::Response& response) {
    // The thread's own, so that their memory serves every request.
    thread_local std::vector<HeaderField> headers;
    thread_local HttpAnswer answer;
    limits.check(keys(request), httplib_request(request, headers), answer);
    put_answer(answer, response);
    return answer.allowed ? httplib::Server::HandlerResponse::Unhandled : httplib::Server::HandlerResponse::Handled;
  };
}
/// The same; the policy's `requests:` says what a request is counted by.
inline httplib::Server::HandlerWithResponse httplib_limit(HttpLimits& limits) {
  return [&limits](const httplib::Request& request, httplib::Response& response) {
    thread_local std::vector<HeaderField> headers;
    thread_local HttpAnswer answer;
    limits.check(httplib_request(request, headers), answer);
    put_answer(answer, response);
    return answer.allowed ? httplib::Server::HandlerResponse::Unhandled : httplib::Server::HandlerResponse::Handled;
  };
}

}  // namespace sluice
