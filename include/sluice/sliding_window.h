// A sliding window counter for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"
#include "sluice/verbs.h"

namespace sluice {

/// At most `rate` tokens by the estimate previous × (1 − elapsed/period) + current, windows aligned to 1970 UTC; with
/// `slots`, by sub-windows of period/slots, exact to one of them. Nothing is rounded in the comparison.
///
///     sluice::SlidingWindow limit{{.rate = 100, .period = std::chrono::minutes(1), .slots = 6}};
///
/// Goes by `now.utc`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs some tens of ns, and about a ns more for each slot; the first charge allocates slots + 1 counts of 8
/// bytes.
///
/// Verbs: see Verbs.
class SlidingWindow : public Verbs<internal::Guarded> {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint32_t slots = 1;                         ///< 1 … 1000; must split the period into whole µs
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit SlidingWindow(const Numbers& numbers, const Clock* clock = nullptr) : Verbs(clock, limit_of(numbers)) {}

  /// New numbers while running. What was taken stays, or all starts anew when period or slots differ. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(limit_of(numbers), now); }
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(limit_of(numbers), at()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {
        .algorithm = Algorithm::sliding_window, .rate = numbers.rate, .period = numbers.period, .slots = numbers.slots};
  }
};

}  // namespace sluice
