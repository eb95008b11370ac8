// A fixed window for one key, in this process: a period limit.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"
#include "sluice/verbs.h"

namespace sluice {

/// At most `rate` tokens in each window. The charge that takes the last token is marked Mark::quota_hit, every denial
/// Mark::over_quota. Its known flaw: twice the rate can pass across a boundary.
///
///     sluice::FixedWindow quota{{.rate = 1000, .period = std::chrono::hours(1)}};
///
/// Goes by `now.utc`, with Align::first_hit by `now.steady`; an older `now` is answered as the newest that changed
/// something. Thread-safe, by a mutex; a decision costs some tens of ns and allocates nothing.
///
/// Verbs: see Verbs.
class FixedWindow : public Verbs<internal::Guarded> {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per window: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days; unused with a calendar
    Align align = Align::epoch;                      ///< where windows begin
    Calendar calendar{};                             ///< with Align::calendar
    bool count_denied = false;  ///< denied charges are added to the count, up to 10^15 above the rate
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit FixedWindow(const Numbers& numbers, const Clock* clock = nullptr) : Verbs(clock, limit_of(numbers)) {}

  /// New numbers while running. The count stays, or starts anew when the windows differ. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(limit_of(numbers), now); }
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(limit_of(numbers), at()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {.algorithm = Algorithm::fixed_window,
            .rate = numbers.rate,
            .period = numbers.period,
            .align = numbers.align,
            .calendar = numbers.calendar,
            .count_denied = numbers.count_denied};
  }
};

}  // namespace sluice
