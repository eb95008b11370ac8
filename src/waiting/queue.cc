#include "waiting/queue.h"

#include <algorithm>
#include <new>

#include "algorithm/decision_of.h"
#include "waiting/slot_line.h"

namespace sluice::waiting {

using algorithm::decision_of;

Queue::~Queue() {
  if (moved_by_hand_.load(std::memory_order_relaxed)) clock_.load(std::memory_order_relaxed)->unlisten(*this);
}

Queue& Queue::with_clock(const Clock* clock) {
  std::call_once(clock_known_, [&] {
    clock_.store(clock, std::memory_order_release);
    moved_by_hand_.store(clock != nullptr && clock->listen(*this), std::memory_order_release);
  });
  return *this;
}

std::int64_t Queue::now() const noexcept {
  const Clock* clock = clock_.load(std::memory_order_acquire);
  return clock != nullptr ? clock->now().steady : account_.machine_now();
}

Line& Queue::line() {
  if (line_ == nullptr) {
    if (order_ == Order::tokens) {
      line_ = std::make_unique<TokenLine>();
    } else {
      line_ = std::make_unique<SlotLine>();
    }
  }
  return *line_;
}

TokenLine* Queue::tokens() const {
  return order_ == Order::tokens ? static_cast<TokenLine*>(line_.get()) : nullptr;  // NOLINT(*-static-cast-downcast)
}

std::optional<WaitResult> Queue::enqueue(internal::Waiter& waiter, std::uint64_t cost, const Deadline& deadline) {
  Left left;
  std::optional<WaitResult> answer;
  bool lost = false;
  {
    const Lock lock = this->lock();
    Line& line = this->line();
    const std::int64_t now = this->now();
    advance(now, left);
    straighten(now);
    internal::Waiter::Place& place = waiter.place_;
    place = {};
    place.cost = cost;
    place.deadline = deadline.steady(now);
    Offer offer;
    Decision decision;
    account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
      offer = line.offer(book, state, at, cost, place.deadline);
      decision = decision_of(offer.verdict, book.tokens.view(state, at));
    });
    if (offer.outcome == WaitOutcome::granted && !offer.at_once) {
      line.join(waiter, offer);
    } else {
      answer = WaitResult{.outcome = offer.outcome, .decision = decision, .ready_at = offer.ready};
    }
    tell_first(false);
    lost = leader_ == nullptr && line.first() == &waiter;
    if (lost) {
      Left unheard;
      remove(waiter, now, unheard);
    }
  }
  left.finish();
  if (lost) throw std::bad_alloc();
  return answer;
}

bool Queue::withdraw(internal::Waiter& waiter) noexcept {
  Left left;
  bool was_in_line = false;
  {
    const Lock lock = this->lock();
    const std::int64_t now = this->now();
    advance(now, left);
    was_in_line = waiter.place_.in_line;
    if (was_in_line) {
      remove(waiter, now, left);
      advance(now, left);  // those who moved up
    }
    tell_first(false);
  }
  left.finish();
  return was_in_line;
}

void Queue::withdraw_all(const void* owner) noexcept {
  Left left;
  {
    const Lock lock = this->lock();
    if (line_ == nullptr) return;
    const std::int64_t now = this->now();
    advance(now, left);
    for (internal::Waiter* next = line_->first(); next != nullptr;) {
      internal::Waiter& waiter = *next;
      next = waiter.place_.behind;
      if (waiter.owner_ == owner) remove(waiter, now, left);
    }
    advance(now, left);
    tell_first(false);
  }
  left.finish();
}

void Queue::remove(internal::Waiter& waiter, std::int64_t now, Left& left) {
  internal::Waiter::Place& place = waiter.place_;
  std::int64_t moment = now;
  account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
    const Scale scale(book.tokens);
    state = scale.state(line_->position_without(waiter, scale.position(state, at), at), at);
    place.result.decision = decision_of(book.tokens.judge(state, at, place.cost), book.tokens.view(state, at));
    moment = at;
  });
  line_->leave(waiter, moment);
  place.result.outcome = WaitOutcome::stopped;
  place.result.decision.allowed = false;
  left.add(waiter);
}

