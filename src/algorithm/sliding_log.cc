#include "algorithm/sliding_log.h"

#include <algorithm>

#include "sluice/limit.h"

namespace sluice::algorithm {

SlidingLog::Now SlidingLog::look(const State& state, std::int64_t now) const noexcept {
  Now current;
  current.at = std::max(now, state.last_);
  current.first = state.first_;
  current.before = state.gone_;
  const auto has_left = [&](const State::Entry& entry) { return entry.at + period_ <= current.at; };
  if (current.first < state.entries_.size() && has_left(state.entries_[current.first])) {
    const auto begin = state.entries_.begin() + static_cast<std::ptrdiff_t>(current.first);
    const auto live = std::partition_point(begin, state.entries_.end(), has_left);
    current.first = static_cast<std::size_t>(live - state.entries_.begin());
    current.before = state.entries_[current.first - 1].total;
  }
  current.used = current.first < state.entries_.size() ? state.entries_.back().total - current.before : 0;
  return current;
}

Verdict SlidingLog::judge_in(const State& state, const Now& current, std::uint64_t cost) const noexcept {
  if (cost == 0) return {};
  if (cost > rate_) return {.fits = false, .retry_after = kNever};
  if (current.used + cost <= rate_) return {};
  // Enough room is there as soon as the entry has left with which `excess` tokens have.
  const std::uint64_t excess = current.used + cost - rate_;
  const auto begin = state.entries_.begin() + static_cast<std::ptrdiff_t>(current.first);
  const auto enough = std::partition_point(
      begin, state.entries_.end(), [&](const State::Entry& entry) { return entry.total - current.before < excess; });
  return {.fits = false, .retry_after = enough->at + period_ - current.at};
}

Verdict SlidingLog::judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  return judge_in(state, look(state, now), cost);
}

View SlidingLog::view(const State& state, std::int64_t now) const noexcept {
  const Now current = look(state, now);
  return {.limit = rate_,
          .remaining = current.used < rate_ ? rate_ - current.used : 0,
          .reset_after = current.first == state.entries_.size() ? 0 : state.entries_.back().at + period_ - current.at};
}

// Forgets what has left, and gives memory back when little of it is used.
void SlidingLog::drop(State& state, const Now& current) {
  constexpr std::size_t kSmall = 16;
  state.first_ = current.first;
  state.gone_ = current.before;
  if (state.first_ * 2 < state.entries_.size()) return;
  state.entries_.erase(state.entries_.begin(), state.entries_.begin() + static_cast<std::ptrdiff_t>(state.first_));
  state.first_ = 0;
  if (state.entries_.size() * 4 + kSmall < state.entries_.capacity()) state.entries_.shrink_to_fit();
}

void SlidingLog::put(State& state, const Now& current, std::uint64_t cost) {
  const std::uint64_t before = current.before + current.used;
  drop(state, current);
  if (state.entries_.size() > state.first_ && state.entries_.back().at == current.at) {
    state.entries_.back().total += cost;
  } else {
    state.entries_.push_back({current.at, before + cost});
  }
  state.last_ = current.at;
}

void SlidingLog::take(State& state, std::int64_t now, std::uint64_t cost) const {
  if (cost != 0) put(state, look(state, now), cost);
}

Outcome SlidingLog::decide(State& state, std::int64_t now, std::uint64_t cost) const {
  const Now current = look(state, now);
  const Verdict verdict = judge_in(state, current, cost);
  if (verdict.fits && cost != 0) put(state, current, cost);
  return {verdict, view(state, now)};
}

Outcome SlidingLog::peek(const State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  Outcome outcome{judge(state, now, cost), view(state, now)};
  if (outcome.verdict.fits && cost != 0) {
    outcome.view.remaining -= cost;
    outcome.view.reset_after = period_;
  }
  return outcome;
}

void SlidingLog::refund(State& state, std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at) const {
  const Now current = look(state, now);
  if (cost == 0 || current.used == 0) return;
  if (at.has_value() && *at + period_ <= current.at) return;
  drop(state, current);
  const std::uint64_t kept = current.before + current.used - std::min(cost, current.used);
  while (state.entries_.size() > state.first_) {
    const std::size_t newest = state.entries_.size() - 1;
    const std::uint64_t before = newest == state.first_ ? state.gone_ : state.entries_[newest - 1].total;
    if (kept - state.gone_ > before - state.gone_) {
      state.entries_[newest].total = kept;
      break;
    }
    state.entries_.pop_back();
  }
  state.last_ = current.at;
}

void SlidingLog::settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                        std::optional<std::int64_t> at) const {
  if (actual <= reserved) {
    refund(state, now, reserved - actual, at);
  } else {
    force(state, now, actual - reserved, kMaxTokens);
  }
}

void SlidingLog::penalize(State& state, std::int64_t now, std::uint64_t cost) const { force(state, now, cost, rate_); }

// Takes as much of `cost` as leaves at most `room` tokens above the rate.
void SlidingLog::force(State& state, std::int64_t now, std::uint64_t cost, std::uint64_t room) const {
  const Now current = look(state, now);
  const std::uint64_t most = rate_ + room;
  if (cost == 0 || current.used >= most) return;
  put(state, current, std::min(cost, most - current.used));
}

void SlidingLog::convert(State& state, const SlidingLog& old, std::int64_t now) const {
  if (*this != old) drop(state, old.look(state, now));
}

bool SlidingLog::is_initial(const State& state, std::int64_t now) const noexcept {
  return look(state, now).first == state.entries_.size();
}

std::int64_t SlidingLog::expires_at(const State& state) const noexcept {
  return state.entries_.size() == state.first_ ? state.last_ : state.entries_.back().at + period_;
}

}  // namespace sluice::algorithm
