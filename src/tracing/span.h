// A span: what one request took, and what was decided.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tracing/trace_context.h"

namespace sluice::tracing {

/// Longest text of an attribute; what is longer is cut.
inline constexpr std::size_t kMostTextBytes = 256;

/// `text` as a collector takes it: cut, and what is not UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string text_of(std::string_view text);

/// Of kind SERVER. Names of attributes live in static storage.
struct Span {
  using Value = std::variant<std::string, std::int64_t>;

  void set(std::string_view attribute, std::string_view text) { attributes.emplace_back(attribute, text_of(text)); }
  void set(std::string_view attribute, std::int64_t number) { attributes.emplace_back(attribute, number); }

  TraceId trace{};
  SpanId id{};
  SpanId parent{};          ///< all zeros: it has none
  bool has_parent = false;  ///< in another process
  std::uint8_t flags = 1;   ///< of the trace
  std::string state;        ///< the caller's tracestate
  std::string name;
  std::int64_t begun = 0;     ///< ns since 1970 UTC
  std::int64_t ended = 0;     ///< ″
  std::int64_t begun_at = 0;  ///< steady ns, by which it is known how long it took
  bool failed = false;        ///< by an error of this end's
  std::vector<std::pair<std::string_view, Value>> attributes;
};

}  // namespace sluice::tracing
