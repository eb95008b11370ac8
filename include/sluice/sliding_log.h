// A sliding window log for one key, in this process: exact.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/guarded.h"
#include "sluice/limit.h"
#include "sluice/verbs.h"

namespace sluice {

/// At most `rate` tokens in ANY interval of length `period`: an entry made at t counts in [t, t + period).
///
///     sluice::SlidingLog limit{{.rate = 100, .period = std::chrono::minutes(1)}};
///
/// Goes by `now.steady`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs O(log of the entries). Memory: 16 bytes for each instant of the last period at which something was
/// charged, at most doubled by growth.
///
/// Verbs: see Verbs.
class SlidingLog : public Verbs<internal::Guarded> {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit SlidingLog(const Numbers& numbers, const Clock* clock = nullptr) : Verbs(clock, limit_of(numbers)) {}

  /// New numbers while running. What was taken stays; what has left the log does not come back. Throws
  /// std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(limit_of(numbers), now); }
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(limit_of(numbers), at()); }

 private:
  static Limit limit_of(const Numbers& numbers) {
    return {.algorithm = Algorithm::sliding_log, .rate = numbers.rate, .period = numbers.period};
  }
};

}  // namespace sluice
