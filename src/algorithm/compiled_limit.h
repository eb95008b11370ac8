// Any limit, compiled for a clock: one set of functions for all algorithms, over states of one type.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "algorithm/cell.h"
#include "algorithm/concurrency.h"
#include "algorithm/decision_of.h"
#include "algorithm/fixed_window.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/limit_check.h"
#include "algorithm/narrow_bucket.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"
#include "algorithm/ticks.h"
#include "algorithm/token_bucket.h"
#include "algorithm/verdict.h"
#include "algorithm/window.h"
#include "base/result.h"
#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/limit.h"

namespace sluice::algorithm {

/// Where calendar windows come from: open_calendar, or nothing where there are none (the core).
using CalendarOpener = Result<std::shared_ptr<const CalendarWindows>> (*)(const Calendar&, Tick);

/// A limit with its numbers compiled. Immutable; functions change nothing but the state given. Any thread may use it; a
/// state belongs to one thread at a time. Every `now` is in ticks of the clock that instant() names, within 146 years
/// of 0; one older than the state's newest change is answered as that time.
///
/// A state is a State or a Cell. State is plain data, for those who keep it elsewhere (Redis), and only for limits with
/// has_fixed_state(): none of its functions throws. Cell is for tables in memory and for all limits: see cell.h; what
/// changes one may throw std::bad_alloc, and then has changed nothing.
///
/// All or nothing over several charges: judge() each; when all fit, take() each, else count_denied() each that did not
/// fit; then decision() of each.
class CompiledLimit {
 public:
  /// The state of any algorithm of fixed size, 24 bytes. The default value is a key never seen.
  struct State {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::int64_t last = kNeverSeen;
    friend bool operator==(const State&, const State&) = default;
  };
  static_assert(std::is_trivially_copyable_v<State> && sizeof(State) == 24);

  /// Fails, naming the field and its range, when the limit is out of range.
  [[nodiscard]] static Result<CompiledLimit> compile(const Limit& limit, Tick tick, CalendarOpener calendars = nullptr);

  /// May the state be kept as a State? False for sliding_log, concurrency, and sliding_window with more than one slot.
  [[nodiscard]] bool has_fixed_state() const noexcept;

  /// The time of the clock that this limit goes by: UTC for windows aligned to the epoch or a calendar, else steady.
  [[nodiscard]] std::int64_t instant(Time now) const noexcept {
    const std::int64_t time = uses_utc_ ? now.utc : now.steady;
    return tick_ == Tick::nanosecond ? time : time / 1'000 - (time % 1'000 < 0 ? 1 : 0);
  }
  [[nodiscard]] bool uses_utc() const noexcept { return uses_utc_; }
  [[nodiscard]] std::uint64_t limit() const noexcept;

