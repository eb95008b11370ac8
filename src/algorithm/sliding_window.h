// Sliding window counter: the tokens taken in the slots of a window, the slot that is leaving weighted by the part of
// it that is still inside.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"

namespace sluice::algorithm {

/// The compiled numbers of a sliding window. Immutable; every function is pure and, but for the first change of a
/// SlottedState (which allocates), noexcept in effect.
///
/// Every `now` is in ticks since 1970 UTC, within 146 years of 0; one older than the state's newest change is answered
/// as that time. Cost: some ns and one or two 64-bit divisions with one slot; about a ns more for each further slot.
class SlidingWindow {
 public:
  /// For one slot: 24 bytes, trivially copyable. The default value is a window never seen.
  struct State {
    std::array<std::uint64_t, 2> counts{};  ///< of the slots s and s - 1, each at (its number) mod 2
    std::int64_t last = kNeverSeen;         ///< newest time at which this state changed
    friend bool operator==(const State&, const State&) = default;
  };
  /// For any number of slots n. n + 1 counts, or none when never seen.
  struct SlottedState {
    std::vector<std::uint64_t> counts;  ///< of the slots s … s - n, each at (its number) mod (n + 1)
    std::int64_t last = kNeverSeen;
    /// Bytes held beyond the state itself.
    [[nodiscard]] std::size_t memory() const noexcept { return counts.capacity() * sizeof counts[0]; }
    friend bool operator==(const SlottedState&, const SlottedState&) = default;
  };

  /// `rate` 0 … 10^12 per `period` of ticks, which `slots` (1 … 1000) divides.
  SlidingWindow(std::uint64_t rate, std::int64_t period, std::uint32_t slots) noexcept
      : rate_(rate), width_(period / slots), slots_(slots) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return rate_; }

