#include "waiting/slot_line.h"

#include <algorithm>

#include "algorithm/ticks.h"

namespace sluice::waiting {

Offer SlotLine::offer(const Book& book, State& state, std::int64_t at, std::uint64_t cost,
                      std::int64_t deadline) const {
  Offer offer;
  offer.scale = Scale(book.tokens);
  offer.before = offer.scale.position(state, at);
  const bool fits = book.slots->judge(state, at, cost).fits;
  const std::int64_t max_wait =
      deadline < at
          ? -1
          : static_cast<std::int64_t>(std::min<std::uint64_t>(algorithm::ticks_between(at, deadline), INT64_MAX));
  offer.verdict = book.slots->reserve(state, at, cost, max_wait);
  offer.after = offer.scale.position(state, at);
  if (!offer.verdict.fits) {
    offer.outcome = offer.verdict.retry_after == algorithm::kNever ? WaitOutcome::never : WaitOutcome::full;
    if (fits) offer.outcome = WaitOutcome::deadline;
  }
  offer.at_once = offer.verdict.delay == 0;
  offer.ready = at + offer.verdict.delay;
  return offer;
}

void SlotLine::set_start(Waiter& waiter, Int128 start, std::int64_t at) const {
  waiter.place_.ready = scale_.tick(start, at);
  waiter.place_.fraction = static_cast<std::uint64_t>(scale_.c * waiter.place_.ready - start);
}

Int128 SlotLine::start_of(const Waiter& waiter) const {
  return scale_.c * waiter.place_.ready - static_cast<Int128>(waiter.place_.fraction);
}

void SlotLine::join(Waiter& waiter, const Offer& offer) {
  scale_ = offer.scale;
  if (first_ == nullptr || offer.before != run_end_) ++run_;
  waiter.place_.run = run_;
  waiter.place_.ready = offer.ready;
  waiter.place_.fraction = static_cast<std::uint64_t>(scale_.c * offer.ready - offer.before);
  run_end_ = offer.after;
  if (first_ == nullptr) {
    start_ = offer.before;
    first_ready_ = offer.ready;
  }
  append(waiter);
}

// `run`: of the one that was the first, whose slots, or what is left of them, end or begin at start_.
void SlotLine::find_first_start(std::uint64_t run, std::int64_t at) {
  if (first_ == nullptr) return;
  if (first_->place_.run != run) start_ = start_of(*first_);
  first_ready_ = scale_.tick(start_, at);
}

Int128 SlotLine::grant_first() {
  Waiter& waiter = *first_;
  waiter.place_.ready = first_ready_;
  start_ += scale_.parts(waiter.place_.cost);
  unlink(waiter);
  find_first_start(waiter.place_.run, first_ready_);
  return 0;
}

Int128 SlotLine::position_without(const Waiter& waiter, Int128 position, std::int64_t /*at*/) const {
  const bool last = waiter.place_.run == run_ && position == run_end_;
  return last ? position - scale_.parts(waiter.place_.cost) : position;
}

void SlotLine::leave(Waiter& waiter, std::int64_t at) {
  const Waiter::Place& place = waiter.place_;
  if (place.run == run_) run_end_ -= scale_.parts(place.cost);
  if (place.before == nullptr) {
    unlink(waiter);
    find_first_start(place.run, at);
    return;
  }
  const bool first_of_run = place.before->place_.run != place.run;
  if (first_of_run && place.behind != nullptr && place.behind->place_.run == place.run) {
    set_start(*place.behind, start_of(waiter), at);
  }
  unlink(waiter);
}

Int128 SlotLine::above(const Scale& scale, Int128 base, std::int64_t /*at*/, Kind kind) const {
  Int128 position = base;
  if (kind == Kind::reset) {
    for (const Waiter* waiter = first_; waiter != nullptr; waiter = waiter->place_.behind) {
      position += scale.parts(waiter->place_.cost);
    }
  }
  return position;
}

void SlotLine::rearrange(const Scale& scale, Int128 base, std::int64_t at, Kind kind, Left& /*failed*/) {
  if (kind == Kind::renumber) keep_times(scale);
  scale_ = scale;
  if (kind == Kind::reset) give_new_slots(base, at);
}

// Each keeps its tick, so that none is in a run with another any more.
void SlotLine::keep_times(const Scale& scale) {
  std::uint64_t run = 0;
  Int128 start = start_;
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->place_.behind) {
    Waiter::Place& place = waiter->place_;
    if (waiter != first_ && place.run != run) start = start_of(*waiter);
    run = place.run;
    place.run = ++run_;
    const Int128 end = start + scale_.parts(place.cost);
    set_start(*waiter, start, first_ready_);
    place.fraction = 0;
    start = end;
  }
  if (first_ != nullptr) start_ = scale.c * first_ready_;
  run_end_ = -1;  // never a position
  ++run_;
}

void SlotLine::give_new_slots(Int128 base, std::int64_t at) {
  ++run_;
  Int128 start = base;
  for (Waiter* waiter = first_; waiter != nullptr; waiter = waiter->place_.behind) {
    waiter->place_.run = run_;
    set_start(*waiter, start, at);
    start += scale_.parts(waiter->place_.cost);
  }
  run_end_ = start;
  start_ = base;
  if (first_ != nullptr) first_ready_ = scale_.tick(base, at);
}

}  // namespace sluice::waiting
