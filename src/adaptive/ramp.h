// A token bucket whose rate rises, in exact whole numbers.
//
// With c/p = rate/period in lowest terms, W the warm-up and f the cold factor, the refill u ticks after the first
// charge is c/p · (1/f + (1 − 1/f)·u/W) tokens a tick up to u = W, and c/p from there on. Its sum from 0 to u ≤ W is
// c·(2W·u + (f − 1)·u²) / (2·W·f·p): so everything is counted in 1/(2·W·f·p) of a token, and nothing is rounded.
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <type_traits>

#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "sluice/internal/warming_bucket.h"
#include "sluice/limit.h"

namespace sluice::adaptive {

using Narrow = algorithm::Uint128;
using Wide = boost::multiprecision::uint256_t;

/// Its numbers, compiled. Word: Narrow where fits_narrow(), else Wide, which holds all. Immutable; every function is
/// pure. A `now` older than the newest change is answered as that time.
template <typename Word>
class Ramp {
 public:
  /// The default value is a bucket never seen: full and cold. That is also what a bucket becomes by cooling down, so
  /// all others are warming or warm.
  struct State {
    bool cold = true;
    std::int64_t began = 0;                     ///< time of the charge that ended the cold
    std::int64_t last = algorithm::kNeverSeen;  ///< newest time at which this state changed
    Word missing = 0;                           ///< from a full bucket, at `last`
  };
  /// A state as it is at one instant.
  struct Present {
    bool cold = true;
    std::int64_t now = 0;
    std::uint64_t age = 0;       ///< ticks since the charge that ended the cold
    Word missing = 0;            ///< from a full bucket
    std::uint64_t full_for = 0;  ///< ticks
  };

  /// Precondition: the numbers are within their ranges.
  explicit Ramp(const internal::WarmingBucket::Numbers& numbers)
      : burst_(numbers.burst),
        warm_up_(static_cast<std::uint64_t>(numbers.warm_up.count())),
        cool_down_(static_cast<std::uint64_t>(numbers.cool_down.count())),
        steepness_(numbers.cold_factor - 1) {
    const auto period = static_cast<std::uint64_t>(numbers.period.count());
    const std::uint64_t divisor = std::gcd(numbers.rate, period);
    c_ = numbers.rate / divisor;
    slope_ = Word{2} * warm_up_ * numbers.cold_factor * c_;
    token_ = Word{2} * warm_up_ * numbers.cold_factor * (period / divisor);
  }

  /// Do 128 bits hold all that is reckoned with?
  [[nodiscard]] static bool fits_narrow(const internal::WarmingBucket::Numbers& numbers) {
    const Ramp<Wide> wide(numbers);
    const Wide most = Wide{1} << 126U;
    return wide.parts(numbers.burst + kMaxTokens) * 2 < most && wide.slope_ * wide.warm_up_ < most;
  }

  [[nodiscard]] std::uint64_t limit() const { return burst_; }

  [[nodiscard]] Present at(const State& state, std::int64_t now) const {
    if (state.cold) return {.now = now};
    now = std::max(now, state.last);
    const std::uint64_t before = algorithm::ticks_between(state.began, state.last);
    const std::uint64_t elapsed = algorithm::ticks_between(state.last, now);
    const Word earned = earned_between(before, before + elapsed);
    Present present{.cold = false, .now = now, .age = before + elapsed};
    if (earned < state.missing) {
      present.missing = state.missing - earned;
    } else {
      present.full_for = elapsed - ticks_until(before, state.missing).value_or(0);
      if (present.full_for >= cool_down_) return {.now = now};
    }
    return present;
  }

  [[nodiscard]] algorithm::Verdict judge(const Present& present, std::uint64_t cost) const {
    if (cost == 0) return {};
    if (cost > burst_) return {.fits = false, .retry_after = algorithm::kNever};
    const Word after = present.missing + parts(cost);
    if (after <= parts(burst_)) return {};
    return {.fits = false, .retry_after = told(ticks_until(present.age, after - parts(burst_)))};
  }

  [[nodiscard]] algorithm::View view(const Present& present) const {
    const Word full = parts(burst_);
    algorithm::View view{.limit = burst_};
    if (present.missing < full) view.remaining = static_cast<std::uint64_t>((full - present.missing) / token_);
    if (present.cold) return view;
    auto fresh_in = ticks_until(present.age, present.missing);
    if (fresh_in) *fresh_in += cool_down_ - present.full_for;
    view.reset_after = told(fresh_in);
    return view;
  }

  /// What is missing becomes more by `cost`, but at most so much that `room` tokens are owed; nothing if it is more
  /// already. Begins to warm up, if it is cold. `present` is that of `state`, and goes along.
  void take(State& state, Present& present, std::uint64_t cost, std::uint64_t room) const {
    const Word deepest = std::max<Word>(present.missing, parts(burst_ + room));
    const Word after = std::min<Word>(present.missing + parts(std::min(cost, burst_ + kMaxTokens)), deepest);
    if (after == present.missing) return;
    const std::int64_t began = present.cold ? present.now : state.began;
    change(state, present, began, after);
  }