  /// Would `cost` fit? Cost 0 always does.
  template <typename AnyState>
  [[nodiscard]] Verdict judge(const AnyState& state, std::int64_t now, std::uint64_t cost) const
      noexcept(kSafe<AnyState>) {
    return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.judge(own, now, cost); });
  }
  /// Takes a cost that judge() found to fit at this `now`.
  template <typename AnyState>
  void take(AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept(kSafe<AnyState>) {
    on_state(state, [&](const auto& algorithm, auto& own) { static_cast<void>(algorithm.take(own, now, cost)); });
  }
  /// Adds a charge that did not fit, when the limit counts those.
  template <typename AnyState>
  void count_denied(AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept(kSafe<AnyState>) {
    if (!counts_denied_) return;
    on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
      if constexpr (std::is_same_v<A, FixedWindow>) algorithm.count_denied(own, now, cost);
    });
  }
  /// Does count_denied() ever change a state?
  [[nodiscard]] bool counts_denied() const noexcept { return counts_denied_; }
  template <typename AnyState>
  [[nodiscard]] View view(const AnyState& state, std::int64_t now) const noexcept {
    return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.view(own, now); });
  }
  /// judge(), then take() or count_denied(), and view(), in one.
  template <typename AnyState>
  [[nodiscard]] Outcome decide(AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept(kSafe<AnyState>) {
    return on_state(state, [&]<typename A>(const A& algorithm, auto& own) -> Outcome {
      if constexpr (std::is_same_v<A, Concurrency>) {
        const Verdict verdict = algorithm.judge(own, now, cost);
        if (verdict.fits) static_cast<void>(algorithm.take(own, now, cost));
        return {verdict, algorithm.view(own, now)};
      } else {
        return algorithm.decide(own, now, cost);
      }
    });
  }
  /// What decide() would answer; changes nothing.
  template <typename AnyState>
  [[nodiscard]] Outcome peek(const AnyState& state, std::int64_t now, std::uint64_t cost) const
      noexcept(kSafe<AnyState>) {
    return on_state(state, [&]<typename A>(const A& algorithm, const auto& own) -> Outcome {
      if constexpr (kIsFixed<typename A::State>) {
        auto copy = own;
        return algorithm.decide(copy, now, cost);
      } else {
        return algorithm.peek(own, now, cost);
      }
    });
  }
  /// A verdict and a view as a Decision, in nanoseconds.
  [[nodiscard]] Decision decision(const Verdict& verdict, const View& view) const noexcept {
    return decision_of(verdict, view, tick_);
  }
  [[nodiscard]] Decision decision(const Outcome& outcome) const noexcept { return decision_of(outcome, tick_); }

  /// The verbs of docs/semantics.md section 5. `at` is the time of the charge that is given back, when it is known.
  /// They do nothing to leases.
  template <typename AnyState>
  void refund(AnyState& state, std::int64_t now, std::uint64_t cost,
              std::optional<std::int64_t> at = std::nullopt) const noexcept(kSafe<AnyState>);
  template <typename AnyState>
  void settle(AnyState& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> at = std::nullopt) const noexcept(kSafe<AnyState>);
  template <typename AnyState>
  void penalize(AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept(kSafe<AnyState>);
  /// Turns a state of `old` numbers into one of these (set_limit). Another algorithm starts anew.
  template <typename AnyState>
  void convert(AnyState& state, const CompiledLimit& old, std::int64_t now) const noexcept(kSafe<AnyState>);

  /// Concurrency only. take(), and the lease gets an id greater than `used` and than those before it; 0 for cost 0.
  [[nodiscard]] std::uint64_t take_lease(Cell& cell, std::int64_t now, std::uint64_t cost, std::uint64_t used) const;
  /// Concurrency only. False, and no change, when the lease is not held: unknown, released, or timed out.
  [[nodiscard]] bool release(Cell& cell, std::int64_t now, std::uint64_t lease) const;

  /// Does the state equal one never seen, so that it may be dropped?
  template <typename AnyState>
  [[nodiscard]] bool is_initial(const AnyState& state, std::int64_t now) const noexcept {
    return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.is_initial(own, now); });
  }
  /// First instant at which it will, if nothing else comes; kNever: at no time. May lie in the past.
  template <typename AnyState>
  [[nodiscard]] std::int64_t expires_at(const AnyState& state) const noexcept {
    return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.expires_at(own); });
  }

  /// Token and leaky buckets only: calls function(numbers, state), which may change the state.
  template <typename AnyState, typename Function>
  void on_bucket(AnyState& state, Function&& function) const {
    on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
      if constexpr (std::is_same_v<A, TokenBucket> || std::is_same_v<A, LeakyBucket>) function(algorithm, own);
    });
  }
  /// The same numbers as a token bucket; null for other algorithms.
  [[nodiscard]] const TokenBucket* bucket_numbers() const noexcept {
    if (const auto* tokens = std::get_if<TokenBucket>(&algorithm_)) return tokens;
    const auto* leaky = std::get_if<LeakyBucket>(&algorithm_);
    return leaky != nullptr ? &leaky->slots() : nullptr;
  }

  /// The same numbers for quick decisions about cells; of other algorithms, or in other ticks, it makes none.
  [[nodiscard]] NarrowBucket narrow_bucket() const noexcept {
    if (tick_ != Tick::nanosecond) return {};
    if (const auto* tokens = std::get_if<TokenBucket>(&algorithm_)) return NarrowBucket(*tokens);
    const auto* leaky = std::get_if<LeakyBucket>(&algorithm_);
    return leaky != nullptr ? NarrowBucket(*leaky) : NarrowBucket();
  }

  /// The same state in a cell of its own, for its receiver to clear(). Throws std::bad_alloc.
  [[nodiscard]] Cell copy_of(const Cell& cell) const { return cell.is_elsewhere() ? copy_elsewhere(cell) : cell; }
  /// Gives up what a cell of these numbers owns; it is as never seen then.
  void clear(Cell& cell) const noexcept {
    if (cell.is_elsewhere()) free_elsewhere(cell);
    cell = {};
  }
  /// Bytes that a cell of these numbers owns besides itself, as malloc takes them.
  [[nodiscard]] std::size_t memory(const Cell& cell) const noexcept {
    return cell.is_elsewhere() ? memory_elsewhere(cell) : 0;
  }

 private:
  using Any =
      std::variant<TokenBucket, FixedWindow, LeakyBucket, SlidingWindow, SlottedWindow, SlidingLog, Concurrency>;

  template <typename AnyState>
  static constexpr bool kSafe = std::is_same_v<AnyState, State>;

  CompiledLimit(Any algorithm, const Limit& limit, Tick tick) noexcept;
  template <typename Function>
  auto on(Function&& function) const;
  // Calls function(algorithm, state as that algorithm knows it) and writes the state back.
  template <typename StateRef, typename Function>
  auto on_state(StateRef& state, Function&& function) const;
  template <typename A, typename StateRef, typename Function>
  static auto on_plain(const A& algorithm, StateRef& state, Function&& function);
  [[nodiscard]] Cell copy_elsewhere(const Cell& cell) const;
  void free_elsewhere(const Cell& cell) const noexcept;
  [[nodiscard]] std::size_t memory_elsewhere(const Cell& cell) const noexcept;

  Any algorithm_;
  Tick tick_;
  bool uses_utc_;
  bool counts_denied_;
};

