// OTLP: spans as a collector takes them, and what it says to them. Field numbers are those of opentelemetry-proto.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tracing/span.h"

namespace sluice::tracing {

/// Who sends spans.
struct Sender {
  std::string service;   ///< service.name
  std::string version;   ///< service.version
  std::string instance;  ///< service.instance.id: this process
};

/// An ExportTraceServiceRequest, as protobuf.
[[nodiscard]] std::string encode_traces(std::span<const Span> spans, const Sender& sender);

/// How many spans an ExportTraceServiceResponse says were refused; what is no such message says none.
[[nodiscard]] std::int64_t refused_of(std::string_view response);

}  // namespace sluice::tracing
