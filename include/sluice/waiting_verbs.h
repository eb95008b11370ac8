// The verbs of buckets that take ahead of time: reserve and wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <utility>

#include "sluice/clock.h"
#include "sluice/deadline.h"
#include "sluice/internal/waits.h"
#include "sluice/reservation.h"
#include "sluice/verbs.h"
#include "sluice/wait_result.h"

namespace sluice {

/// What TokenBucket and LeakyBucket can do beside Verbs: take tokens before they are there. Base of these; not for use
/// by itself.
///
/// All who wait at a limiter, in threads or asynchronously (sluice/asio/async_wait.h), stand in one line, first come
/// first served. Their tokens are taken as they join, so nobody overtakes: the bucket is in debt and denies everybody
/// else. Each is granted for the exact instant at which try_acquire would succeed if the first in line called it all
/// the time, and wakes as much later as the machine takes. Only the first in line has a timer. When somebody leaves,
/// what they took is given back and all behind them move up; when refund, settle, penalize, reset or set_limit change
/// what the bucket holds, all find their times anew, sooner or later, and those for whom that is after their deadline,
/// or never, are told at once. (A leaky bucket's slots keep their times when its numbers change.)
///
/// A limiter at which nobody ever waited or reserved pays some 150 bytes. These calls take a lock, and the first one
/// allocates; they may throw std::bad_alloc. Nobody may wait any more when the limiter is destroyed.
template <typename Core, bool kGivesBack = true>
class WaitingVerbs : public Verbs<Core, kGivesBack> {
 public:
  /// Takes `cost` for the first instant at which it can be had, but now; tells that instant. Refused, and nothing is
  /// taken, when that would be more than `max_wait` from now, or never. See Reservation for giving it back. Allocates.
  [[nodiscard]] Reservation reserve(std::uint64_t cost, std::chrono::nanoseconds max_wait, Time now) {
    return this->core_.reserve(cost, max_wait, this->at(now), this->clock_);
  }
  /// The same, at the present time.
  [[nodiscard]] Reservation reserve(std::uint64_t cost, std::chrono::nanoseconds max_wait) {
    return this->core_.reserve(cost, max_wait, this->at(), this->clock_);
  }

  /// Waits until `cost` can be had, and takes it. Returns at once, having taken nothing, when that can only be after
  /// `deadline`, or never. A stop request ends the wait and gives back what it took.
  ///
  ///     if (bucket.wait(1, 2s)) send();  // at most 2 s
  WaitResult wait(std::uint64_t cost = 1, const Deadline& deadline = {}, std::stop_token stop = {}) {
    return this->core_.wait(cost, deadline, std::move(stop), this->clock_);
  }

 protected:
  using Verbs<Core, kGivesBack>::Verbs;
  ~WaitingVerbs() = default;

 private:
  friend internal::Waits& internal_waits_of(WaitingVerbs& limiter) { return limiter.core_.waits(limiter.clock_); }
};

}  // namespace sluice
