#include "algorithm/fixed_window.h"

#include <algorithm>

namespace sluice::algorithm {

Window FixedWindow::find_window(std::int64_t now) const noexcept {
  switch (numbers_.align) {
    case Align::calendar:
      return numbers_.calendar->window(now);
    case Align::first_hit:
      return {now, 0};
    case Align::epoch:
      break;
  }
  const std::int64_t into = now % numbers_.period;
  return {now - (into < 0 ? into + numbers_.period : into), numbers_.period};
}

bool FixedWindow::same_windows(const FixedWindow& other) const noexcept {
  if (numbers_.align != other.numbers_.align) return false;
  if (numbers_.align == Align::calendar) return numbers_.calendar->calendar() == other.numbers_.calendar->calendar();
  return numbers_.period == other.numbers_.period;
}

void FixedWindow::force(State& state, const Now& current, std::uint64_t cost, std::uint64_t room) const noexcept {
  const std::uint64_t most = numbers_.rate + room;
  if (cost == 0 || current.used >= most) return;
  put(state, current, current.used + std::min(cost, most - current.used));
}

void FixedWindow::count_denied(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  if (numbers_.count_denied) force(state, look(state, now), cost, kMaxTokens);
}

void FixedWindow::refund(State& state, std::int64_t now, std::uint64_t cost,
                         std::optional<std::int64_t> at) const noexcept {
  const Now current = look(state, now);
  if (cost == 0 || current.used == 0) return;
  if (at.has_value() && *at < current.window.start) return;
  put(state, current, current.used - std::min(cost, current.used));
}

void FixedWindow::settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                         std::optional<std::int64_t> at) const noexcept {
  if (actual <= reserved) {
    refund(state, now, reserved - actual, at);
  } else {
    force(state, look(state, now), actual - reserved, kMaxTokens);
  }
}

void FixedWindow::penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  force(state, look(state, now), cost, numbers_.rate);
}

void FixedWindow::convert(State& state, const FixedWindow& old, std::int64_t /*now*/) const noexcept {
  if (!same_windows(old)) state = {};
}

bool FixedWindow::is_initial(const State& state, std::int64_t now) const noexcept {
  const Now current = look(state, now);
  return numbers_.align == Align::first_hit ? current.window.length == 0 : current.used == 0;
}

std::int64_t FixedWindow::expires_at(const State& state) const noexcept {
  if (state.last == kNeverSeen) return kNeverSeen;
  if (state.count == 0 && numbers_.align != Align::first_hit) return state.last;
  const std::int64_t length =
      numbers_.align == Align::calendar ? numbers_.calendar->window(state.start).length : numbers_.period;
  return state.start + length;
}

}  // namespace sluice::algorithm
