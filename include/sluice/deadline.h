// Until when somebody is ready to wait.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ratio>

#include "sluice/clock.h"

namespace sluice {

/// Until when to wait: for ever, for a duration from the call on, or up to an instant. What comes at the deadline
/// itself still counts. A value; trivially copyable.
class Deadline {
 public:
  /// None: waits for as long as it takes.
  constexpr Deadline() = default;
  /// So long from the call on, at most 292 years; below 0: nothing is soon enough.
  template <typename Rep, typename Period>
    requires std::convertible_to<std::chrono::duration<Rep, Period>, std::chrono::nanoseconds>
  constexpr Deadline(std::chrono::duration<Rep, Period> timeout)  // NOLINT(google-explicit-constructor): wait(1, 100ms)
      : ns_(saturated(timeout)), kind_(Kind::relative) {}
  /// Up to an instant of the machine's steady clock, of which a simulated clock has its own.
  constexpr Deadline(std::chrono::steady_clock::time_point instant)  // NOLINT(google-explicit-constructor)
      : ns_(std::chrono::nanoseconds(instant.time_since_epoch()).count()), kind_(Kind::absolute) {}
  /// Up to `instant.steady`.
  constexpr Deadline(Time instant)  // NOLINT(google-explicit-constructor): wait(1, Time)
      : ns_(instant.steady), kind_(Kind::absolute) {}

  /// The latest instant, in ns as Time::steady, of a call made at `now`; the largest number: none.
  [[nodiscard]] constexpr std::int64_t steady(std::int64_t now) const noexcept {
    if (kind_ == Kind::none) return kNone;
    if (kind_ == Kind::absolute) return ns_;
    if (ns_ > 0 && now > kNone - ns_) return kNone;
    if (ns_ < 0 && now < std::numeric_limits<std::int64_t>::min() - ns_)
      return std::numeric_limits<std::int64_t>::min();
    return now + ns_;
  }

 private:
  enum class Kind : std::uint8_t { none, relative, absolute };
  // seconds::max() is no number of ns.
  template <typename Rep, typename Period>
  static constexpr std::int64_t saturated(std::chrono::duration<Rep, Period> timeout) {
    constexpr double kMost = 9.2e18;
    const double ns = std::chrono::duration<double, std::nano>(timeout).count();
    if (ns >= kMost) return kNone;
    if (ns <= -kMost) return -kNone;
    return std::chrono::nanoseconds(timeout).count();
  }

  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t ns_ = 0;
  Kind kind_ = Kind::none;
};

}  // namespace sluice
