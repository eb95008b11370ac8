// Times for the tests of the algorithms, in ticks of 1 ns.
#pragma once

#include <cstdint>

namespace sluice::algorithm {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kMinute = 60 * kSecond;
inline constexpr std::int64_t kHour = 60 * kMinute;
inline constexpr std::int64_t kDay = 24 * kHour;
/// 2026-01-01 00:00 UTC: tests start at a real size of numbers, not at 0.
inline constexpr std::int64_t kNewYear = 1'767'225'600 * kSecond;

}  // namespace sluice::algorithm
