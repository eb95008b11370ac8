// A token bucket for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/bucket.h"
#include "sluice/waiting_verbs.h"

namespace sluice {

/// Capacity `burst`, refilled continuously at rate/period, full at first (GCRA is the same decision).
///
///     sluice::TokenBucket bucket{{.rate = 100, .period = std::chrono::seconds(1), .burst = 200}};
///     if (!bucket.try_acquire().allowed) …
///
/// Decisions are those of exact arithmetic on whole nanoseconds: nothing is rounded but the figures shown (`remaining`
/// down, waits up), so nothing drifts.
///
/// Thread-safe: every call may be made from any thread. Lock-free (one compare-exchange for a charge, none for a
/// denial) but for settle, penalize, refund, reset, set_limit and buckets of more than 2^56 parts of a token (a few
/// long periods with large bursts), which take a mutex. Never allocates after construction. A charge takes about 4 ns
/// beside the reading of the clock, which takes 10; threads that charge one bucket at the same time wait for its cache
/// line, some 50 ns each (ShardedTokenBucket avoids that).
///
/// Goes by `now.steady`. An older `now` than another call's is answered as itself: it never gives more than the newest
/// would, and is refused at worst for as many ns as it is late.
///
/// Verbs: see Verbs and WaitingVerbs.
class TokenBucket : public WaitingVerbs<internal::Bucket> {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12; 0: nothing ever comes back
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint64_t burst = 1;                         ///< 1 … 10^15
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the bucket.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit TokenBucket(const Numbers& numbers, const Clock* clock = nullptr)
      : WaitingVerbs(clock, internal::Bucket::Kind::tokens, of(numbers)) {}

  /// New numbers while running. Tokens and a debt stay as they are, cut to the new burst; a full bucket stays full;
  /// what was earned so far was earned at the old rate. Throws std::invalid_argument, and changes nothing, when they
  /// are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(of(numbers), at(now)); }
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(of(numbers), at()); }

 private:
  static internal::Bucket::Numbers of(const Numbers& numbers) { return {numbers.rate, numbers.period, numbers.burst}; }
};

}  // namespace sluice
