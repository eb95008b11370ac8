#include "sluice/internal/bucket.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "algorithm/decision_of.h"
#include "algorithm/int128.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/limit_check.h"
#include "algorithm/require_valid.h"
#include "algorithm/ticks.h"
#include "algorithm/token_bucket.h"
#include "sluice/limit.h"
#include "waiting/account.h"
#include "waiting/queue.h"

namespace sluice::internal {

namespace {

using algorithm::Tick;
using algorithm::Uint128;
using State = algorithm::TokenBucket::State;

Limit limit_of(Bucket::Kind kind, const Bucket::Numbers& numbers) {
  Limit limit{.rate = numbers.rate, .period = numbers.period, .burst = numbers.capacity};
  if (kind == Bucket::Kind::queue) {
    limit.algorithm = Algorithm::leaky_bucket;
    limit.queue = numbers.capacity - 1;
  }
  return limit;
}

}  // namespace

// The bucket by its exact numbers, of any size. Guarded by `mutex`, as is every write to a slot.
struct Bucket::Exact final : waiting::Account {
  Exact(Bucket& bucket, const Numbers& numbers)
      : owner(bucket),
        tokens(tokens_of(numbers)),
        queue(queue_of(numbers)),
        waits(*this, bucket.kind_ == Kind::tokens ? waiting::Queue::Order::tokens : waiting::Queue::Order::slots) {}

  static algorithm::TokenBucket tokens_of(const Numbers& numbers) {
    return {numbers.rate, numbers.period.count(), numbers.capacity, Tick::nanosecond};
  }
  static algorithm::LeakyBucket queue_of(const Numbers& numbers) {
    return {numbers.rate, numbers.period.count(), numbers.capacity - 1, Tick::nanosecond};
  }

  template <typename Function>
  auto on(Function function) const {  // NOLINT(modernize-use-nodiscard): what it returns is the function's
    return owner.kind_ == Kind::tokens ? function(tokens) : function(queue);
  }

  void step(std::int64_t now, Step& change) noexcept override {
    owner.exact(now, [&](State& of, std::int64_t at, bool& /*renumbered*/) {
      change({.tokens = tokens, .slots = owner.kind_ == Kind::queue ? &queue : nullptr}, of,
             algorithm::TokenBucket::clamp(of, at));
      return Decision();
    });
  }
  [[nodiscard]] std::int64_t machine_now() const noexcept override { return Bucket::machine_now(); }

