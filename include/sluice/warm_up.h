// A token bucket that begins slowly, for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/warming_bucket.h"
#include "sluice/verbs.h"

namespace sluice {

/// A token bucket for what must not be hit at full rate when it is cold: caches to be filled, pools to be opened, code
/// to be compiled. The refill rises linearly from rate / cold_factor to rate over `warm_up` from the first charge on;
/// it is cold again once the bucket has been full for `cool_down`.
///
///     sluice::WarmUp limit{{.rate = 1000, .burst = 10, .warm_up = std::chrono::seconds(30)}};
///
/// Time warms it, not the number of calls, and it cools only when nobody wants tokens: so any traffic that wants more
/// than the cold rate gets the full rate after `warm_up`, be it ever so sparse. `burst` does not ramp: choose one that
/// may hit a cold service at once.
///
/// Exact on whole nanoseconds, like TokenBucket, of which it never lets through more: whatever it admits, a TokenBucket
/// of the same rate, period and burst would admit as well. `reset_after` is the time until it is full and cold.
///
/// Goes by `now.steady`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs some tens of ns, a denial some more, as its `retry_after` takes a square root; a few hundred where
/// warm_up · cold_factor · period are so long that 128 bits don't hold it. Never allocates after construction.
///
/// Verbs: see Verbs.
class WarmUp : public Verbs<internal::WarmingBucket> {
 public:
  /// What it lets through.
  struct Numbers {
    std::uint64_t rate = 0;                              ///< tokens per period, when warm: 0 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};      ///< whole µs, 1 µs … 366 days
    std::uint64_t burst = 1;                             ///< 1 … 10^15
    std::chrono::nanoseconds warm_up{10'000'000'000};    ///< from cold to the full rate: like period
    std::chrono::nanoseconds cool_down{60'000'000'000};  ///< full for as long, it is cold again: like period
    std::uint32_t cold_factor = 3;                       ///< rate / cold rate: 1 … 1000
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit WarmUp(const Numbers& numbers, const Clock* clock = nullptr) : Verbs(clock, of(numbers)) {}

  /// New numbers while running. Tokens and a debt stay as they are, cut to the new burst; a full bucket stays full;
  /// what was earned so far was earned at the old rate; the share of the warm-up that is done stays (rounded down to
  /// the ns). Throws std::invalid_argument, and changes nothing, when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(of(numbers), at(now)); }
  /// The same, now.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(of(numbers), at()); }

 private:
  static internal::WarmingBucket::Numbers of(const Numbers& numbers) {
    return {numbers.rate, numbers.period, numbers.burst, numbers.warm_up, numbers.cool_down, numbers.cold_factor};
  }
};

}  // namespace sluice
