// Any limit, compiled for a clock: one state type and one set of functions for all algorithms.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <variant>

#include "algorithm/fixed_window.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/limit_check.h"
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

/// A limit with its numbers compiled. Immutable; every function is noexcept and changes nothing but the state given.
/// Any thread may use it; a state belongs to one thread at a time. Every `now` is in ticks of the clock that instant()
/// names, within 146 years of 0; one older than the state's newest change is answered as that time.
///
/// All or nothing over several charges: judge() each; when all fit, take() each, else count_denied() each that did not
/// fit; then decision() of each.
class CompiledLimit {
 public:
  /// The state of any algorithm, 24 bytes. The default value is a key never seen.
  struct State {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::int64_t last = kNeverSeen;
    friend bool operator==(const State&, const State&) = default;
  };
  static_assert(std::is_trivially_copyable_v<State> && sizeof(State) == 24);

  /// Fails, naming the field and its range, when the limit is out of range, or has no state of fixed size: sliding_log,
  /// concurrency, and sliding_window with more than one slot.
  [[nodiscard]] static Result<CompiledLimit> compile(const Limit& limit, Tick tick, CalendarOpener calendars = nullptr);

  /// The time of the clock that this limit goes by: UTC for windows aligned to the epoch or a calendar, else steady.
  [[nodiscard]] std::int64_t instant(Time now) const noexcept {
    const std::int64_t time = uses_utc_ ? now.utc : now.steady;
    return tick_ == Tick::nanosecond ? time : time / 1'000 - (time % 1'000 < 0 ? 1 : 0);
  }
  [[nodiscard]] bool uses_utc() const noexcept { return uses_utc_; }
  [[nodiscard]] std::uint64_t limit() const noexcept;

  /// Would `cost` fit? Cost 0 always does.
  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Takes a cost that judge() found to fit at this `now`.
  void take(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Adds a charge that did not fit, when the limit counts those.
  void count_denied(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Does count_denied() ever change a state?
  [[nodiscard]] bool counts_denied() const noexcept { return counts_denied_; }
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept;
  /// judge(), then take() or count_denied(), and view(), in one.
  [[nodiscard]] Outcome decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// What decide() would answer; changes nothing.
  [[nodiscard]] Outcome peek(State state, std::int64_t now, std::uint64_t cost) const noexcept {
    return decide(state, now, cost);
  }
  /// A verdict and a view as a Decision, in nanoseconds.
  [[nodiscard]] Decision decision(const Verdict& verdict, const View& view) const noexcept;
  [[nodiscard]] Decision decision(const Outcome& outcome) const noexcept {
    return decision(outcome.verdict, outcome.view);
  }

  /// The verbs of docs/semantics.md section 5. `at` is the time of the charge that is given back, when it is known.
  void refund(State& state, std::int64_t now, std::uint64_t cost,
              std::optional<std::int64_t> at = std::nullopt) const noexcept;
  void settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> at = std::nullopt) const noexcept;
  void penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Turns a state of `old` numbers into one of these (set_limit). Another algorithm starts anew.
  void convert(State& state, const CompiledLimit& old, std::int64_t now) const noexcept;

  /// Does the state equal one never seen, so that it may be dropped?
  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept;
  /// First instant at which it will, if nothing else comes; kNever: at no time. May lie in the past.
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept;

 private:
  using Any = std::variant<TokenBucket, FixedWindow, LeakyBucket, SlidingWindow>;

  CompiledLimit(Any algorithm, const Limit& limit, Tick tick) noexcept;
  template <typename Function>
  auto on(Function&& function) const noexcept;
  // Calls function(algorithm, state as that algorithm knows it) and writes the state back.
  template <typename StateRef, typename Function>
  auto on_state(StateRef& state, Function&& function) const noexcept;

  Any algorithm_;
  Tick tick_;
  bool uses_utc_;
  bool counts_denied_;
};

template <typename Function>
auto CompiledLimit::on(Function&& function) const noexcept {
  if (const auto* bucket = std::get_if<TokenBucket>(&algorithm_)) return function(*bucket);
  if (const auto* window = std::get_if<FixedWindow>(&algorithm_)) return function(*window);
  if (const auto* queue = std::get_if<LeakyBucket>(&algorithm_)) return function(*queue);
  return function(*std::get_if<SlidingWindow>(&algorithm_));
}

template <typename StateRef, typename Function>
auto CompiledLimit::on_state(StateRef& state, Function&& function) const noexcept {
  return on([&](const auto& algorithm) {
    using Own = typename std::remove_cvref_t<decltype(algorithm)>::State;
    static_assert(sizeof(Own) == sizeof(State));
    if constexpr (std::is_const_v<StateRef>) {
      return function(algorithm, std::bit_cast<Own>(state));
    } else {
      Own own = std::bit_cast<Own>(state);
      if constexpr (std::is_void_v<decltype(function(algorithm, own))>) {
        function(algorithm, own);
        state = std::bit_cast<State>(own);
      } else {
        const auto answer = function(algorithm, own);
        state = std::bit_cast<State>(own);
        return answer;
      }
    }
  });
}

inline std::uint64_t CompiledLimit::limit() const noexcept {
  return on([](const auto& algorithm) { return algorithm.limit(); });
}

inline Verdict CompiledLimit::judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.judge(own, now, cost); });
}

inline void CompiledLimit::take(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  on_state(state, [&](const auto& algorithm, auto& own) { algorithm.take(own, now, cost); });
}

inline void CompiledLimit::count_denied(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  if (!counts_denied_) return;
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (std::is_same_v<A, FixedWindow>) algorithm.count_denied(own, now, cost);
  });
}

inline View CompiledLimit::view(const State& state, std::int64_t now) const noexcept {
  return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.view(own, now); });
}

inline Outcome CompiledLimit::decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  return on_state(state, [&](const auto& algorithm, auto& own) { return algorithm.decide(own, now, cost); });
}

inline Decision CompiledLimit::decision(const Verdict& verdict, const View& view) const noexcept {
  const auto wait = [scale = nanoseconds_in(tick_)](std::int64_t ticks) {
    return ticks == kNever ? Wait::never() : Wait(std::chrono::nanoseconds(ticks * scale));
  };
  return {.allowed = verdict.fits,
          .mark = verdict.mark,
          .limit = view.limit,
          .remaining = view.remaining,
          .retry_after = wait(verdict.retry_after),
          .reset_after = wait(view.reset_after),
          .delay = wait(verdict.delay)};
}

inline bool CompiledLimit::is_initial(const State& state, std::int64_t now) const noexcept {
  return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.is_initial(own, now); });
}

inline std::int64_t CompiledLimit::expires_at(const State& state) const noexcept {
  return on_state(state, [&](const auto& algorithm, const auto& own) { return algorithm.expires_at(own); });
}

}  // namespace sluice::algorithm
