// How long until something becomes possible: a duration, or never.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <iosfwd>

namespace sluice {

/// A waiting time in whole nanoseconds, or `never`. Never is a value of its own, not a huge duration: it compares
/// greater than every duration, and reading its value is a programming error. Range: 0 … 36 600 days; longer waits are
/// given as 36 600 days. Trivially copyable, 8 bytes.
class Wait {
 public:
  constexpr Wait() = default;
  /// Of this length, which must not be below 0.
  constexpr explicit Wait(std::chrono::nanoseconds duration) : ticks_(duration.count()) {}
  /// It never becomes possible.
  [[nodiscard]] static constexpr Wait never() { return Wait(kNever); }

  /// Is there no use in waiting?
  [[nodiscard]] constexpr bool is_never() const { return ticks_ == kNever; }
  /// Precondition: !is_never().
  [[nodiscard]] constexpr std::chrono::nanoseconds value() const { return std::chrono::nanoseconds(ticks_); }
  /// Whole seconds, rounded up; 0 only when the wait is 0. Precondition: !is_never().
  [[nodiscard]] constexpr std::int64_t ceil_seconds() const {
    return ticks_ / kSecond + (ticks_ % kSecond != 0 ? 1 : 0);
  }

  friend constexpr auto operator<=>(const Wait&, const Wait&) = default;

  /// As text, for logs and tests: "never", "0", or a whole number of the largest unit that it is a multiple of, as in
  /// "1500 ms".
  template <typename Traits>
  friend std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const Wait& wait) {
    if (wait.is_never()) {
      out << "never";
    } else if (wait.ticks_ == 0) {
      out << "0";
    } else if (wait.ticks_ % kSecond == 0) {
      out << wait.ticks_ / kSecond << " s";
    } else if (wait.ticks_ % kMillisecond == 0) {
      out << wait.ticks_ / kMillisecond << " ms";
    } else if (wait.ticks_ % kMicrosecond == 0) {
      out << wait.ticks_ / kMicrosecond << " µs";
    } else {
      out << wait.ticks_ << " ns";
    }
    return out;
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kMillisecond = 1'000'000;
  static constexpr std::int64_t kMicrosecond = 1'000;
  constexpr explicit Wait(std::int64_t ticks) : ticks_(ticks) {}
  std::int64_t ticks_ = 0;
};

/// No wait or reset is given as longer than this.
inline constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(24) * 36'600;

}  // namespace sluice