  /// What is missing becomes less by `cost`.
  void refund(State& state, Present& present, std::uint64_t cost) const {
    if (present.missing == 0 || cost == 0) return;
    const Word back = parts(std::min(cost, burst_ + kMaxTokens));
    change(state, present, state.began, back < present.missing ? present.missing - back : Word{0});
  }

  /// The state, of `old` numbers, as one of these. A full bucket stays full, and begins anew to cool down.
  template <typename OldWord>
  [[nodiscard]] State converted(const typename Ramp<OldWord>::State& state, const Ramp<OldWord>& old,
                                std::int64_t now) const {
    const auto present = old.at(state, now);
    if (present.cold) return {};
    // The share of the warm-up that is done stays.
    const std::uint64_t done = std::min(present.age, old.warm_up_);
    const auto done_now = static_cast<std::uint64_t>(Narrow{done} * warm_up_ / old.warm_up_);
    State next{
        .cold = false, .began = present.now - static_cast<std::int64_t>(done_now), .last = present.now, .missing = 0};
    if (present.missing == 0) return next;
    // Its tokens, or its debt, rounded down.
    using Sum = boost::multiprecision::int512_t;
    const Sum new_token(token_);
    const Sum old_token(old.token_);
    const Sum level = (old_token * old.burst_ - Sum(present.missing)) * new_token;
    Sum tokens = level / old_token;
    if (tokens * old_token > level) --tokens;
    const Sum full = new_token * burst_;
    next.missing = static_cast<Word>(full - std::min<Sum>(full, tokens));
    return next;
  }

 private:
  template <typename>
  friend class Ramp;

  [[nodiscard]] Word parts(std::uint64_t tokens) const { return token_ * tokens; }

  static void change(State& state, Present& present, std::int64_t began, const Word& missing) {
    state = {.cold = false, .began = began, .last = present.now, .missing = missing};
    present = {.cold = false,
               .now = present.now,
               .age = algorithm::ticks_between(began, present.now),
               .missing = missing,
               .full_for = 0};
  }

  // Refill from one age to another, later one; a product that doesn't fit is more than ever is missing.
  [[nodiscard]] Word earned_between(std::uint64_t from, std::uint64_t to) const {
    const std::uint64_t from_ramp = std::min(from, warm_up_);
    const std::uint64_t to_ramp = std::min(to, warm_up_);
    const Word rising = rise(from_ramp, to_ramp - from_ramp) * c_;
    const Word flat_ticks = to - std::max(from, to_ramp);
    if constexpr (std::is_same_v<Word, Narrow>) {
      Word flat = 0;
      return __builtin_mul_overflow(flat_ticks, slope_, &flat) || rising + flat < flat ? ~Word{0} : rising + flat;
    } else {
      return rising + flat_ticks * slope_;
    }
  }

  // Refill of `ticks` after age `from` within the ramp, as a multiple of c: 2W·t + (f − 1)·((from + t)² − from²).
  [[nodiscard]] Word rise(std::uint64_t from, std::uint64_t ticks) const {
    return (Word{2} * warm_up_ + Word{steepness_} * (Word{2} * from + ticks)) * ticks;
  }

  // Fewest ticks after age `from` that earn `amount`; nothing: it is never earned. What takes longer than 146 years is
  // told as that.
  [[nodiscard]] std::optional<std::uint64_t> ticks_until(std::uint64_t from, Word amount) const {
    if (amount == 0) return 0;
    if (c_ == 0) return std::nullopt;
    std::uint64_t ramp = 0;
    if (from < warm_up_) {
      ramp = warm_up_ - from;
      const Word multiple = (amount - 1) / c_ + 1;
      const Word most = rise(from, ramp);
      if (multiple <= most) return ticks_of_rise(from, multiple);
      amount -= most * c_;
    }
    const Word flat = (amount - 1) / slope_ + 1;
    constexpr auto longest = static_cast<std::uint64_t>(algorithm::kLatest);
    return ramp + (flat < longest ? static_cast<std::uint64_t>(flat) : longest);
  }

  // Fewest ticks with rise(from, ticks) >= `multiple`: the root of a square equation, first about, then exactly.
  [[nodiscard]] std::uint64_t ticks_of_rise(std::uint64_t from, const Word& multiple) const {
    const auto a = static_cast<long double>(steepness_);
    const auto b = static_cast<long double>(warm_up_) + a * static_cast<long double>(from);
    const auto c = static_cast<long double>(multiple);
    auto ticks = static_cast<std::uint64_t>(c / (b + std::sqrt(b * b + a * c)));
    while (rise(from, ticks) < multiple) ++ticks;
    while (ticks != 0 && rise(from, ticks - 1) >= multiple) --ticks;
    return ticks;
  }

  [[nodiscard]] static std::int64_t told(const std::optional<std::uint64_t>& ticks) {
    if (!ticks) return algorithm::kNever;
    constexpr auto longest = static_cast<std::uint64_t>(algorithm::longest_wait(algorithm::Tick::nanosecond));
    return static_cast<std::int64_t>(std::min(*ticks, longest));
  }

  std::uint64_t burst_;
  std::uint64_t warm_up_;
  std::uint64_t cool_down_;
  std::uint64_t steepness_;  // f − 1
  std::uint64_t c_ = 0;
  Word slope_ = 0;  // refilled per tick, when warm
  Word token_ = 0;
};

}  // namespace sluice::adaptive
