// A sliding window counter for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"

namespace sluice {

/// At most `rate` tokens by the estimate previous × (1 − elapsed/period) + current, windows aligned to 1970 UTC; with
/// `slots`, by sub-windows of period/slots, exact to one of them. Nothing is rounded in the comparison.
///
///     sluice::SlidingWindow limit{{.rate = 100, .period = std::chrono::minutes(1), .slots = 6}};
///
/// Goes by `now.utc`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs some tens of ns, and about a ns more for each slot; the first charge allocates slots + 1 counts of 8
/// bytes.
class SlidingWindow {
 public:
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint32_t slots = 1;                         ///< 1 … 1000; must split the period into whole µs
  };
  /// How many tokens acquire_up_to took, and the state after that.
  using Granted = internal::Guarded::Granted;

  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit SlidingWindow(const Numbers& numbers) : guarded_(limit_of(numbers)) {}

  /// Takes `cost` tokens if there are as many; else takes nothing and says when there will be. Cost 0 asks only.
  Decision try_acquire(std::uint64_t cost, Time now) { return guarded_.try_acquire(cost, now); }
  Decision try_acquire(std::uint64_t cost = 1) { return guarded_.try_acquire(cost, guarded_.clock()); }

  /// What try_acquire would answer; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const { return guarded_.peek(cost, now); }
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const { return guarded_.peek(cost, guarded_.clock()); }

  /// Takes as many tokens as there are, at most `most`.
  Granted acquire_up_to(std::uint64_t most, Time now) { return guarded_.acquire_up_to(most, now); }
  Granted acquire_up_to(std::uint64_t most) { return guarded_.acquire_up_to(most, guarded_.clock()); }

  // The verbs below answer what try_acquire(0) then says.

  /// Gives tokens back, newest first, never below 0 taken. With the time `charged` of their charge: nothing once it no
  /// longer counts.
  Decision refund(std::uint64_t cost, Time now, std::optional<Time> charged = std::nullopt) {
    return guarded_.refund(cost, now, charged);
  }
  Decision refund(std::uint64_t cost) { return guarded_.refund(cost, guarded_.clock(), std::nullopt); }

  /// For a cost known only afterwards: charges actual − reserved now, at most 10^15 above the rate, or refunds the
  /// difference as refund does.
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged = std::nullopt) {
    return guarded_.settle(reserved, actual, now, charged);
  }
  Decision settle(std::uint64_t reserved, std::uint64_t actual) {
    return guarded_.settle(reserved, actual, guarded_.clock(), std::nullopt);
  }

  /// Takes without asking, at most to twice the rate.
  Decision penalize(std::uint64_t cost, Time now) { return guarded_.penalize(cost, now); }
  Decision penalize(std::uint64_t cost) { return guarded_.penalize(cost, guarded_.clock()); }

  /// New numbers while running. What was taken stays, or all starts anew when period or slots differ. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return guarded_.set_limit(limit_of(numbers), now); }
  Decision set_limit(const Numbers& numbers) { return guarded_.set_limit(limit_of(numbers), guarded_.clock()); }

  /// As never used.
  Decision reset(Time now) { return guarded_.reset(now); }
  Decision reset() { return guarded_.reset(guarded_.clock()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {
        .algorithm = Algorithm::sliding_window, .rate = numbers.rate, .period = numbers.period, .slots = numbers.slots};
  }

  internal::Guarded guarded_;
};

}  // namespace sluice
