// What can be done to the counters that a request matches, beside checking them.
#pragma once

#include <cstdint>
#include <optional>

namespace sluice::limiter {

/// What is to be done; docs/semantics.md section 5 says what each means.
struct CounterVerb {
  enum class Kind : std::uint8_t { refund, settle, penalize, reset };
  Kind kind = Kind::reset;
  std::uint64_t reserved = 0;  ///< settle: was charged; 0 … kMaxTokens
  std::uint64_t actual = 0;    ///< settle: should have been
  /// refund, settle: a time in ns since 1970 UTC at which the charge had been made, when it is known.
  std::optional<std::int64_t> at = std::nullopt;
};

}  // namespace sluice::limiter