WaitResult Queue::refuse(std::uint64_t cost, WaitOutcome outcome) noexcept {
  WaitResult result{.outcome = outcome};
  account_.change(now(), [&](const Book& book, State& state, std::int64_t at) {
    result.decision = decision_of(book.tokens.judge(state, at, cost), book.tokens.view(state, at));
  });
  result.decision.allowed = false;
  return result;
}

void Queue::grant_due() noexcept {
  Left left;
  {
    const Lock lock = this->lock();
    advance(now(), left);
    tell_first(true);
  }
  left.finish();
}

void Queue::advance(std::int64_t now, Left& left) {
  if (line_ == nullptr) return;
  TokenLine* tokens = this->tokens();
  const bool reserved = tokens != nullptr && tokens->has_reservations();
  Left granted;
  Int128 moved = 0;
  for (;;) {
    const bool waiter_due = line_->first() != nullptr && line_->first_ready() <= now;
    if (reserved && tokens->has_due_reservation(waiter_due ? line_->first_ready() : now)) {
      moved += tokens->pass_reservation();
    } else if (waiter_due) {
      internal::Waiter& waiter = *line_->first();
      moved += line_->grant_first();
      granted.add(waiter);
    } else {
      break;
    }
  }
  if (granted.first() == nullptr && !reserved) return;
  Decision decision;
  Int128 position = 0;
  std::int64_t moment = now;
  account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
    if (tokens != nullptr && (reserved || moved != 0)) {
      const Scale scale(book.tokens);
      position = scale.position(state, at);
      // A bucket that is full again doesn't tell its position any more.
      position = position == scale.c * at ? tokens->end() : position + moved;
      state = scale.state(tokens->is_engaged() ? tokens->position_after_others(position, at) : position, at);
    }
    decision = decision_of({}, book.tokens.view(state, at));
    moment = at;
  });
  if (reserved && tokens->is_engaged()) tokens->count_others(position, moment);
  for (internal::Waiter* waiter = granted.first(); waiter != nullptr;) {
    internal::Waiter::Place& place = waiter->place_;
    internal::Waiter* const next = place.behind;
    place.result = {.decision = decision, .ready_at = place.ready};
    left.add(*waiter);
    waiter = next;
  }
}

void Queue::straighten(std::int64_t now) {
  TokenLine* tokens = this->tokens();
  if (tokens == nullptr || !tokens->is_stale()) return;
  Scale scale;
  Int128 base = 0;
  std::int64_t moment = now;
  account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
    scale = Scale(book.tokens);
    base = tokens->beneath(scale.position(state, at));
    state = scale.state(tokens->above(scale, base, at, Kind::charge), at);
    moment = at;
  });
  Left failed;
  tokens->rearrange(scale, base, moment, Kind::charge, failed);
}

void Queue::tell_first(bool again) {
  internal::Waiter* first = line_ != nullptr ? line_->first() : nullptr;
  if (first == nullptr) {
    leader_ = nullptr;
    return;
  }
  if (!again && first == leader_ && line_->first_ready() == leader_ready_) return;
  leader_ready_ = line_->first_ready();
  const bool leads = moved_by_hand_.load(std::memory_order_acquire) || first->lead(leader_ready_);
  leader_ = leads ? first : nullptr;
}

internal::Reserved Queue::reserve(std::uint64_t cost, std::int64_t max_wait, std::int64_t now) {
  const std::int64_t deadline = Deadline(std::chrono::nanoseconds(max_wait)).steady(now);
  Offer offer;
  Decision decision;
  const auto take = [&](const Line& line) {
    account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
      offer = line.offer(book, state, at, cost, deadline);
      decision = decision_of(offer.verdict, book.tokens.view(state, at));
    });
  };
  internal::Reserved reserved;
  if (order_ == Order::slots) {
    take(SlotLine());
  } else {
    TokenLine::Reservations one(1);
    Left left;
    {
      const Lock lock = this->lock();
      line();
      TokenLine& line = *tokens();
      advance(now, left);
      straighten(now);
      take(line);
      if (offer.outcome == WaitOutcome::granted && cost != 0) reserved.held = &line.hold(one, cost, offer);
      advance(now, left);  // what it took at once, others have taken
      tell_first(false);
    }
    left.finish();
  }
  reserved.result = {.outcome = offer.outcome, .decision = decision, .ready_at = offer.ready};
  return reserved;
}

