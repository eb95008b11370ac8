// What is done to a counter beside checks.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/limit.h"

namespace sluice::store {

/// Marks the lease that a counter gave which stood in for a store that had failed; ids are below it.
inline constexpr std::uint64_t kStandInLease = std::uint64_t{1} << 63U;
[[nodiscard]] constexpr bool is_stand_in_lease(std::uint64_t lease) { return (lease & kStandInLease) != 0; }

/// A verb of docs/semantics.md section 5 on one key, or a peek at many. `set_limit` is a check of cost 0 with the new
/// numbers. A value.
struct Verb {
  enum class Kind : std::uint8_t { peek = 1, refund = 2, overdraw = 3, penalize = 4, reset = 5, release = 6 };

  /// Answers as a check of the same charges would, and changes nothing.
  [[nodiscard]] static Verb peek() { return {.kind = Kind::peek}; }
  /// Gives tokens back. `at`: the time of their charge, in ns since 1970 UTC by the store's clock, when it is known.
  [[nodiscard]] static Verb refund(std::uint64_t cost, std::optional<std::int64_t> at = std::nullopt) {
    return {.kind = Kind::refund, .amount = cost, .at = at};
  }
  /// Charges the difference, into debt when needed, or gives it back.
  [[nodiscard]] static Verb settle(std::uint64_t reserved, std::uint64_t actual,
                                   std::optional<std::int64_t> at = std::nullopt) {
    if (actual <= reserved) return refund(reserved - actual, at);
    return {.kind = Kind::overdraw, .amount = actual - reserved};
  }
  [[nodiscard]] static Verb penalize(std::uint64_t cost) { return {.kind = Kind::penalize, .amount = cost}; }
  [[nodiscard]] static Verb reset() { return {.kind = Kind::reset}; }
  /// Frees a lease of a concurrency limit: its id, and the cost that it weighs.
  [[nodiscard]] static Verb release(std::uint64_t lease, std::uint64_t cost) {
    return {.kind = Kind::release,
            .amount = lease & ~kStandInLease,
            .at = static_cast<std::int64_t>(cost),
            .is_stand_in = is_stand_in_lease(lease)};
  }

  Kind kind = Kind::refund;
  std::uint64_t amount = 0;  ///< tokens, 0 … kMaxTokens; release: the lease
  std::optional<std::int64_t> at = std::nullopt;
  /// Of what was taken while the store had failed: the counters that stood in for its own.
  bool is_stand_in = false;
};

/// Does an algorithm have such a verb? Release is of concurrency alone, which has only it, peek and reset.
[[nodiscard]] constexpr bool has_verb(Algorithm algorithm, Verb::Kind kind) {
  if (kind == Verb::Kind::peek || kind == Verb::Kind::reset) return true;
  return (kind == Verb::Kind::release) == (algorithm == Algorithm::concurrency);
}

}  // namespace sluice::store