  Bucket& owner;
  std::mutex mutex;
  algorithm::TokenBucket tokens;
  algorithm::LeakyBucket queue;
  State state;          // when the word is `elsewhere`
  Uint128 highest = 0;  // value of a word so far, and one more
  waiting::Queue waits;
};

Bucket::Bucket(Kind kind, const Numbers& numbers) : kind_(kind) {
  algorithm::require_valid(limit_of(kind, numbers));
  exact_ = std::make_unique<Exact>(*this, numbers);
}

Bucket::~Bucket() = default;

// Calls change(state, now) on the exact state and makes the result the bucket's state; in the word, where it fits.
template <typename Change>
Decision Bucket::exact(std::int64_t now, Change change) noexcept {
  now = algorithm::within_range(now);
  const std::scoped_lock lock(exact_->mutex);
  for (;;) {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    const bool elsewhere = word == kElsewhere;
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    const Slot& slot = slots_[version % 2];
    const std::int64_t origin = slot.origin.load(std::memory_order_relaxed);
    const std::uint64_t c = slot.c.load(std::memory_order_relaxed);
    const std::uint64_t start = slot.start.load(std::memory_order_relaxed) & kValueMask;
    const auto reading_at = [&](std::int64_t at) { return start + Uint128{algorithm::ticks_between(origin, at)} * c; };
    const std::uint64_t full_at = word & kValueMask;

    State state = exact_->state;
    std::int64_t at = now;
    if (!elsewhere) {
      at = std::max(now, origin);
      const Uint128 reading = reading_at(at);
      state = {.missing_low = reading < full_at ? full_at - static_cast<std::uint64_t>(reading) : 0, .last = at};
    }
    const State before = state;
    bool renumbered = false;
    const algorithm::TokenBucket old_tokens = exact_->tokens;
    const algorithm::LeakyBucket old_queue = exact_->queue;
    const Decision decision = change(state, at, renumbered);
    if (state == before && !renumbered) return decision;

    // From here on `state` is of the time `at`.
    if (state.last == algorithm::kNeverSeen) {
      state.last = at;
    } else {
      at = state.last;
    }
    const bool fits = state.missing_high == 0 && state.missing_low <= kMostMissing &&
                      exact_->tokens.parts_when_full() <= kMostMissing;
    std::uint64_t next = kElsewhere;
    bool next_slot = false;
    if (!elsewhere) exact_->highest = std::max({exact_->highest, Uint128{full_at} + 1, reading_at(at) + 1});
    if (fits && !elsewhere && !renumbered &&
        algorithm::ticks_between(origin, at) <= slot.horizon.load(std::memory_order_relaxed)) {
      next = (word & ~kValueMask) | (static_cast<std::uint64_t>(reading_at(at)) + state.missing_low);
    } else if (fits) {
      // Readings go on from the highest value so far, so that no word of the new generation equals an older one; from 0
      // when there is no room.
      if (exact_->highest >= kMostMissing) exact_->highest = 0;
      const auto new_start = static_cast<std::uint64_t>(exact_->highest);
      next_slot = true;
      Slot& fresh = slots_[(version + 1) % 2];
      const std::uint64_t generation = (version + 1) % kGenerations << kValueBits;
      const std::uint64_t new_c = exact_->tokens.parts_per_tick();
      fresh.start.store(kNone, std::memory_order_release);
      fresh.origin.store(at, std::memory_order_release);
      fresh.c.store(new_c, std::memory_order_release);
      fresh.p.store(exact_->tokens.parts_per_token(), std::memory_order_release);
      fresh.burst.store(exact_->tokens.limit(), std::memory_order_release);
      fresh.capacity.store(static_cast<std::uint64_t>(exact_->tokens.parts_when_full()), std::memory_order_release);
      fresh.horizon.store(new_c == 0 ? INT64_MAX : (kMostReading - new_start) / new_c, std::memory_order_release);
      fresh.start.store(generation | new_start, std::memory_order_release);
      next = generation | (new_start + state.missing_low);
    }
    exact_->state = state;
    SLUICE_SYNC_POINT("bucket.exact.swap");
    std::uint64_t expected = word;
    if (word_.compare_exchange_strong(expected, next, std::memory_order_acq_rel)) {
      if (next_slot) version_.store(version + 1, std::memory_order_release);
      return decision;
    }
    exact_->tokens = old_tokens;  // somebody was charged in between: once more, from the state after that
    exact_->queue = old_queue;
  }
}

Decision Bucket::exact_check(std::uint64_t cost, std::int64_t now, bool take) noexcept {
  return exact(now, [&](State& state, std::int64_t at, bool& renumbered) {
    return exact_->on([&](const auto& numbers) {
      // The first call finds no slot in use: it is written even when nothing is taken.
      renumbered = take && state.last == algorithm::kNeverSeen && numbers.parts_when_full() <= kMostMissing;
      State trial = state;
      const algorithm::Outcome outcome = numbers.decide(trial, at, cost);
      if (take) state = trial;
      return decision_of(outcome.verdict, outcome.view);
    });
  });
}

Decision Bucket::exact_peek(std::uint64_t cost, std::int64_t now) const noexcept {
  return const_cast<Bucket*>(this)->exact_check(cost, now, false);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

Granted Bucket::exact_acquire_up_to(std::uint64_t most, std::int64_t now) noexcept {
  std::uint64_t granted = 0;
  const Decision decision = exact(now, [&](State& state, std::int64_t at, bool& /*renumbered*/) {
    return exact_->on([&](const auto& numbers) {
      granted = std::min(most, numbers.view(state, at).remaining);
      const algorithm::Outcome outcome = numbers.decide(state, at, granted);
      return decision_of(outcome.verdict, outcome.view);
    });
  });
  return {granted, decision};
}

// Calls change(state, now) on what the bucket holds beside those who wait, whose places are then found anew; it tells
// whether the numbers changed.
template <typename VerbKind, typename Change>
Decision Bucket::verb(VerbKind kind, std::int64_t now, Change change) noexcept {
  now = algorithm::within_range(now);
  waiting::Queue::Verb verb(exact_->waits, kind, now);
  return exact(now, [&](State& state, std::int64_t at, bool& renumbered) {
    at = algorithm::TokenBucket::clamp(state, at);
    State base = verb.beneath(exact_->tokens, state, at);
    renumbered = change(base, at);
    state = verb.above(exact_->tokens, base, at);
    return exact_->on(
        [&](const auto& numbers) { return decision_of(numbers.judge(state, at, 0), numbers.view(state, at)); });
  });
}

Decision Bucket::refund(std::uint64_t cost, std::int64_t now) noexcept {
  return verb(waiting::Kind::charge, now, [&](State& state, std::int64_t at) {
    exact_->on([&](const auto& numbers) { numbers.refund(state, at, cost); });
    return false;
  });
}

Decision Bucket::settle(std::uint64_t reserved, std::uint64_t actual, std::int64_t now) noexcept {
  return verb(waiting::Kind::charge, now, [&](State& state, std::int64_t at) {
    exact_->on([&](const auto& numbers) { numbers.settle(state, at, reserved, actual); });
    return false;
  });
}

Decision Bucket::penalize(std::uint64_t cost, std::int64_t now) noexcept {
  return verb(waiting::Kind::charge, now, [&](State& state, std::int64_t at) {
    exact_->on([&](const auto& numbers) { numbers.penalize(state, at, cost); });
    return false;
  });
}

Decision Bucket::reset(std::int64_t now) noexcept {
  return verb(waiting::Kind::reset, now, [](State& state, std::int64_t /*at*/) {
    state = {};
    return false;
  });
}

Decision Bucket::set_limit(const Numbers& numbers, std::int64_t now) {
  algorithm::require_valid(limit_of(kind_, numbers));
  const algorithm::TokenBucket tokens = Exact::tokens_of(numbers);
  const algorithm::LeakyBucket queue = Exact::queue_of(numbers);
  return verb(waiting::Kind::renumber, now, [&](State& state, std::int64_t at) {
    const bool renumbered = tokens != exact_->tokens;
    if (kind_ == Kind::tokens) {
      tokens.convert(state, exact_->tokens, at);
    } else {
      queue.convert(state, exact_->queue, at);
    }
    exact_->tokens = tokens;
    exact_->queue = queue;
    return renumbered;
  });
}

Reservation Bucket::reserve(std::uint64_t cost, std::chrono::nanoseconds max_wait, std::int64_t now,
                            const Clock* clock) {
  waiting::Queue& waits = exact_->waits.with_clock(clock);
  return {waits.reserve(cost, max_wait.count(), algorithm::within_range(now)), &waits};
}

WaitResult Bucket::wait(std::uint64_t cost, const Deadline& deadline, std::stop_token stop, const Clock* clock) {
  waiting::Queue& waits = exact_->waits.with_clock(clock);
  if (kind_ == Kind::tokens && !stop.stop_requested()) {
    // Without a lock where there is nothing to wait for: whoever waits has the bucket in debt.
    const std::int64_t now = waits.now();
    if (deadline.steady(now) >= now) {
      const Decision decision = try_acquire(cost, now);
      if (decision.allowed) return {.decision = decision, .ready_at = now};
    }
  }
  return wait_in_line(waits, cost, deadline, std::move(stop));
}

Waits& Bucket::waits(const Clock* clock) { return exact_->waits.with_clock(clock); }

}  // namespace sluice::internal
