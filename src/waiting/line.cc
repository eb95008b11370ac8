#include "waiting/line.h"

#include <algorithm>

#include "algorithm/ticks.h"

namespace sluice::waiting {

std::int64_t Scale::tick(Int128 point, std::int64_t now) const {
  const Int128 left = point - c * now;
  if (left <= 0) return now;
  if (c == 0) return algorithm::kNever;
  const Int128 ticks = (left - 1) / c + 1;
  if (ticks >= algorithm::longest_wait(algorithm::Tick::nanosecond)) return algorithm::kNever;
  return now + static_cast<std::int64_t>(ticks);
}

Int128 Scale::position(const State& state, std::int64_t at) const {
  const Uint128 before = Uint128{state.missing_high} << 64U | state.missing_low;
  const Int128 full_at = state.last == algorithm::kNeverSeen ? c * at : c * state.last + static_cast<Int128>(before);
  return std::max(full_at, c * at);
}

State Scale::state(Int128 position, std::int64_t at) const {
  State state;
  algorithm::TokenBucket::set_missing(state, at, static_cast<Uint128>(std::max<Int128>(position - c * at, 0)));
  return state;
}

void Left::add(Waiter& waiter) {
  waiter.place_.behind = nullptr;
  (last_ == nullptr ? first_ : last_->place_.behind) = &waiter;
  last_ = &waiter;
}

void Left::add_all(Left& others) {
  if (others.first_ == nullptr) return;
  (last_ == nullptr ? first_ : last_->place_.behind) = others.first_;
  last_ = others.last_;
  others = Left();
}

void Left::finish() noexcept {
  Waiter* next = first_;
  first_ = nullptr;
  last_ = nullptr;
  while (next != nullptr) {
    Waiter& waiter = *next;
    next = waiter.place_.behind;
    waiter.finish(waiter.place_.result);
  }
}

void Line::append(Waiter& waiter) {
  Waiter::Place& place = waiter.place_;
  place.in_line = true;
  place.turn = ++turn_;
  place.before = last_;
  place.behind = nullptr;
  (last_ == nullptr ? first_ : last_->place_.behind) = &waiter;
  last_ = &waiter;
  ++size_;
}

void Line::unlink(Waiter& waiter) {
  Waiter::Place& place = waiter.place_;
  place.in_line = false;
  (place.before == nullptr ? first_ : place.before->place_.behind) = place.behind;
  (place.behind == nullptr ? last_ : place.behind->place_.before) = place.before;
  --size_;
}

}  // namespace sluice::waiting
