#include "algorithm/concurrency.h"

#include <algorithm>
#include <span>

namespace sluice::algorithm {

// Tokens held at `now`.
std::uint64_t Concurrency::held_at(const State& state, std::int64_t now) noexcept {
  std::uint64_t held = state.held_;
  for (std::size_t i = state.first_; i < state.leases_.size(); ++i) {
    const State::Lease& lease = state.leases_[i];
    if (lease.end <= now) {
      held -= lease.cost;
    } else if (state.by_end_) {
      break;
    }
  }
  return held;
}

// Forgets the leases that are over at `now`, and gives memory back when little of it is used.
void Concurrency::drop(State& state, std::int64_t now) {
  constexpr std::size_t kSmall = 16;
  const auto is_over = [&](const State::Lease& lease) { return lease.cost == 0 || lease.end <= now; };
  if (state.by_end_) {
    while (state.first_ < state.leases_.size() && is_over(state.leases_[state.first_])) {
      const State::Lease& over = state.leases_[state.first_++];
      state.held_ -= over.cost;
      state.released_ -= over.cost == 0 ? 1 : 0;
    }
    if ((state.first_ + state.released_) * 2 < state.leases_.size()) return;
  }
  state.leases_.erase(state.leases_.begin(), state.leases_.begin() + static_cast<std::ptrdiff_t>(state.first_));
  std::erase_if(state.leases_, is_over);
  if (state.leases_.size() * 4 + kSmall < state.leases_.capacity()) state.leases_.shrink_to_fit();
  state.first_ = 0;
  state.released_ = 0;
  state.held_ = 0;
  for (const State::Lease& lease : state.leases_) state.held_ += lease.cost;
  state.by_end_ = std::ranges::is_sorted(state.leases_, {}, &State::Lease::end);
}

Verdict Concurrency::judge(const State& state, std::int64_t now, std::uint64_t cost) const {
  now = std::max(now, state.last_);
  if (cost == 0) return {};
  if (cost > rate_) return {.fits = false, .retry_after = kNever};
  const std::uint64_t held = held_at(state, now);
  if (held + cost <= rate_) return {};
  std::uint64_t excess = held + cost - rate_;
  std::vector<State::Lease> sorted;
  std::span<const State::Lease> leases = std::span(state.leases_).subspan(state.first_);
  if (!state.by_end_) {
    sorted.assign(leases.begin(), leases.end());
    std::ranges::sort(sorted, {}, &State::Lease::end);
    leases = sorted;
  }
  std::int64_t end = now;
  for (const State::Lease& lease : leases) {
    if (lease.end <= now || lease.cost == 0) continue;
    end = lease.end;
    if (lease.cost >= excess) break;
    excess -= lease.cost;
  }
  return {.fits = false, .retry_after = end - now};
}

std::uint64_t Concurrency::take(State& state, std::int64_t now, std::uint64_t cost) const {
  if (cost == 0) return 0;
  now = std::max(now, state.last_);
  drop(state, now);
  const std::int64_t end = now + ttl_;
  state.by_end_ = state.by_end_ && (state.leases_.empty() || state.leases_.back().end <= end);
  state.leases_.push_back({++state.ids_, end, cost});
  state.held_ += cost;
  state.last_ = now;
  return state.ids_;
}

// NOLINTNEXTLINE(readability-convert-member-functions-to-static): a verb of the limit, like the others
bool Concurrency::release(State& state, std::int64_t now, std::uint64_t lease) const {
  now = std::max(now, state.last_);
  const auto begin = state.leases_.begin() + static_cast<std::ptrdiff_t>(state.first_);
  const auto found = std::ranges::lower_bound(begin, state.leases_.end(), lease, {}, &State::Lease::id);
  if (found == state.leases_.end() || found->id != lease || found->cost == 0 || found->end <= now) return false;
  state.held_ -= found->cost;
  found->cost = 0;
  ++state.released_;
  drop(state, now);
  state.last_ = now;
  return true;
}

View Concurrency::view(const State& state, std::int64_t now) const noexcept {
  now = std::max(now, state.last_);
  const std::uint64_t held = held_at(state, now);
  std::int64_t reset = 0;
  for (std::size_t i = state.leases_.size(); i > state.first_; --i) {
    const State::Lease& lease = state.leases_[i - 1];
    if (lease.cost == 0) continue;
    reset = std::max(reset, lease.end - now);
    if (state.by_end_) break;
  }
  return {.limit = rate_, .remaining = held < rate_ ? rate_ - held : 0, .reset_after = reset};
}

Outcome Concurrency::peek(const State& state, std::int64_t now, std::uint64_t cost) const {
  Outcome outcome{judge(state, now, cost), view(state, now)};
  if (outcome.verdict.fits && cost != 0) {
    outcome.view.remaining -= cost;
    outcome.view.reset_after = std::max(outcome.view.reset_after, ttl_);
  }
  return outcome;
}

void Concurrency::reset(State& state) noexcept {
  const std::uint64_t ids = state.ids_;
  state = {};
  state.ids_ = ids;
}

std::int64_t Concurrency::expires_at(const State& state) const noexcept {
  return state.last_ == kNeverSeen ? kNeverSeen : state.last_ + view(state, state.last_).reset_after;
}

}  // namespace sluice::algorithm