  /// Would `cost` fit? Cost 0 always does. AnyState: State (one slot) or SlottedState.
  template <typename AnyState>
  [[nodiscard]] Verdict judge(const AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept {
    return judge_in(look(counts_of(state), now), counts_of(state), cost);
  }
  /// Takes a cost that judge() found to fit at this `now`.
  template <typename AnyState>
  void take(AnyState& state, std::int64_t now, std::uint64_t cost) const {
    if (cost != 0) put(open(state), now, cost);
  }
  template <typename AnyState>
  [[nodiscard]] View view(const AnyState& state, std::int64_t now) const noexcept {
    return view_in(look(counts_of(state), now), counts_of(state));
  }
  /// judge(), take() when it fits, and view(), in one.
  template <typename AnyState>
  [[nodiscard]] Outcome decide(AnyState& state, std::int64_t now, std::uint64_t cost) const {
    const Verdict verdict = judge(state, now, cost);
    if (verdict.fits) take(state, now, cost);
    return {verdict, view(state, now)};
  }

  /// What decide() would answer; changes and copies nothing.
  template <typename AnyState>
  [[nodiscard]] Outcome peek(const AnyState& state, std::int64_t now, std::uint64_t cost) const noexcept {
    const Now current = look(counts_of(state), now);
    Outcome outcome{judge_in(current, counts_of(state), cost), view_in(current, counts_of(state))};
    if (outcome.verdict.fits && cost != 0) {
      outcome.view.remaining -= cost;
      outcome.view.reset_after = end_of(current.slot) - current.at;
    }
    return outcome;
  }

  /// Gives back up to `cost`, newest tokens first, never below 0 taken. With the time `at` of the charge: nothing once
  /// its slot has left the window.
  template <typename AnyState>
  void refund(AnyState& state, std::int64_t now, std::uint64_t cost,
              std::optional<std::int64_t> at = std::nullopt) const {
    if (cost != 0) give(open(state), now, cost, at);
  }
  /// Charges actual − reserved, at most 10^15 above `rate`, or refunds the difference.
  template <typename AnyState>
  void settle(AnyState& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> at = std::nullopt) const {
    if (actual <= reserved) {
      refund(state, now, reserved - actual, at);
    } else {
      force(open(state), now, actual - reserved, kDeepest);
    }
  }
  /// Takes without asking, at most to twice the rate.
  template <typename AnyState>
  void penalize(AnyState& state, std::int64_t now, std::uint64_t cost) const {
    force(open(state), now, cost, rate_);
  }
  /// Turns a state of `old` numbers into one of these: what was taken stays, or all starts anew when the slots differ.
  template <typename AnyState>
  void convert(AnyState& state, const SlidingWindow& old, std::int64_t /*now*/) const noexcept {
    if (width_ != old.width_ || slots_ != old.slots_) state = {};
  }

  /// Does the state equal one never seen?
  template <typename AnyState>
  [[nodiscard]] bool is_initial(const AnyState& state, std::int64_t now) const noexcept {
    return newest_counted(look(counts_of(state), now), counts_of(state)) == kNeverSeen;
  }
  /// First instant at which it will, if nothing else comes. May lie in the past.
  template <typename AnyState>
  [[nodiscard]] std::int64_t expires_at(const AnyState& state) const noexcept {
    if (state.last == kNeverSeen) return kNeverSeen;
    const std::int64_t newest = newest_counted(look(counts_of(state), state.last), counts_of(state));
    return newest == kNeverSeen ? state.last : end_of(newest);
  }

 private:
  static constexpr std::uint64_t kDeepest = 1'000'000'000'000'000;

  struct Counts {
    std::span<const std::uint64_t> ring;
    std::int64_t last = kNeverSeen;
  };
  struct OpenCounts {
    std::span<std::uint64_t> ring;
    std::int64_t& last;
  };
  // The counts as seen from a moment.
  struct Now {
    std::int64_t at = 0;
    std::int64_t slot = 0;
    std::int64_t into = 0;       // ticks since the slot began
    std::int64_t last_slot = 0;  // of the state's newest change
    std::int64_t whole = 0;      // tokens of the n slots wholly inside
    std::int64_t old = 0;        // tokens of the slot that is leaving
  };

  template <typename AnyState>
  [[nodiscard]] static Counts counts_of(const AnyState& state) noexcept {
    return {state.counts, state.last};
  }
  [[nodiscard]] static OpenCounts open(State& state) noexcept { return {state.counts, state.last}; }
  [[nodiscard]] OpenCounts open(SlottedState& state) const {
    state.counts.resize(std::size_t{slots_} + 1);
    return {state.counts, state.last};
  }

  [[nodiscard]] std::int64_t slot_of(std::int64_t now) const noexcept {
    return now / width_ - (now % width_ < 0 ? 1 : 0);
  }
  [[nodiscard]] std::int64_t end_of(std::int64_t slot) const noexcept {  // of the last moment at which it counts
    return (slot + 1 + slots_) * width_;
  }
  [[nodiscard]] std::size_t place_of(std::int64_t slot) const noexcept;
  [[nodiscard]] std::int64_t count(const Counts& counts, std::int64_t last_slot, std::int64_t slot) const noexcept;
  [[nodiscard]] Now look(const Counts& counts, std::int64_t now) const noexcept;
  [[nodiscard]] std::int64_t free(const Now& current) const noexcept;
  [[nodiscard]] std::int64_t newest_counted(const Now& current, const Counts& counts) const noexcept;
  [[nodiscard]] Verdict judge_in(Now current, const Counts& counts, std::uint64_t cost) const noexcept;
  [[nodiscard]] View view_in(const Now& current, const Counts& counts) const noexcept;
  void rotate(const OpenCounts& counts, const Now& current) const noexcept;
  void put(const OpenCounts& counts, std::int64_t now, std::uint64_t cost) const noexcept;
  void give(const OpenCounts& counts, std::int64_t now, std::uint64_t cost,
            std::optional<std::int64_t> at) const noexcept;
  void force(const OpenCounts& counts, std::int64_t now, std::uint64_t cost, std::uint64_t room) const noexcept;

  std::uint64_t rate_;
  std::int64_t width_;
  std::uint32_t slots_;
};

/// The same with states for any number of slots.
class SlottedWindow : public SlidingWindow {
 public:
  using SlidingWindow::SlidingWindow;
  using State = SlottedState;
};

}  // namespace sluice::algorithm
