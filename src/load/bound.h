// The most that a limit may have admitted, from its numbers and from when it was asked.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "sluice/clock.h"
#include "sluice/limit.h"

namespace sluice::load {

/// Largest value of a bound; what is more is this.
inline constexpr std::uint64_t kNoBound = UINT64_MAX;

/// Tokens that a key as good as new gives at once.
[[nodiscard]] std::uint64_t capacity(const Limit& limit);

/// The most that one key may have admitted of requests of which the first was sent at `begin` and the last was answered
/// at `end`, whatever its state was before. `slack`: how far the clock that judges may be from the one that `begin` and
/// `end` were read from; it matters for windows only. Calendar windows: at most two within less than a day.
///   buckets – capacity + rate × (end − begin)
///   fixed and sliding windows – rate × the windows that [begin, end] touches
///   sliding log – rate × the periods that cover it; see Checker for any window
///   concurrency – rate × the ttls that cover it
[[nodiscard]] std::uint64_t bound(const Limit& limit, Time begin, Time end,
                                  std::chrono::nanoseconds slack = std::chrono::nanoseconds(0));

/// What a bucket's, window's or log's numbers give in `length` from a state as good as new: what a daemon may admit by
/// itself while it cannot ask for so long.
[[nodiscard]] std::uint64_t local_bound(const Limit& limit, std::chrono::nanoseconds length);

/// Sums and products that stop at kNoBound.
[[nodiscard]] std::uint64_t add_bounds(std::uint64_t a, std::uint64_t b);
[[nodiscard]] std::uint64_t times_bound(std::uint64_t bound, std::uint64_t times);

}  // namespace sluice::load
