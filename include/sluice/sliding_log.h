// A sliding window log for one key, in this process: exact.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"

namespace sluice {

/// At most `rate` tokens in ANY interval of length `period`: an entry made at t counts in [t, t + period).
///
///     sluice::SlidingLog limit{{.rate = 100, .period = std::chrono::minutes(1)}};
///
/// Goes by `now.steady`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs O(log of the entries). Memory: 16 bytes for each instant of the last period at which something was
/// charged, at most doubled by growth.
class SlidingLog {
 public:
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
  };
  /// How many tokens acquire_up_to took, and the state after that.
  using Granted = internal::Guarded::Granted;

  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit SlidingLog(const Numbers& numbers) : guarded_(limit_of(numbers)) {}

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

  /// New numbers while running. What was taken stays; what has left the log does not come back. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return guarded_.set_limit(limit_of(numbers), now); }
  Decision set_limit(const Numbers& numbers) { return guarded_.set_limit(limit_of(numbers), guarded_.clock()); }

  /// As never used.
  Decision reset(Time now) { return guarded_.reset(now); }
  Decision reset() { return guarded_.reset(guarded_.clock()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {.algorithm = Algorithm::sliding_log, .rate = numbers.rate, .period = numbers.period};
  }

  internal::Guarded guarded_;
};

}  // namespace sluice
