// A clock for tests: it stands still until it is moved, and wakes whoever waits by it.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

#include "sluice/clock.h"

namespace sluice {

/// Time as a test wants it. Give it to a limiter in the place of the machine's clock, and move it by hand:
///
///     sluice::SimulatedClock clock;
///     sluice::TokenBucket bucket{{.rate = 10, .period = 1s, .burst = 1}, &clock};
///     bucket.try_acquire();
///     clock.advance(100ms);  // exactly now the next token is there
///
/// A move also wakes those who wait (`wait`, `async_wait`) for a time that it reaches: nothing sleeps. Thread-safe; it
/// must outlive the limiters that go by it. Cost: one uncontended lock to read.
class SimulatedClock final : public Clock {
 public:
  /// Begins a good while after 0 on both clocks, as real ones do.
  SimulatedClock() = default;
  /// Begins at `start`.
  explicit SimulatedClock(Time start) : now_(start) {}

  [[nodiscard]] Time now() const override {
    const std::scoped_lock lock(time_mutex_);
    return now_;
  }

  /// Moves both clocks; by less than 0, as a clock that is set back.
  void advance(std::chrono::nanoseconds by) {
    {
      const std::scoped_lock lock(time_mutex_);
      now_.steady += by.count();
      now_.utc += by.count();
    }
    tell();
  }
  /// Moves `utc` alone, back by less than 0: a clock that is put right.
  void step_utc(std::chrono::nanoseconds by) {
    {
      const std::scoped_lock lock(time_mutex_);
      now_.utc += by.count();
    }
    tell();
  }
  /// Moves the clocks to any time, each to its own.
  void set(Time to) {
    {
      const std::scoped_lock lock(time_mutex_);
      now_ = to;
    }
    tell();
  }

  [[nodiscard]] bool listen(ClockListener& listener) const override {
    const std::scoped_lock lock(listeners_mutex_);
    listeners_.push_back(&listener);
    return true;
  }
  void unlisten(ClockListener& listener) const override {
    const std::scoped_lock lock(listeners_mutex_);
    const auto found = std::find(listeners_.begin(), listeners_.end(), &listener);
    if (found != listeners_.end()) listeners_.erase(found);
  }

 private:
  void tell() {
    const std::scoped_lock lock(listeners_mutex_);
    for (ClockListener* listener : listeners_) listener->clock_moved();
  }

  static constexpr std::int64_t kStart = 1'800'000'000'000'000'000;  // in the year 2027
  mutable std::mutex time_mutex_;
  Time now_{.steady = kStart, .utc = kStart};
  mutable std::mutex listeners_mutex_;
  mutable std::vector<ClockListener*> listeners_;
};

}  // namespace sluice
