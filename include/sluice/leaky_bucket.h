// A leaky bucket for one key, in this process: a queue that drains at a constant rate.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/bucket.h"
#include "sluice/waiting_verbs.h"

namespace sluice {

/// Requests leave in slots spaced period/rate apart; at most `queue` wait. Each that is admitted is told its `delay`,
/// after which the caller acts; two of them are never closer than period/rate.
///
///     sluice::LeakyBucket queue{{.rate = 10, .period = std::chrono::seconds(1), .queue = 20}};
///     if (const auto decision = queue.try_acquire(); decision.allowed) { /* act after decision.delay */ }
///
/// A cost takes as many slots in a row, of which the caller acts at the first; cost 0 tells the delay of the next free
/// slot. Exactness, threads and `now` as in TokenBucket. `limit` is queue + 1, `reset_after` the time until a request
/// would have no delay.
///
/// Verbs: see Verbs and WaitingVerbs. There is neither acquire_up_to nor refund.
class LeakyBucket : public WaitingVerbs<internal::Bucket, false> {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 1;                          ///< requests per period: 1 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint64_t queue = 0;                         ///< how many may wait: 0 … 10^15 − 1
  };

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the bucket.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit LeakyBucket(const Numbers& numbers, const Clock* clock = nullptr)
      : WaitingVerbs(clock, internal::Bucket::Kind::queue, of(numbers)) {}

  /// New numbers while running. Slots given away keep their time. Throws std::invalid_argument, and changes nothing,
  /// when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) { return core_.set_limit(of(numbers), at(now)); }
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers) { return core_.set_limit(of(numbers), at()); }

 private:
  static internal::Bucket::Numbers of(const Numbers& numbers) {
    return {numbers.rate, numbers.period, numbers.queue + 1};  // may wrap around, and back where it is checked
  }
};

}  // namespace sluice
