// A token bucket for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/bucket.h"

namespace sluice {

/// Capacity `burst`, refilled continuously at rate/period, full at first (GCRA is the same decision).
///
///     sluice::TokenBucket bucket{{.rate = 100, .period = std::chrono::seconds(1), .burst = 200}};
///     if (!bucket.try_acquire().allowed) …
///
/// Decisions are those of exact arithmetic on whole nanoseconds: nothing is rounded but the figures shown (`remaining`
/// down, waits up), so nothing drifts. Costs are 0 … 10^15 tokens; a larger one, like any above `burst`, can never fit.
///
/// Thread-safe: every call may be made from any thread. Lock-free (one compare-exchange for a charge, none for a
/// denial) but for settle, penalize, refund, reset, set_limit and buckets of more than 2^56 parts of a token (a few
/// long periods with large bursts), which take a mutex. Never allocates after construction.
///
/// Calls with `now` read no clock (`now.steady` counts). An older `now` than another call's is answered as itself: it
/// never gives more than the newest would, and is refused at worst for as many ns as it is late.
class TokenBucket {
 public:
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12; 0: nothing ever comes back
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint64_t burst = 1;                         ///< 1 … 10^15
  };
  /// How many tokens acquire_up_to took, and the state after that.
  using Granted = internal::Bucket::Granted;

  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit TokenBucket(const Numbers& numbers) : bucket_(internal::Bucket::Kind::tokens, internal_numbers(numbers)) {}

  /// Takes `cost` tokens if there are as many; else takes nothing and says when there will be. Cost 0 asks only.
  Decision try_acquire(std::uint64_t cost, Time now) noexcept { return bucket_.try_acquire(cost, now.steady); }
  Decision try_acquire(std::uint64_t cost = 1) noexcept { return bucket_.try_acquire(cost, internal::steady_now()); }

  /// What try_acquire would answer; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const noexcept { return bucket_.peek(cost, now.steady); }
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const noexcept {
    return bucket_.peek(cost, internal::steady_now());
  }

  /// Takes as many tokens as there are, at most `most`.
  Granted acquire_up_to(std::uint64_t most, Time now) noexcept { return bucket_.acquire_up_to(most, now.steady); }
  Granted acquire_up_to(std::uint64_t most) noexcept { return bucket_.acquire_up_to(most, internal::steady_now()); }

  // The verbs below answer what try_acquire(0) then says.

  /// Gives tokens back, never above full; a debt is paid first.
  Decision refund(std::uint64_t cost, Time now) noexcept { return bucket_.refund(cost, now.steady); }
  Decision refund(std::uint64_t cost) noexcept { return bucket_.refund(cost, internal::steady_now()); }

  /// For a cost known only afterwards: charges actual − reserved now, into debt when needed (at most 10^15 tokens deep;
  /// requests are then denied until it is paid), or refunds the difference.
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now) noexcept {
    return bucket_.settle(reserved, actual, now.steady);
  }
  Decision settle(std::uint64_t reserved, std::uint64_t actual) noexcept {
    return bucket_.settle(reserved, actual, internal::steady_now());
  }

  /// Takes without asking, into a debt at most `burst` deep.
  Decision penalize(std::uint64_t cost, Time now) noexcept { return bucket_.penalize(cost, now.steady); }
  Decision penalize(std::uint64_t cost) noexcept { return bucket_.penalize(cost, internal::steady_now()); }

  /// New numbers while running. Tokens and a debt stay as they are, cut to the new burst; a full bucket stays full;
  /// what was earned so far was earned at the old rate. Throws std::invalid_argument, and changes nothing, when they
  /// are out of range.
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
    return {numbers.rate, numbers.period, numbers.burst};
  }

  internal::Bucket bucket_;
};

}  // namespace sluice
