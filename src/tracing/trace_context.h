// W3C Trace Context: the header fields `traceparent` and `tracestate`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::tracing {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

/// What a caller tells of itself.
struct TraceParent {
  TraceId trace{};         ///< not all zeros
  SpanId span{};           ///< the caller's; not all zeros
  std::uint8_t flags = 0;  ///< of version 00; those of later versions are cut off
  [[nodiscard]] bool is_sampled() const { return (flags & 1U) != 0; }
  friend bool operator==(const TraceParent&, const TraceParent&) = default;
};

/// A value of `traceparent`; nothing: malformed, to be treated as if it had not come. Later versions than 00 are read
/// by what 00 has. Pure. Cost: a look at 55 bytes.
[[nodiscard]] std::optional<TraceParent> parse_traceparent(std::string_view value);

inline constexpr std::size_t kMostStateBytes = 512;  ///< of a `tracestate`, its fields taken together; longer: ignored
inline constexpr std::size_t kMostStateMembers = 32;

/// Is it a value of `tracestate`: a list of at most 32 members, no key twice? Empty members are let pass.
[[nodiscard]] bool is_tracestate(std::string_view value);

/// The two fields of a request, as they come, in any order and any number. Not thread-safe.
class TraceFields {
 public:
  void add_parent(std::string_view value);
  void add_state(std::string_view value);
  void clear();

  /// Nothing: none has come, or several, or a malformed one.
  [[nodiscard]] const std::optional<TraceParent>& parent() const { return parent_; }
  /// All `tracestate` fields, joined by commas; empty: none has come, they are malformed, or there is no parent().
  [[nodiscard]] std::string_view state() const;

 private:
  std::optional<TraceParent> parent_;
  bool has_parent_ = false;  ///< one has come, good or not
  std::string state_;
};

}  // namespace sluice::tracing
