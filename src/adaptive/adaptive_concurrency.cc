#include "sluice/adaptive_concurrency.h"

#include <algorithm>
#include <mutex>

#include "adaptive/controller.h"
#include "adaptive/numbers.h"
#include "sluice/internal/counter_clock.h"

namespace sluice {

namespace {

adaptive::Controller made(const AdaptiveConcurrency::Numbers& numbers) {
  adaptive::require_valid(numbers);
  return adaptive::Controller(numbers);
}

std::int64_t latency(std::int64_t started, std::int64_t now) {
  std::int64_t taken = 0;
  if (__builtin_sub_overflow(now, started, &taken)) return now < started ? 0 : adaptive::kLongestCall;
  return std::clamp<std::int64_t>(taken, 0, adaptive::kLongestCall);
}

}  // namespace

struct AdaptiveConcurrency::State {
  explicit State(const Numbers& numbers) : controller(made(numbers)) {}

  std::mutex mutex;
  adaptive::Controller controller;  // guarded by mutex
};

AdaptiveConcurrency::AdaptiveConcurrency(const Numbers& numbers, const Clock* clock)
    : clock_(clock), state_(std::make_unique<State>(numbers)) {
  publish();
}
AdaptiveConcurrency::~AdaptiveConcurrency() = default;

Time AdaptiveConcurrency::time() const noexcept {
  return clock_ != nullptr ? clock_->now() : Time{.steady = internal::steady_now(), .utc = 0};
}

// A verdict that comes while another thread closes the window counts in this window or in the next; its latency may
// fall into the one before its count, which is off by one call in a window, and makes up for it in the next.
void AdaptiveConcurrency::ended(std::int64_t started, std::int64_t now, bool dropped) noexcept {
  const std::uint64_t in_flight = low_half(word_.fetch_sub(1, std::memory_order_release));
  if (started >= counts_from_.load(std::memory_order_relaxed)) {
    const std::int64_t taken = latency(started, now);
    dropped = dropped || taken > slowest_.load(std::memory_order_relaxed);
    if (!dropped) sum_.fetch_add(static_cast<std::uint64_t>(taken), std::memory_order_relaxed);
    std::uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (in_flight > peak && !peak_.compare_exchange_weak(peak, in_flight, std::memory_order_relaxed)) {
    }
    ended_.fetch_add(dropped ? kOneDropped : 1, std::memory_order_release);
  }
  const bool complete = !window_.load().holds(now) && enough_calls(needed_.load(std::memory_order_relaxed));
  if (complete || probing_too_long(now)) look(now);
}

// As many as are needed, and twice as many as were in flight; none, while a probe waits for calls to end.
bool AdaptiveConcurrency::enough_calls(std::uint64_t needed) const noexcept {
  const std::uint64_t calls = low_half(ended_.load(std::memory_order_relaxed));
  return needed == 0 || (calls >= needed && calls >= 2 * peak_.load(std::memory_order_relaxed));
}

bool AdaptiveConcurrency::probing_too_long(std::int64_t now) const noexcept {
  return probing_.load(std::memory_order_relaxed) && !patience_.load().holds(now);
}

bool AdaptiveConcurrency::probe_is_over(std::int64_t now) noexcept { return probing_too_long(now) && look(now); }

// Moves the limit if there is reason to. Who finds another thread at it goes on: that one does what is to be done.
bool AdaptiveConcurrency::look(std::int64_t now) noexcept {
  const std::unique_lock lock(state_->mutex, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  adaptive::Controller& controller = state_->controller;
  const bool drained = controller.phase() != adaptive::Controller::Phase::draining ||
                       low_half(word_.load(std::memory_order_relaxed)) <= controller.limit();
  if (drained && !controller.window().holds(now) && enough_calls(controller.needed())) {
    const std::uint64_t ended = ended_.exchange(0, std::memory_order_acquire);
    controller.close({.ended = low_half(ended),
                      .dropped = high_half(ended),
                      .sum = sum_.exchange(0, std::memory_order_relaxed),
                      .peak = peak_.exchange(0, std::memory_order_relaxed)},
                     now);
  } else if (controller.phase() != adaptive::Controller::Phase::normal && !controller.patience().holds(now)) {
    controller.give_up(now);
    forget_window();
  } else {
    return false;
  }
  publish();
  return true;
}

void AdaptiveConcurrency::forget_window() noexcept {
  ended_.store(0, std::memory_order_relaxed);
  sum_.store(0, std::memory_order_relaxed);
  peak_.store(0, std::memory_order_relaxed);
}

// What the controller has come to is made known to all.
void AdaptiveConcurrency::publish() noexcept {
  const adaptive::Controller& controller = state_->controller;
  short_rtt_.store(controller.short_rtt(), std::memory_order_relaxed);
  slowest_.store(controller.slowest(), std::memory_order_relaxed);
  counts_from_.store(controller.counts_from(), std::memory_order_relaxed);
  window_.store(controller.window());
  needed_.store(controller.needed(), std::memory_order_relaxed);
  patience_.store(controller.patience());
  probing_.store(controller.phase() != adaptive::Controller::Phase::normal, std::memory_order_relaxed);
  const std::uint64_t limit = controller.limit() << 32U;
  std::uint64_t word = word_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(word, limit | low_half(word), std::memory_order_relaxed)) {
  }
}

AdaptiveConcurrency::Figures AdaptiveConcurrency::figures() const noexcept {
  const std::scoped_lock lock(state_->mutex);
  const adaptive::Controller& controller = state_->controller;
  const std::uint64_t word = word_.load(std::memory_order_relaxed);
  return {.limit = high_half(word),
          .in_flight = low_half(word),
          .short_rtt = std::chrono::nanoseconds(controller.short_rtt()),
          .long_rtt = std::chrono::nanoseconds(controller.long_rtt()),
          .probing = controller.phase() != adaptive::Controller::Phase::normal};
}

Decision AdaptiveConcurrency::set_limit(const Numbers& numbers, Time now) {
  adaptive::require_valid(numbers);
  const std::scoped_lock lock(state_->mutex);
  if (numbers != state_->controller.numbers()) {
    state_->controller.set_numbers(numbers, now.steady);
    forget_window();
    publish();
  }
  return peek();
}

Decision AdaptiveConcurrency::reset() noexcept {
  const std::scoped_lock lock(state_->mutex);
  state_->controller = adaptive::Controller(state_->controller.numbers());
  forget_window();
  publish();
  return peek();
}

}  // namespace sluice
