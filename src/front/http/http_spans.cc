// What is told of decisions to whoever traces requests.
#include <string>
#include <string_view>
#include <utility>

#include "front/http/http_connection.h"
#include "limiter/words.h"
#include "tracing/decision_span.h"
#include "tracing/tracer.h"

namespace sluice::http {
namespace {

/// As OpenTelemetry has it: others would be as many as callers make up.
std::string_view method_name(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::head:
      return "HEAD";
    case Method::post:
      return "POST";
    case Method::del:
      return "DELETE";
    case Method::other:
      break;
  }
  return "HTTP";
}

/// The path, without what belongs to somebody else's request.
std::string_view route_name(std::string_view path) {
  return auth_form(path) == AuthForm::ext_authz ? std::string_view("/v1/ext_authz") : path;
}

}  // namespace

/// Of a decision; looks and verbs are none.
void HttpConnection::begin_span(std::string_view domain, Time now) {
  if (route_ == Route::peek || route_ == Route::verb) return;
  const std::string_view method = method_name(reader_.head().method);
  const std::string_view route = route_name(reader_.head().path);
  const std::string name = std::string(method) + ' ' + std::string(route);
  span_ = environment_.context.options.tracer->begin(name, reader_.trace(), now);
  if (span_ == nullptr) return;
  span_->set("http.request.method", method == "HTTP" ? "_OTHER" : method);
  span_->set("http.route", route);
  if (route_ != Route::throttle) span_->set("sluice.domain", domain);
}

/// By what was decided, while that is there.
void HttpConnection::describe_span() {
  if (route_ == Route::throttle) {
    const Decision& decision = throttle_->decision();
    span_->set("sluice.verdict", decision.allowed ? "allowed" : "denied");
    span_->set("sluice.store", limiter::source_name(decision.source));
    span_->set("sluice.remaining", static_cast<std::int64_t>(decision.remaining));
    return;
  }
  if (calls_ > 1) span_->set("sluice.requests", static_cast<std::int64_t>(calls_));
  tracing::describe(call_.answer(), *span_);
}

void HttpConnection::end_span(unsigned status) {
  constexpr unsigned first_failure = 500;
  span_->set("http.response.status_code", static_cast<std::int64_t>(status));
  span_->failed = status >= first_failure;
  if (!environment_.context.options.tracer->end(std::move(span_))) {
    environment_.metrics.add(metrics::Counter::spans_dropped);
  }
}

}  // namespace sluice::http
