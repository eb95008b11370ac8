// Limits for a cpp-httplib server. Needs cpp-httplib, nothing else.
#pragma once

#include <httplib.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/http_limits.h"

namespace sluice {

namespace internal {

/// "Host", in any case.
inline bool is_host(std::string_view name) {
  return name.size() == 4 && (name[0] | 0x20) == 'h' && (name[1] | 0x20) == 'o' && (name[2] | 0x20) == 's' &&
         (name[3] | 0x20) == 't';
}

}  // namespace internal

/// What a cpp-httplib server knows of a request. `headers` is the storage of its fields. The views live as long as
/// both.
inline HttpRequest httplib_request(const httplib::Request& request, std::vector<HeaderField>& headers) {
  headers.clear();
  HttpRequest result;
  result.method = request.method;
  result.target = request.target;
  result.peer = request.remote_addr;
  // Only a Unix socket has no address at its own end, either.
  if (request.remote_addr.empty() && request.local_addr.empty()) result.peer = kUnixPeer;
  for (const auto& [name, value] : request.headers) {
    headers.push_back({.name = name, .value = value});
    if (result.host.empty() && internal::is_host(name)) result.host = value;
  }
#ifdef CPPHTTPLIB_OPENSSL_SUPPORT
  result.scheme = request.ssl != nullptr ? "https" : "http";
#else
  result.scheme = "http";
#endif
  result.headers = headers;
  return result;
}

namespace internal {

/// The fields of answers as the framework holds them. It compares names by ignoring their case, letter by letter, which
/// costs more than the decision; a copy of a whole map compares nothing. Not thread-safe.
class HttplibFields {
 public:
  void put(const HttpHeaders& headers, httplib::Headers& out) {
    const auto fields = headers.fields();
    if (!out.empty()) {
      for (const HttpHeader& field : fields) out.emplace(field.name, field.value);
      return;
    }
    if (!has_names_of(fields)) make(fields);
    for (std::size_t i = 0; i < fields.size(); ++i) *values_[i] = fields[i].value;
    out = map_;
  }

 private:
  [[nodiscard]] bool has_names_of(std::span<const HttpHeader> fields) const {
    return std::equal(fields.begin(), fields.end(), names_.begin(), names_.end(),
                      [](const HttpHeader& field, std::string_view name) { return field.name == name; });
  }
  void make(std::span<const HttpHeader> fields) {
    names_.clear();
    values_.clear();
    map_.clear();
    for (const HttpHeader& field : fields) {
      names_.push_back(field.name);
      values_.push_back(&map_.emplace(field.name, std::string())->second);
    }
  }

  std::vector<std::string_view> names_;  // literals
  std::vector<std::string*> values_;     // in map_
  httplib::Headers map_;
};

}  // namespace internal

/// Puts an answer into a response: the rate limit fields, and for a denial the status and the body, too.
inline void put_answer(const HttpAnswer& answer, httplib::Response& response) {
  thread_local internal::HttplibFields fields;
  fields.put(answer.headers, response.headers);
  if (answer.allowed) return;
  response.status = static_cast<int>(answer.status);
  response.set_content(answer.body, answer.content_type);
}

namespace internal {

/// `check(views, answer)` asks.
template <typename Check>
httplib::Server::HandlerResponse httplib_answer(const httplib::Request& request, httplib::Response& response,
                                                Check check) {
  // The thread's own, so that their memory serves every request.
  thread_local std::vector<HeaderField> headers;
  thread_local HttpAnswer answer;
  check(httplib_request(request, headers), answer);
  if (answer.hold.count() > 0) std::this_thread::sleep_for(answer.hold);
  put_answer(answer, response);
  return answer.allowed ? httplib::Server::HandlerResponse::Unhandled : httplib::Server::HandlerResponse::Handled;
}

}  // namespace internal

/// A handler that asks `limits` about every request before its route is looked for. What is denied never comes to a
/// handler of yours. `keys` says what a request is counted by: std::optional<LimiterRequest>(const httplib::Request&);
/// nothing: 401.
///
///     sluice::Limiter limiter({.policy_paths = {"policy.yaml"}});
///     sluice::HttpLimits limits(limiter);
///     server.set_pre_routing_handler(sluice::httplib_limit(limits));
///
/// The server has a thread for each connection, which waits for the store, at most its time-out
/// (LimiterOptions::redis_timeout), and for a leaky bucket's slot (`delay: hold`), at most HttpLimitsOptions::max_hold.
/// `limits` must outlive the server.
template <typename Keys>
httplib::Server::HandlerWithResponse httplib_limit(HttpLimits& limits, Keys keys) {
  return [&limits, keys = std::move(keys)](const httplib::Request& request, httplib::Response& response) {
    return internal::httplib_answer(request, response, [&](const HttpRequest& views, HttpAnswer& answer) {
      limits.check(keys(request), views, answer);
    });
  };
}
/// The same; the policy's `requests:` says what a request is counted by.
inline httplib::Server::HandlerWithResponse httplib_limit(HttpLimits& limits) {
  return [&limits](const httplib::Request& request, httplib::Response& response) {
    return internal::httplib_answer(request, response,
                                    [&](const HttpRequest& views, HttpAnswer& answer) { limits.check(views, answer); });
  };
}

}  // namespace sluice
