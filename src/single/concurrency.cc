#include "sluice/concurrency.h"

#include <cstdint>
#include <mutex>

#include "algorithm/concurrency.h"
#include "algorithm/decision_of.h"
#include "algorithm/require_valid.h"
#include "algorithm/ticks.h"
#include "sluice/internal/counter_clock.h"
#include "sluice/limit.h"

namespace sluice {

namespace {

algorithm::Concurrency made(const Concurrency::Numbers& numbers) {
  algorithm::require_valid({.algorithm = Algorithm::concurrency, .rate = numbers.rate, .ttl = numbers.ttl});
  return {numbers.rate, numbers.ttl.count()};
}

std::int64_t steady(Time now) { return algorithm::within_range(now.steady); }

}  // namespace

struct Concurrency::State {
  State(const Numbers& of, const Clock* by) : clock(by), numbers(made(of)) {}

  [[nodiscard]] Time now() const {
    return clock != nullptr ? clock->now() : Time{.steady = internal::steady_now(), .utc = 0};
  }
  [[nodiscard]] Decision view(Time now) const { return algorithm::decision_of({}, numbers.view(state, steady(now))); }

  const Clock* clock;
  std::mutex mutex;
  algorithm::Concurrency numbers;
  algorithm::Concurrency::State state;
};

Concurrency::Concurrency(const Numbers& numbers, const Clock* clock)
    : state_(std::make_unique<State>(numbers, clock)) {}
Concurrency::~Concurrency() = default;

Concurrency::Lease Concurrency::try_acquire(std::uint64_t cost, Time now) {
  const std::scoped_lock lock(state_->mutex);
  const algorithm::Verdict verdict = state_->numbers.judge(state_->state, steady(now), cost);
  const std::uint64_t id = verdict.fits ? state_->numbers.take(state_->state, steady(now), cost) : 0;
  return {id == 0 ? nullptr : this, id,
          algorithm::decision_of(verdict, state_->numbers.view(state_->state, steady(now)))};
}
Concurrency::Lease Concurrency::try_acquire(std::uint64_t cost) { return try_acquire(cost, state_->now()); }

Decision Concurrency::peek(std::uint64_t cost, Time now) const {
  const std::scoped_lock lock(state_->mutex);
  const algorithm::Outcome outcome = state_->numbers.peek(state_->state, steady(now), cost);
  return algorithm::decision_of(outcome.verdict, outcome.view);
}
Decision Concurrency::peek(std::uint64_t cost) const { return peek(cost, state_->now()); }

bool Concurrency::release(std::uint64_t id, Time now) noexcept {
  const std::scoped_lock lock(state_->mutex);
  return state_->numbers.release(state_->state, steady(now), id);
}
bool Concurrency::release(std::uint64_t id) noexcept { return release(id, state_->now()); }

Decision Concurrency::set_limit(const Numbers& numbers, Time now) {
  const algorithm::Concurrency next = made(numbers);
  const std::scoped_lock lock(state_->mutex);
  next.convert(state_->state, state_->numbers, steady(now));
  state_->numbers = next;
  return state_->view(now);
}
Decision Concurrency::set_limit(const Numbers& numbers) { return set_limit(numbers, state_->now()); }

Decision Concurrency::reset(Time now) {
  const std::scoped_lock lock(state_->mutex);
  algorithm::Concurrency::reset(state_->state);
  return state_->view(now);
}
Decision Concurrency::reset() { return reset(state_->now()); }

Concurrency::Lease& Concurrency::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release();
    owner_ = std::exchange(other.owner_, nullptr);
    id_ = std::exchange(other.id_, 0);
    decision_ = std::exchange(other.decision_, {.allowed = false});
  }
  return *this;
}
Concurrency::Lease::~Lease() { release(); }

bool Concurrency::Lease::release(Time now) noexcept {
  return owner_ != nullptr && std::exchange(owner_, nullptr)->release(id_, now);
}
bool Concurrency::Lease::release() noexcept { return owner_ != nullptr && release(owner_->state_->now()); }

std::uint64_t Concurrency::Lease::detach() noexcept {
  owner_ = nullptr;
  return id_;
}

}  // namespace sluice