template <typename Function>
auto CompiledLimit::on(Function&& function) const {
  switch (algorithm_.index()) {
    case 0:
      return function(*std::get_if<0>(&algorithm_));
    case 1:
      return function(*std::get_if<1>(&algorithm_));
    case 2:
      return function(*std::get_if<2>(&algorithm_));
    case 3:
      return function(*std::get_if<3>(&algorithm_));
    case 4:
      return function(*std::get_if<4>(&algorithm_));
    case 5:
      return function(*std::get_if<5>(&algorithm_));
    default:
      return function(*std::get_if<6>(&algorithm_));
  }
}

inline std::uint64_t CompiledLimit::limit() const noexcept {
  return on([](const auto& algorithm) { return algorithm.limit(); });
}

template <typename A, typename StateRef, typename Function>
auto CompiledLimit::on_plain(const A& algorithm, StateRef& state, Function&& function) {
  using Own = typename A::State;
  if constexpr (kIsFixed<Own>) {
    static_assert(sizeof(Own) == sizeof(State));
    Own own = std::bit_cast<Own>(state);
    if constexpr (std::is_const_v<StateRef>) {
      return function(algorithm, std::as_const(own));
    } else if constexpr (std::is_void_v<decltype(function(algorithm, own))>) {
      function(algorithm, own);
      state = std::bit_cast<State>(own);
    } else {
      const auto answer = function(algorithm, own);
      state = std::bit_cast<State>(own);
      return answer;
    }
  } else {
    assert(false && "a state of this limit has no fixed size");
    Own none;
    return function(algorithm, none);
  }
}

template <typename StateRef, typename Function>
auto CompiledLimit::on_state(StateRef& state, Function&& function) const {
  return on([&](const auto& algorithm) {
    if constexpr (std::is_same_v<std::remove_const_t<StateRef>, Cell>) {
      return on_cell(algorithm, state, function);
    } else {
      return on_plain(algorithm, state, function);
    }
  });
}

}  // namespace sluice::algorithm