Decision Queue::cancel(void* held, std::int64_t now) noexcept {
  Left left;
  Decision decision;
  {
    const Lock lock = this->lock();
    TokenLine& line = *tokens();
    TokenLine::Held& reservation = *static_cast<TokenLine::Held*>(held);
    advance(now, left);
    Int128 position = 0;
    std::int64_t moment = now;
    account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
      const Scale scale(book.tokens);
      position = scale.position(state, at);
      state = scale.state(line.position_without(reservation, position, at), at);
      decision = decision_of({}, book.tokens.view(state, at));
      moment = at;
    });
    line.cancel(reservation, position, moment);
    advance(moment, left);
    tell_first(false);
  }
  left.finish();
  return decision;
}

void Queue::keep(void* held) noexcept {
  const Lock lock = this->lock();
  tokens()->keep(*static_cast<TokenLine::Held*>(held));
}

Queue::Verb::Verb(Queue& queue, Kind kind, std::int64_t now) : queue_(queue), kind_(kind), lock_(queue.lock()) {
  queue_.advance(now, left_);
}

State Queue::Verb::beneath(const algorithm::TokenBucket& tokens, const State& state, std::int64_t at) const {
  if (queue_.line_ == nullptr) return state;
  const Scale scale(tokens);
  return scale.state(queue_.line_->beneath(scale.position(state, at)), at);
}

State Queue::Verb::above(const algorithm::TokenBucket& tokens, const State& base, std::int64_t at) {
  if (queue_.line_ == nullptr) return base;
  changed_ = true;
  scale_ = Scale(tokens);
  base_ = scale_.position(base, at);
  at_ = at;
  return scale_.state(queue_.line_->above(scale_, base_, at, kind_), at);
}

Queue::Verb::~Verb() {
  if (changed_) {
    Left failed;
    queue_.line_->rearrange(scale_, base_, at_, kind_, failed);
    queue_.explain(failed, at_);
    queue_.advance(at_, left_);
    queue_.tell_first(false);
    lock_.unlock();
    failed.finish();
  } else {
    queue_.tell_first(false);
    lock_.unlock();
  }
  left_.finish();
}

bool Queue::is_idle() noexcept {
  Left left;
  bool idle = true;
  {
    const Lock lock = this->lock();
    advance(now(), left);
    idle = line_ == nullptr || (line_->first() == nullptr && (tokens() == nullptr || !tokens()->has_reservations()));
  }
  left.finish();
  return idle;
}

void Queue::renumber(const algorithm::TokenBucket& old, std::int64_t now, Left& left) {
  const std::scoped_lock lock(mutex_);
  if (line_ == nullptr) return;
  const Scale old_scale(old);
  Scale scale;
  Int128 base = 0;
  std::int64_t moment = now;
  account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
    scale = Scale(book.tokens);
    moment = at;
    // The state has been converted with what the line took; a token bucket's base is converted by itself.
    base = scale.position(state, at);
    if (tokens() != nullptr && tokens()->is_engaged()) {
      State beneath = old_scale.state(tokens()->beneath(tokens()->end()), at);
      book.tokens.convert(beneath, old, at);
      base = scale.position(beneath, at);
    }
    state = scale.state(line_->above(scale, base, at, Kind::renumber), at);
  });
  Left failed;
  line_->rearrange(scale, base, moment, Kind::renumber, failed);
  explain(failed, moment);
  left.add_all(failed);
  advance(moment, left);
  tell_first(false);
}

void Queue::explain(const Left& failed, std::int64_t now) {
  if (failed.first() == nullptr) return;
  account_.change(now, [&](const Book& book, State& state, std::int64_t at) {
    for (internal::Waiter* waiter = failed.first(); waiter != nullptr; waiter = waiter->place_.behind) {
      WaitResult& result = waiter->place_.result;
      result.decision = decision_of(book.tokens.judge(state, at, waiter->place_.cost), book.tokens.view(state, at));
      result.decision.allowed = false;
    }
  });
}

}  // namespace sluice::waiting
