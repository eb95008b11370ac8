// Token bucket in exact whole numbers.
//
// With c/p = rate/period in lowest terms, tokens per tick, everything is counted in 1/p of a token: a tick refills c,
// a cost takes cost·p, and nothing is ever rounded but the figures that are shown. The state is what is missing from a
// full bucket, so a state of zeros is a full bucket: one never seen.
#pragma once

#include <cstdint>

#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "algorithm/verdict.h"

namespace sluice::algorithm {

/// The compiled numbers of a token bucket. Immutable; every function is pure and noexcept.
///
/// Every `now` is in ticks, within 146 years of 0; one older than the state's newest change is answered as that time.
/// Cost: a few ns while burst·p and the debt stay below 2^62 (nearly all real limits), some tens of ns beyond.
class TokenBucket {
 public:
  /// 24 bytes, trivially copyable. The default value is a bucket never seen.
  struct State {
    std::uint64_t missing_low = 0;   ///< what is missing from a full bucket at `last`, in 1/p tokens, lower 64 bits
    std::uint64_t missing_high = 0;  ///< the upper 64 bits
    std::int64_t last = kNeverSeen;  ///< newest time at which this state changed
    friend bool operator==(const State&, const State&) = default;
  };

  /// `rate` 0 … 10^12 tokens per `period` 1 … 366 days of ticks; `burst` 1 … 10^15. See validate().
  TokenBucket(std::uint64_t rate, std::int64_t period, std::uint64_t burst, Tick tick) noexcept;

  [[nodiscard]] std::uint64_t limit() const noexcept { return burst_; }
  /// A token has this many parts, the units of State.
  [[nodiscard]] std::uint64_t parts_per_token() const noexcept { return p_; }
  [[nodiscard]] std::uint64_t parts_per_tick() const noexcept { return c_; }
  [[nodiscard]] Uint128 parts_when_full() const noexcept { return Uint128{burst_} * p_; }

