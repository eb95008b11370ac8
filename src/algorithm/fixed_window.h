// Fixed window: at most `rate` tokens in each window of time.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "algorithm/window.h"
#include "sluice/limit.h"

namespace sluice::algorithm {

/// The compiled numbers of a fixed window. Immutable; every function is pure and noexcept.
///
/// Every `now` is in ticks, within 146 years of 0 (since 1970 UTC but for Align::first_hit); one older than the state's
/// newest change is answered as that time. Cost: a few ns; one 64-bit division when a window is entered; calendars: one
/// virtual call.
class FixedWindow {
 public:
  /// 24 bytes, trivially copyable. The default value is a window never seen.
  struct State {
    std::uint64_t count = 0;         ///< tokens taken in the window that begins at `start`
    std::int64_t start = 0;          ///< meaningful when `last` is
    std::int64_t last = kNeverSeen;  ///< newest time at which this state changed
    friend bool operator==(const State&, const State&) = default;
  };

  struct Numbers {
    std::uint64_t rate = 0;   ///< 0 … 10^12
    std::int64_t period = 0;  ///< 1 … 366 days of ticks; unused with a calendar
    Align align = Align::epoch;
    bool count_denied = false;
    std::shared_ptr<const CalendarWindows> calendar = nullptr;  ///< set when align is calendar
  };

  explicit FixedWindow(Numbers numbers) noexcept : numbers_(std::move(numbers)) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return numbers_.rate; }
  /// Do windows begin at times that don't depend on the state? Then a state's `start` follows from its `last`.
  [[nodiscard]] bool is_aligned() const noexcept { return numbers_.align != Align::first_hit; }
  /// The aligned window that holds `now`.
  [[nodiscard]] Window window_of(std::int64_t now) const noexcept { return find_window(now); }
  /// Not for calendars: `last` − `start` is below 2 to this power, which is 1 … 55 in ns.
  [[nodiscard]] unsigned bits_of_offset() const noexcept {
    return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(numbers_.period)));
  }

  [[nodiscard]] static std::int64_t clamp(const State& state, std::int64_t now) noexcept {
    return now < state.last ? state.last : now;
  }
  /// Would `cost` fit? Cost 0 always does.
  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Takes a cost that judge() found to fit at this `now`.
  void take(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Adds a charge that did not fit, when the limit counts those; up to 10^15 above `rate`.
  void count_denied(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept;
  /// judge(), then take() or count_denied(), and view(), in one.
  [[nodiscard]] Outcome decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept;

  /// What decide() would answer; changes nothing.
  [[nodiscard]] Outcome peek(State state, std::int64_t now, std::uint64_t cost) const noexcept {
    return decide(state, now, cost);
  }

  /// Gives back up to `cost`, never below 0 taken. With the time `at` of the charge: nothing once its window is over.
  void refund(State& state, std::int64_t now, std::uint64_t cost,
              std::optional<std::int64_t> at = std::nullopt) const noexcept;
  /// Charges actual − reserved, at most 10^15 above `rate`, or refunds the difference.
  void settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> at = std::nullopt) const noexcept;
  /// Takes without asking, at most to twice the rate.
  void penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Turns a state of `old` numbers into one of these: the count stays, or starts anew when the windows differ.
  void convert(State& state, const FixedWindow& old, std::int64_t now) const noexcept;

  /// Does the state equal one never seen?
  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept;
  /// First instant at which it will, if nothing else comes. May lie in the past.
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept;

 private:
  // The window that holds `now`, and what was taken in it.
  struct Now {
    Window window;
    std::uint64_t used = 0;
    std::int64_t at = 0;
    [[nodiscard]] std::int64_t left() const noexcept { return window.length - (at - window.start); }
  };

  [[nodiscard]] Now look(const State& state, std::int64_t now) const noexcept;
  [[nodiscard]] Window find_window(std::int64_t now) const noexcept;
  [[nodiscard]] bool same_windows(const FixedWindow& other) const noexcept;
  [[nodiscard]] Verdict judge_in(const Now& current, std::uint64_t cost) const noexcept;
  [[nodiscard]] View view_in(const Now& current) const noexcept;
  static void put(State& state, const Now& current, std::uint64_t count) noexcept;
  void force(State& state, const Now& current, std::uint64_t cost, std::uint64_t room) const noexcept;

  Numbers numbers_;
};

inline FixedWindow::Now FixedWindow::look(const State& state, std::int64_t now) const noexcept {
  now = clamp(state, now);
  // The state's own window is known without a division. A calendar's length varies, so it is always asked.
  if (numbers_.align != Align::calendar && state.last != kNeverSeen &&
      ticks_between(state.start, now) < static_cast<std::uint64_t>(numbers_.period)) {
    return {{state.start, numbers_.period}, state.count, now};
  }
  const Window window = find_window(now);
  const bool same = numbers_.align == Align::calendar && state.start == window.start;
  return {window, same ? state.count : 0, now};
}

inline Verdict FixedWindow::judge_in(const Now& current, std::uint64_t cost) const noexcept {
  if (cost == 0) return {};
  const std::uint64_t rate = numbers_.rate;
  if (cost > rate) return {.fits = false, .mark = Mark::over_quota, .retry_after = kNever};
  if (current.used + cost > rate) return {.fits = false, .mark = Mark::over_quota, .retry_after = current.left()};
  return {.mark = current.used + cost == rate ? Mark::quota_hit : Mark::none};
}

inline View FixedWindow::view_in(const Now& current) const noexcept {
  return {.limit = numbers_.rate,
          .remaining = current.used < numbers_.rate ? numbers_.rate - current.used : 0,
          .reset_after = current.left()};
}

inline void FixedWindow::put(State& state, const Now& current, std::uint64_t count) noexcept {
  state = {count, current.window.start, current.at};
}

inline Verdict FixedWindow::judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  return judge_in(look(state, now), cost);
}

inline void FixedWindow::take(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  if (cost == 0) return;
  const Now current = look(state, now);
  put(state, current, current.used + cost);
}

inline View FixedWindow::view(const State& state, std::int64_t now) const noexcept { return view_in(look(state, now)); }

inline Outcome FixedWindow::decide(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  Now current = look(state, now);
  const Verdict verdict = judge_in(current, cost);
  if (verdict.fits && cost != 0) {
    current.used += cost;
    put(state, current, current.used);
    if (numbers_.align == Align::first_hit) current.window.length = numbers_.period;  // it is open now
  } else if (!verdict.fits && numbers_.count_denied) {
    count_denied(state, now, cost);
    current = look(state, now);
  }
  return {verdict, view_in(current)};
}

}  // namespace sluice::algorithm
