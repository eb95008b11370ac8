// Time inside the algorithm floor: whole ticks of a clock. A tick is 1 ns in process and 1 µs in Redis; the algorithms
// don't know which.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::algorithm {

/// Length of a tick in nanoseconds.
enum class Tick : std::int64_t { nanosecond = 1, microsecond = 1'000 };

[[nodiscard]] constexpr std::int64_t nanoseconds_in(Tick tick) { return static_cast<std::int64_t>(tick); }
[[nodiscard]] constexpr std::int64_t ticks_per_second(Tick tick) { return 1'000'000'000 / nanoseconds_in(tick); }

/// A wait that never ends. Larger than every other wait.
inline constexpr std::int64_t kNever = INT64_MAX;

/// The time at which a state last changed, of a state that never did. Earlier than every instant.
inline constexpr std::int64_t kNeverSeen = INT64_MIN;

/// Every instant handed to the algorithms lies within 146 years of 0, which is ± this many nanoseconds, so that adding
/// the longest wait cannot overflow.
inline constexpr std::int64_t kLatest = std::int64_t{1} << 62;

/// An instant from outside, which may be any number, as the nearest that the algorithms take.
[[nodiscard]] constexpr std::int64_t within_range(std::int64_t instant) {
  return std::clamp(instant, -kLatest, kLatest);
}

/// No wait is told as longer than 36 600 days.
[[nodiscard]] constexpr std::int64_t longest_wait(Tick tick) { return 36'600LL * 86'400 * ticks_per_second(tick); }

/// later - earlier, for later >= earlier; right over the whole range of int64.
[[nodiscard]] constexpr std::uint64_t ticks_between(std::int64_t earlier, std::int64_t later) {
  return static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier);
}

}  // namespace sluice::algorithm