  [[nodiscard]] static std::int64_t clamp(const State& state, std::int64_t now) noexcept {
    return now < state.last ? state.last : now;
  }
  /// Would `cost` fit? Cost 0 always does.
  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Takes a cost that judge() found to fit at this `now`.
  void take(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept;
  /// judge(), take() when it fits, and view(), in one.
  [[nodiscard]] Outcome decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept;

  /// Takes `cost` at the first instant at which it fits if nothing else comes, but now: `delay` tells when that will
  /// be, and from then on the state is as if it had been taken then. Refused, and nothing taken, when that is later
  /// than `max_wait` ticks from now, or never: `retry_after` tells when.
  [[nodiscard]] Verdict reserve(State& state, std::int64_t now, std::uint64_t cost,
                                std::int64_t max_wait) const noexcept;
  /// Gives back up to `cost`; never above full. A debt is paid first.
  void refund(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Charges actual − reserved, into debt when needed (at most 10^15 tokens deep), or refunds the difference.
  void settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual) const noexcept;
  /// Takes without asking, at most into a debt of `burst`.
  void penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Turns a state of `old` numbers into one of these: tokens stay (cut to the new burst), a full bucket stays full.
  void convert(State& state, const TokenBucket& old, std::int64_t now) const noexcept;

  /// A state in which so many parts are missing from a full bucket at `now`.
  static void set_missing(State& state, std::int64_t now, Uint128 parts) noexcept { store(state, now, parts); }

  /// Does the state equal one never seen?
  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept;
  /// First instant at which it will, if nothing else comes; kNever: at no time, or later than the longest wait from
  /// its newest change. May lie in the past.
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept;

  /// Of the same numbers as they were given: 2 per 2 s is not 1 per 1 s.
  friend bool operator==(const TokenBucket&, const TokenBucket&) = default;

 private:
  friend class LeakyBucket;

  // A state fits 64 bits when its missing amount is below 2^63. With burst·p below 2^62 no charge that fits leaves
  // that range, as missing + cost·p is then at most burst·p.
  [[nodiscard]] bool is_narrow(const State& state) const noexcept {
    return narrow_ && (state.missing_high | (state.missing_low >> 63U)) == 0;
  }
  template <typename Word>
  [[nodiscard]] static Word stored(const State& state) noexcept;
  static void store(State& state, std::int64_t now, Uint128 missing) noexcept;
  template <typename Word>
  [[nodiscard]] Word missing(const State& state, std::int64_t now) const noexcept;
  template <typename Word>
  [[nodiscard]] Word capacity() const noexcept;
  template <typename Word>
  [[nodiscard]] std::int64_t ticks_to_refill(Word amount) const noexcept;
  template <typename Word>
  [[nodiscard]] Verdict judge_missing(Word missing, std::uint64_t cost) const noexcept;
  template <typename Word>
  [[nodiscard]] View view_missing(Word missing) const noexcept;
  template <typename Word>
  [[nodiscard]] Outcome decide_as(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  void force(State& state, std::int64_t now, std::uint64_t cost, std::uint64_t room) const noexcept;

  std::uint64_t rate_;
  std::int64_t period_;
  std::uint64_t burst_;
  std::uint64_t c_;  // refilled per tick, in 1/p tokens
  std::uint64_t p_;  // 1/p tokens in a token
  std::uint64_t narrow_capacity_ = 0;
  std::int64_t longest_;
  bool narrow_;  // burst·p < 2^62
};

template <>
inline std::uint64_t TokenBucket::stored(const State& state) noexcept {
  return state.missing_low;
}
template <>
inline Uint128 TokenBucket::stored(const State& state) noexcept {
  return Uint128{state.missing_high} << 64U | state.missing_low;
}
template <>
inline std::uint64_t TokenBucket::capacity() const noexcept {
  return narrow_capacity_;
}
template <>
inline Uint128 TokenBucket::capacity() const noexcept {
  return Uint128{burst_} * p_;
}

inline void TokenBucket::store(State& state, std::int64_t now, Uint128 missing) noexcept {
  state.missing_low = static_cast<std::uint64_t>(missing);
  state.missing_high = static_cast<std::uint64_t>(missing >> 64U);
  state.last = now;
}

// Precondition: now >= state.last. A product that overflows is more than any missing amount of its width: a narrow one
// is below 2^63, and elapsed·c is below 2^104.
template <typename Word>
inline Word TokenBucket::missing(const State& state, std::int64_t now) const noexcept {
  const Word before = stored<Word>(state);
  Word refilled = 0;
  if (__builtin_mul_overflow(Word{ticks_between(state.last, now)}, Word{c_}, &refilled)) return 0;
  return refilled < before ? before - refilled : 0;
}

template <typename Word>
inline std::int64_t TokenBucket::ticks_to_refill(Word amount) const noexcept {
  if (amount == 0) return 0;
  if (c_ == 0) return kNever;
  const Word ticks = c_ == 1 ? amount : (amount - 1) / c_ + 1;
  return ticks < static_cast<Word>(longest_) ? static_cast<std::int64_t>(ticks) : longest_;
}

template <typename Word>
inline Verdict TokenBucket::judge_missing(Word missing, std::uint64_t cost) const noexcept {
  if (cost == 0) return {};
  if (cost > burst_) return {.fits = false, .retry_after = kNever};
  const Word after = missing + Word{cost} * p_;
  if (after <= capacity<Word>()) return {};
  return {.fits = false, .retry_after = ticks_to_refill<Word>(after - capacity<Word>())};
}

template <typename Word>
inline View TokenBucket::view_missing(Word missing) const noexcept {
  const Word top = capacity<Word>();
  const Word tokens = missing < top ? (top - missing) / p_ : 0;
  return {
      .limit = burst_, .remaining = static_cast<std::uint64_t>(tokens), .reset_after = ticks_to_refill<Word>(missing)};
}

inline Verdict TokenBucket::judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  now = clamp(state, now);
  return is_narrow(state) ? judge_missing(missing<std::uint64_t>(state, now), cost)
                          : judge_missing(missing<Uint128>(state, now), cost);
}

inline void TokenBucket::take(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  if (cost == 0) return;
  now = clamp(state, now);
  if (is_narrow(state)) {
    store(state, now, missing<std::uint64_t>(state, now) + cost * p_);
  } else {
    store(state, now, missing<Uint128>(state, now) + Uint128{cost} * p_);
  }
}

inline View TokenBucket::view(const State& state, std::int64_t now) const noexcept {
  now = clamp(state, now);
  return is_narrow(state) ? view_missing(missing<std::uint64_t>(state, now))
                          : view_missing(missing<Uint128>(state, now));
}

template <typename Word>
inline Outcome TokenBucket::decide_as(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  Word amount = missing<Word>(state, now);
  const Verdict verdict = judge_missing(amount, cost);
  if (verdict.fits && cost != 0) {
    amount += Word{cost} * p_;
    store(state, now, amount);
  }
  return {verdict, view_missing(amount)};
}

inline Outcome TokenBucket::decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  now = clamp(state, now);
  return is_narrow(state) ? decide_as<std::uint64_t>(state, now, cost) : decide_as<Uint128>(state, now, cost);
}

inline bool TokenBucket::is_initial(const State& state, std::int64_t now) const noexcept {
  now = clamp(state, now);
  return (is_narrow(state) ? missing<std::uint64_t>(state, now) : missing<Uint128>(state, now)) == 0;
}

}  // namespace sluice::algorithm
