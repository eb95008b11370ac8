// Leaky bucket as a queue: requests leave at a constant rate, and each is told how long to wait for its turn.
#pragma once

#include <cstdint>

#include "algorithm/token_bucket.h"

namespace sluice::algorithm {

/// A token bucket of capacity queue + 1, whose missing tokens are the slots already given away. Otherwise as
/// TokenBucket.
class LeakyBucket {
 public:
  using State = TokenBucket::State;

  /// `rate` 1 … 10^12 per `period` of ticks; `queue` 0 … 10^15 − 1.
  LeakyBucket(std::uint64_t rate, std::int64_t period, std::uint64_t queue, Tick tick) noexcept
      : slots_(rate, period, queue + 1, tick) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return slots_.limit(); }
  [[nodiscard]] Uint128 parts_when_full() const noexcept { return slots_.parts_when_full(); }
  /// The token bucket that it is.
  [[nodiscard]] const TokenBucket& slots() const noexcept { return slots_; }

  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
    Verdict verdict = slots_.judge(state, now, cost);
    if (verdict.fits) verdict.delay = slots_.view(state, now).reset_after;
    return verdict;
  }
  void take(State& state, std::int64_t now, std::uint64_t cost) const noexcept { slots_.take(state, now, cost); }
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept { return slots_.view(state, now); }
  [[nodiscard]] Outcome decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
    const std::int64_t delay = slots_.view(state, now).reset_after;
    Outcome outcome = slots_.decide(state, now, cost);
    if (outcome.verdict.fits) outcome.verdict.delay = delay;
    return outcome;
  }

  /// decide(), refused too when the slot would come more than `max_wait` ticks from now: `retry_after` then tells when
  /// it no longer would.
  [[nodiscard]] Verdict reserve(State& state, std::int64_t now, std::uint64_t cost,
                                std::int64_t max_wait) const noexcept {
    const Verdict verdict = judge(state, now, cost);
    if (verdict.fits && verdict.delay > max_wait) {
      return {.fits = false, .retry_after = max_wait < 0 ? verdict.delay : verdict.delay - max_wait};
    }
    if (verdict.fits) take(state, now, cost);
    return verdict;
  }

  /// Gives nothing back: a slot given away could be given twice.
  void refund(State& /*state*/, std::int64_t /*now*/, std::uint64_t /*cost*/) const noexcept {}
  /// Charges actual − reserved, into debt when needed; gives nothing back.
  void settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual) const noexcept {
    if (actual > reserved) slots_.settle(state, now, reserved, actual);
  }
  void penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
    slots_.penalize(state, now, cost);
  }
  /// Slots given away keep their time, so the backlog in ticks (rounded up) stays.
  void convert(State& state, const LeakyBucket& old, std::int64_t now) const noexcept;

  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept {
    return slots_.is_initial(state, now);
  }
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept { return slots_.expires_at(state); }

  friend bool operator==(const LeakyBucket&, const LeakyBucket&) = default;

 private:
  TokenBucket slots_;
};

}  // namespace sluice::algorithm
