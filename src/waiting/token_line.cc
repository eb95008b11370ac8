#include "waiting/token_line.h"

#include <algorithm>

#include "algorithm/ticks.h"

namespace sluice::waiting {

Offer TokenLine::offer(const Book& book, State& state, std::int64_t at, std::uint64_t cost,
                       std::int64_t deadline) const {
  Offer offer;
  offer.scale = Scale(book.tokens);
  offer.before = offer.scale.position(state, at);
  const std::int64_t longest = algorithm::longest_wait(algorithm::Tick::nanosecond);
  const std::int64_t max_wait = deadline < at
                                    ? -1
                                    : static_cast<std::int64_t>(std::min<std::uint64_t>(
                                          algorithm::ticks_between(at, deadline), static_cast<std::uint64_t>(longest)));
  offer.verdict = book.tokens.reserve(state, at, cost, max_wait);
  offer.after = offer.scale.position(state, at);
  if (!offer.verdict.fits) {
    offer.outcome = offer.verdict.retry_after < longest ? WaitOutcome::deadline : WaitOutcome::never;
  }
  offer.at_once = offer.verdict.delay == 0;
  offer.ready = at + offer.verdict.delay;
  return offer;
}

void TokenLine::join(Waiter& waiter, const Offer& offer) {
  scale_ = offer.scale;
  Waiter::Place& place = waiter.place_;
  const Int128 charge = offer.after - offer.before;
  place.ready = offer.ready;
  place.fraction = static_cast<std::uint64_t>(charge - scale_.parts(place.cost));
  if (!is_engaged()) base_ = offer.before;
  if (first_ == nullptr) {
    first_ready_ = offer.ready;
    stale_ = false;
  }
  waiting_parts_ += charge;
  if (is_tight(place.cost)) ++tight_;
  append(waiter);
}

Int128 TokenLine::charge_of(const Waiter& waiter) const {
  return scale_.parts(waiter.place_.cost) + static_cast<Int128>(waiter.place_.fraction);
}

// Can the bucket be full for a part of a tick before this cost is granted? That part is lost, and how much it is
// depends on when.
bool TokenLine::is_tight(std::uint64_t cost) const { return scale_.parts(cost) + scale_.c - 1 > scale_.capacity; }

void TokenLine::remove(Waiter& waiter) {
  waiting_parts_ -= charge_of(waiter);
  if (is_tight(waiter.place_.cost)) --tight_;
  unlink(waiter);
}

template <typename Self, typename Stays, typename Goes>
Int128 TokenLine::walk(Self& self, const Scale& scale, Int128 base, std::int64_t at, Judge judge, const void* skipped,
                       Stays stays, Goes goes) {
  Int128 position = base;
  std::int64_t not_before = std::max(self.not_before_, at);
  Waiter* waiter = self.first_;
  const auto serve_waiter = [&] {
    Waiter& one = *waiter;
    waiter = one.place_.behind;
    if (&one == skipped) return;
    const std::uint64_t cost = one.place_.cost;
    const std::int64_t ready = scale.tick(position + scale.parts(cost) - scale.capacity, not_before);
    if (judge == Judge::yes) {
      if (cost > scale.limit || ready == algorithm::kNever) return goes(one, WaitOutcome::never);
      if (ready > one.place_.deadline) return goes(one, WaitOutcome::deadline);
    }
    const Int128 after = std::max(position, scale.c * ready) + scale.parts(cost);
    stays(one, position, after, ready);
    position = after;
    not_before = ready;
  };
  for (auto& held : self.held_) {
    while (waiter != nullptr && waiter->place_.turn < held.turn) serve_waiter();
    if (!held.pending || &held == skipped) continue;
    const Int128 after = std::max(position, scale.c * held.ready) + scale.parts(held.cost);
    stays(held, position, after, held.ready);
    position = after;
  }
  while (waiter != nullptr) serve_waiter();
  return position;
}

struct TokenLine::Ignore {
  template <typename... Arguments>
  void operator()(const Arguments&... /*arguments*/) const {}
};

Int128 TokenLine::end_of_walk(const Scale& scale, Int128 base, std::int64_t at, Judge judge,
                              const void* skipped) const {
  return walk(*this, scale, base, at, judge, skipped, Ignore(), Ignore());
}

void TokenLine::assign(Int128 base, std::int64_t at, Judge judge, Left& failed) {
  struct Stays {
    void operator()(Waiter& waiter, Int128 before, Int128 after, std::int64_t ready) const {
      waiter.place_.ready = ready;
      latest = std::max(latest, ready);
      waiter.place_.fraction = static_cast<std::uint64_t>(after - before - line.scale_.parts(waiter.place_.cost));
      line.waiting_parts_ += after - before;
      if (line.is_tight(waiter.place_.cost)) ++line.tight_;
    }
    void operator()(Held& held, Int128 before, Int128 after, std::int64_t ready) const {
      held.charge = after - before;
      held.end = ready < latest ? line.least_end(held) : after;
      latest = std::max(latest, ready);
      line.held_parts_ += held.charge;
    }
    TokenLine& line;
    std::int64_t& latest;
  };
  std::int64_t latest = INT64_MIN;
  waiting_parts_ = 0;
  held_parts_ = 0;
  tight_ = 0;
  walk(*this, scale_, base, at, judge, nullptr, Stays{*this, latest}, [&](Waiter& waiter, WaitOutcome outcome) {
    unlink(waiter);
    waiter.place_.result.outcome = outcome;
    failed.add(waiter);
  });
  base_ = base;
  stale_ = false;
  find_first_ready(at);
}

void TokenLine::assign(Int128 base, std::int64_t at) {
  Left none;
  assign(base, at, Judge::no, none);
}

// The position that the first waiter finds.
Int128 TokenLine::first_position() const {
  Int128 position = base_;
  for (const Held& held : held_) {
    if (held.turn > first_->place_.turn) break;
    if (held.pending) position = std::max(position, scale_.c * held.ready) + scale_.parts(held.cost);
  }
  return position;
}

void TokenLine::find_first_ready(std::int64_t not_before) {
  not_before_ = std::max(not_before_, not_before);
  if (first_ == nullptr) return;
  first_ready_ = scale_.tick(first_position() + scale_.parts(first_->place_.cost) - scale_.capacity, not_before_);
}

Int128 TokenLine::grant_first() {
  Waiter& waiter = *first_;
  const Int128 end_before = end();
  const std::int64_t ready = first_ready_;
  waiter.place_.ready = ready;
  remove(waiter);
  base_ = std::max(base_, scale_.c * ready) + scale_.parts(waiter.place_.cost);
  if (pending_ != 0) {
    assign(base_, ready);  // it has passed those reservations ahead that are for later instants
  } else {
    find_first_ready(ready);
  }
  return end() - end_before;
}

Int128 TokenLine::position_without(const Waiter& waiter, Int128 position, std::int64_t at) const {
  if (pending_ == 0) return position - charge_of(waiter);
  return std::min(position, end_of_walk(scale_, base_, at, Judge::no, &waiter));
}

void TokenLine::leave(Waiter& waiter, std::int64_t at) {
  remove(waiter);
  if (pending_ != 0) {
    assign(base_, at);
    return;
  }
  if (tight_ != 0) stale_ = true;
  find_first_ready(at);
}

// A table may forget a bucket for want of room: what is gone is gone from beneath.
Int128 TokenLine::beneath(Int128 position) const {
  return is_engaged() ? base_ + std::min<Int128>(position - end(), 0) : position;
}

Int128 TokenLine::base_after_others(Int128 position, std::int64_t at) const {
  const Int128 taken = position - end();
  return taken <= 0 ? base_ : std::max(base_, scale_.c * at) + taken;
}

Int128 TokenLine::position_after_others(Int128 position, std::int64_t at) const {
  if (position <= end()) return position;
  return std::min(position, end_of_walk(scale_, base_after_others(position, at), at, Judge::no, nullptr));
}

void TokenLine::count_others(Int128 position, std::int64_t at) {
  if (position > end()) assign(base_after_others(position, at), at);
}

Int128 TokenLine::above(const Scale& scale, Int128 base, std::int64_t at, Kind kind) const {
  if (kind != Kind::reset || pending_ == 0) return end_of_walk(scale, base, at, Judge::yes, nullptr);
  TokenLine without;  // the reservations
  without.first_ = first_;
  without.not_before_ = not_before_;
  return without.end_of_walk(scale, base, at, Judge::yes, nullptr);
}

void TokenLine::rearrange(const Scale& scale, Int128 base, std::int64_t at, Kind kind, Left& failed) {
  if (kind == Kind::reset) forget_reservations();
  if (kind == Kind::renumber) renumber_reservations(scale, at);
  scale_ = scale;
  assign(base, at, Judge::yes, failed);
}

void TokenLine::forget_reservations() {
  held_.remove_if([](const Held& held) { return !held.owned; });
  for (Held& held : held_) {
    held.forgotten = true;
    held.pending = false;
    held.charge = 0;
  }
  pending_ = 0;
}

// The position after a reservation's instant, if the bucket was full before.
Int128 TokenLine::least_end(const Held& held) const { return scale_.c * held.ready + scale_.parts(held.cost); }

// What a reservation could still give back stays the same number of tokens, rounded down.
void TokenLine::renumber_reservations(const Scale& scale, std::int64_t at) {
  for (Held& held : held_) {
    const Int128 left = std::max<Int128>(held.end - scale_.c * at, 0);
    held.end = scale.c * at + left / scale_.p * scale.p + left % scale_.p * scale.p / scale_.p;
  }
}

TokenLine::Held& TokenLine::hold(Reservations& one, std::uint64_t cost, const Offer& offer) {
  scale_ = offer.scale;
  held_.splice(held_.end(), one);
  Held& held = held_.back();
  held.turn = ++turn_;
  held.cost = cost;
  held.ready = offer.ready;
  held.pending = !offer.at_once;
  if (!held.pending) {
    held.end = offer.after - held_parts_;
  } else {
    if (!is_engaged()) base_ = offer.before;
    const bool latest = (last_ == nullptr || last_->place_.ready <= held.ready) &&
                        std::none_of(held_.begin(), held_.end(),
                                     [&](const Held& other) { return other.pending && other.ready > held.ready; });
    held.end = latest ? offer.after : least_end(held);
    held.charge = offer.after - offer.before;
    held_parts_ += held.charge;
    ++pending_;
  }
  return held;
}

bool TokenLine::has_due_reservation(std::int64_t now) const {
  if (pending_ == 0) return false;
  const auto first = std::find_if(held_.begin(), held_.end(), [](const Held& held) { return held.pending; });
  return first->ready <= now;
}

Int128 TokenLine::pass_reservation() {
  Held& held = *std::find_if(held_.begin(), held_.end(), [](const Held& one) { return one.pending; });
  const Int128 end_before = end();
  const Int128 base = std::max(base_, scale_.c * held.ready) + scale_.parts(held.cost);
  const bool as_counted = base == base_ + held.charge;
  const std::int64_t ready = held.ready;
  base_ = base;
  held_parts_ -= held.charge;
  held.charge = 0;
  held.pending = false;
  --pending_;
  if (!held.owned) erase(held);
  if (!as_counted) assign(base_, ready);
  return end() - end_before;
}

// Of a reservation whose time has come, no more than what has not flowed back by itself: others may have taken the
// rest.
Int128 TokenLine::given_back(const Held& held, std::int64_t at) const {
  return std::clamp<Int128>(held.end - scale_.c * at, 0, scale_.parts(held.cost));
}

Int128 TokenLine::position_without(const Held& held, Int128 position, std::int64_t at) const {
  if (held.forgotten) return position;
  const Int128 base = beneath(position) - (held.pending ? 0 : given_back(held, at));
  return std::min(position, end_of_walk(scale_, base, at, Judge::no, &held));
}

void TokenLine::cancel(Held& held, Int128 position, std::int64_t at) {
  Int128 base = beneath(position);
  if (held.pending) {
    --pending_;
  } else if (!held.forgotten) {
    const Int128 gift = given_back(held, at);
    base -= gift;
    for (Held& other : held_) {
      if (other.turn > held.turn && !other.pending) other.end -= gift;
    }
  }
  erase(held);
  assign(base, at);
}

void TokenLine::keep(Held& held) {
  held.owned = false;
  if (!held.pending) erase(held);
}

void TokenLine::erase(Held& held) {
  held_.erase(std::find_if(held_.begin(), held_.end(), [&](const Held& one) { return &one == &held; }));
}

}  // namespace sluice::waiting
