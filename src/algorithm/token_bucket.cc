#include "algorithm/token_bucket.h"

#include <algorithm>
#include <numeric>

#include "sluice/limit.h"

namespace sluice::algorithm {

namespace {
constexpr std::uint64_t kNarrow = std::uint64_t{1} << 62U;
}

TokenBucket::TokenBucket(std::uint64_t rate, std::int64_t period, std::uint64_t burst, Tick tick) noexcept
    : rate_(rate),
      period_(period),
      burst_(burst),
      c_(rate / std::gcd(rate, static_cast<std::uint64_t>(period))),
      p_(static_cast<std::uint64_t>(period) / std::gcd(rate, static_cast<std::uint64_t>(period))),
      longest_(longest_wait(tick)),
      narrow_(Uint128{burst} * p_ < kNarrow) {
  if (narrow_) narrow_capacity_ = burst_ * p_;
}

// The verbs below are rare beside checks, so they use the wide numbers only. No product overflows: p < 2^55, tokens and
// debts < 2^51.

Verdict TokenBucket::reserve(State& state, std::int64_t now, std::uint64_t cost, std::int64_t max_wait) const noexcept {
  now = clamp(state, now);
  Verdict verdict = judge(state, now, cost);
  if (verdict.fits && max_wait >= 0) {
    take(state, now, cost);
    return verdict;
  }
  verdict.fits = false;
  if (verdict.retry_after > max_wait || verdict.retry_after >= longest_) return verdict;
  // When the time comes the bucket may have been full for a part of a tick, which is then lost as it always is.
  const Uint128 refilled = Uint128{static_cast<std::uint64_t>(verdict.retry_after)} * c_;
  store(state, now, std::max(missing<Uint128>(state, now), refilled) + Uint128{cost} * p_);
  return {.delay = verdict.retry_after};
}

void TokenBucket::refund(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  now = clamp(state, now);
  const auto before = missing<Uint128>(state, now);
  if (before == 0 || cost == 0) return;
  store(state, now, before - std::min(before, Uint128{cost} * p_));
}

void TokenBucket::settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual) const noexcept {
  if (actual <= reserved) {
    refund(state, now, reserved - actual);
  } else {
    force(state, now, actual - reserved, kMaxTokens);
  }
}

void TokenBucket::penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  force(state, now, cost, burst_);
}

// Takes as much of `cost` as leaves at most `room` tokens of debt, and nothing from a deeper one.
void TokenBucket::force(State& state, std::int64_t now, std::uint64_t cost, std::uint64_t room) const noexcept {
  now = clamp(state, now);
  const auto before = missing<Uint128>(state, now);
  const Uint128 deepest = std::max(before, (Uint128{burst_} + room) * p_);
  const Uint128 after = std::min(before + Uint128{cost} * p_, deepest);
  if (after != before) store(state, now, after);
}

void TokenBucket::convert(State& state, const TokenBucket& old, std::int64_t now) const noexcept {
  if (state.last == kNeverSeen || *this == old) return;
  now = clamp(state, now);
  const auto short_of_old = old.missing<Uint128>(state, now);
  if (short_of_old == 0) {
    store(state, now, 0);
    return;
  }
  const Int128 level = static_cast<Int128>(old.capacity<Uint128>()) - static_cast<Int128>(short_of_old);
  // level·p/old.p rounded down, whole tokens and their fraction apart, as the product would not fit.
  const auto old_p = static_cast<Int128>(old.p_);
  const auto new_p = static_cast<Int128>(p_);
  Int128 tokens = level / old_p;
  Int128 fraction = level % old_p;
  if (fraction < 0) {
    fraction += old_p;
    --tokens;
  }
  const Int128 converted = tokens * new_p + fraction * new_p / old_p;
  const auto top = static_cast<Int128>(capacity<Uint128>());
  store(state, now, static_cast<Uint128>(top - std::min(top, converted)));
}

std::int64_t TokenBucket::expires_at(const State& state) const noexcept {
  const std::int64_t wait = ticks_to_refill(stored<Uint128>(state));
  if (state.last == kNeverSeen) return kNeverSeen;
  return wait >= longest_ ? kNever : state.last + wait;  // waits are cut to the longest
}

}  // namespace sluice::algorithm
