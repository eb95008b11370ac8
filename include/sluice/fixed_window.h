// A fixed window for one key, in this process: a period limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"

namespace sluice {

/// At most `rate` tokens in each window. The charge that takes the last token is marked Mark::quota_hit, every denial
/// Mark::over_quota. Its known flaw: twice the rate can pass across a boundary.
///
///     sluice::FixedWindow quota{{.rate = 1000, .period = std::chrono::hours(1)}};
///
/// Goes by `now.utc`, with Align::first_hit by `now.steady`; an older `now` is answered as the newest that changed
/// something. Thread-safe, by a mutex; a decision costs some tens of ns and allocates nothing.
class FixedWindow {
 public:
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per window: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days; unused with a calendar
    Align align = Align::epoch;
    Calendar calendar{};        ///< with Align::calendar
    bool count_denied = false;  ///< denied charges are added to the count, up to 10^15 above the rate
  };
  /// How many tokens acquire_up_to took, and the state after that.
  using Granted = internal::Guarded::Granted;

  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit FixedWindow(const Numbers& numbers) : guarded_(limit_of(numbers)) {}

  /// Takes `cost` tokens if there are as many; else takes nothing (see count_denied) and says when there will be. Cost
  /// 0 asks only.
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

  /// New numbers while running. The count stays, or starts anew when the windows differ. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return guarded_.set_limit(limit_of(numbers), now); }
  Decision set_limit(const Numbers& numbers) { return guarded_.set_limit(limit_of(numbers), guarded_.clock()); }

  /// As never used.
  Decision reset(Time now) { return guarded_.reset(now); }
  Decision reset() { return guarded_.reset(guarded_.clock()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {.algorithm = Algorithm::fixed_window,
            .rate = numbers.rate,
            .period = numbers.period,
            .align = numbers.align,
            .calendar = numbers.calendar,
            .count_denied = numbers.count_denied};
  }

  internal::Guarded guarded_;
};

}  // namespace sluice
