// A leaky bucket for one key, in this process: a queue that drains at a constant rate.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/bucket.h"

namespace sluice {

/// Requests leave in slots spaced period/rate apart; at most `queue` wait. Each that is admitted is told its `delay`,
/// after which the caller acts; two of them are never closer than period/rate.
///
///     sluice::LeakyBucket queue{{.rate = 10, .period = std::chrono::seconds(1), .queue = 20}};
///     if (const auto decision = queue.try_acquire(); decision.allowed) { /* act after decision.delay */ }
///
/// Exactness, threads and `now` as in TokenBucket. `limit` is queue + 1, `reset_after` the time until a request would
/// have no delay.
class LeakyBucket {
 public:
  struct Numbers {
    std::uint64_t rate = 1;                          ///< requests per period: 1 … 10^12
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint64_t queue = 0;                         ///< how many may wait: 0 … 10^15 − 1
  };

  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit LeakyBucket(const Numbers& numbers) : bucket_(internal::Bucket::Kind::queue, internal_numbers(numbers)) {}

  /// Takes `cost` slots in a row, of which the caller acts at the first; or takes nothing and says when it would fit.
  /// Cost 0 tells the delay of the next free slot.
  Decision try_acquire(std::uint64_t cost, Time now) noexcept { return bucket_.try_acquire(cost, now.steady); }
  Decision try_acquire(std::uint64_t cost = 1) noexcept { return bucket_.try_acquire(cost, internal::steady_now()); }

  /// What try_acquire would answer; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const noexcept { return bucket_.peek(cost, now.steady); }
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const noexcept {
    return bucket_.peek(cost, internal::steady_now());
  }

  // The verbs below answer what try_acquire(0) then says. There is no refund: a slot given away could be given twice.

  /// Charges actual − reserved slots, behind all others; gives nothing back.
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now) noexcept {
    return bucket_.settle(reserved, actual, now.steady);
  }
  Decision settle(std::uint64_t reserved, std::uint64_t actual) noexcept {
    return bucket_.settle(reserved, actual, internal::steady_now());
  }

  /// Takes slots without asking, at most until queue + 1 more than the queue holds are taken.
  Decision penalize(std::uint64_t cost, Time now) noexcept { return bucket_.penalize(cost, now.steady); }
  Decision penalize(std::uint64_t cost) noexcept { return bucket_.penalize(cost, internal::steady_now()); }

  /// New numbers while running. Slots given away keep their time. Throws std::invalid_argument, and changes nothing,
  /// when they are out of range.
  Decision set_limit(const Numbers& numbers, Time now) {
    return bucket_.set_limit(internal_numbers(numbers), now.steady);
  }
  Decision set_limit(const Numbers& numbers) {
    return bucket_.set_limit(internal_numbers(numbers), internal::steady_now());
  }

  /// As never used.
  Decision reset(Time now) noexcept { return bucket_.reset(now.steady); }
  Decision reset() noexcept { return bucket_.reset(internal::steady_now()); }

 private:
  static internal::Bucket::Numbers internal_numbers(const Numbers& numbers) {
    return {numbers.rate, numbers.period, numbers.queue < UINT64_MAX ? numbers.queue + 1 : numbers.queue};
  }

  internal::Bucket bucket_;
};

}  // namespace sluice
