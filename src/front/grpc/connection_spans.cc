// What is told of decisions to whoever traces requests.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "front/grpc/connection.h"
#include "tracing/decision_span.h"
#include "tracing/tracer.h"

namespace sluice::front::grpc {
namespace {

struct MethodName {
  std::string_view service;
  std::string_view method;
};

MethodName name_of(const Stream& stream) {
  if (stream.method == Method::should_rate_limit) {
    return {"envoy.service.ratelimit.v3.RateLimitService", "ShouldRateLimit"};
  }
  return {"sluice.v1.Limiter", method_name(stream.limiter_method)};
}

/// Those that are this end's fault, and not the caller's.
bool is_failure(StatusCode code) {
  return code == StatusCode::deadline_exceeded || code == StatusCode::internal || code == StatusCode::unavailable;
}

}  // namespace

void Connection::take_trace_field(Stream& stream, std::string_view name, std::string_view value) const {
  const bool is_parent = name == "traceparent";
  if (!is_parent && name != "tracestate") return;
  if (stream.trace == nullptr) stream.trace = std::make_unique<tracing::TraceFields>();
  if (is_parent) {
    stream.trace->add_parent(value);
  } else {
    stream.trace->add_state(value);
  }
}

void Connection::begin_span(Stream& stream, const Request& request) const {
  static const tracing::TraceFields kNone;
  if (request.peek) return;
  const MethodName name = name_of(stream);
  const std::string text = std::string(name.service) + '/' + std::string(name.method);
  stream.span = options_.tracer->begin(text, stream.trace != nullptr ? *stream.trace : kNone, now_);
  if (stream.span == nullptr) return;
  stream.span->set("rpc.system", "grpc");
  stream.span->set("rpc.service", name.service);
  stream.span->set("rpc.method", name.method);
  stream.span->set("sluice.domain", request.domain);
}

void Connection::end_span(Stream& stream, StatusCode code) {
  stream.span->set("rpc.grpc.status_code", static_cast<std::int64_t>(code));
  stream.span->failed = is_failure(code);
  if (code == StatusCode::ok) tracing::describe(stream.call.answer(), *stream.span);
  if (!options_.tracer->end(std::move(stream.span))) service_.metrics.add(metrics::Counter::spans_dropped);
}

}  // namespace sluice::front::grpc
