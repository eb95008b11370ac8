#include "sluice/internal/guarded.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <variant>

#include "algorithm/calendar.h"
#include "algorithm/decision_of.h"
#include "algorithm/fixed_window.h"
#include "algorithm/require_valid.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"
#include "algorithm/ticks.h"
#include "sluice/internal/counter_clock.h"

namespace sluice::internal {

namespace {

using algorithm::FixedWindow;
using algorithm::SlidingLog;
using algorithm::SlidingWindow;

// Numbers and the state that goes with them.
template <typename Numbers_, typename State_>
struct Pair {
  using Numbers = Numbers_;
  using State = State_;
  Numbers numbers;
  State state{};
};
using Any = std::variant<Pair<FixedWindow, FixedWindow::State>, Pair<SlidingWindow, SlidingWindow::SlottedState>,
                         Pair<SlidingLog, SlidingLog::State>>;

Any made(const Limit& limit) {
  algorithm::require_valid(limit);
  const std::int64_t period = limit.period.count();
  if (limit.algorithm == Algorithm::sliding_log) return Pair<SlidingLog, SlidingLog::State>{{limit.rate, period}};
  if (limit.algorithm == Algorithm::sliding_window) {
    return Pair<SlidingWindow, SlidingWindow::SlottedState>{{limit.rate, period, limit.slots}};
  }
  FixedWindow::Numbers numbers{
      .rate = limit.rate, .period = period, .align = limit.align, .count_denied = limit.count_denied};
  if (limit.align == Align::calendar) {
    auto calendar = algorithm::open_calendar(limit.calendar, algorithm::Tick::nanosecond);
    if (!calendar) throw std::invalid_argument("sluice: " + calendar.error().message);
    numbers.calendar = *std::move(calendar);
  }
  return Pair<FixedWindow, FixedWindow::State>{FixedWindow(std::move(numbers))};
}

bool goes_by_utc(const Limit& limit) {
  return limit.algorithm == Algorithm::sliding_window ||
         (limit.algorithm == Algorithm::fixed_window && limit.align != Align::first_hit);
}

std::int64_t utc_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct Guarded::State {
  explicit State(const Limit& of) : limit(of), any(made(of)) {}

  [[nodiscard]] std::int64_t instant(Time now) const {
    return algorithm::within_range(goes_by_utc(limit) ? now.utc : now.steady);
  }

  std::mutex mutex;
  Limit limit;
  Any any;
};

Guarded::Guarded(const Limit& limit) : state_(std::make_unique<State>(limit)) {}
Guarded::~Guarded() = default;

Time Guarded::machine_now() const {
  bool utc = false;
  {
    const std::scoped_lock lock(state_->mutex);
    utc = goes_by_utc(state_->limit);
  }
  return utc ? Time{.steady = 0, .utc = utc_now()} : Time{.steady = steady_now(), .utc = 0};
}

// Calls function(numbers, state, now) and answers what a check of cost 0 then says.
template <typename Function>
Decision Guarded::change(Time now, Function function) {
  const std::scoped_lock lock(state_->mutex);
  const std::int64_t at = state_->instant(now);
  return std::visit(
      [&](auto& pair) {
        function(pair.numbers, pair.state, at);
        return decision_of({}, pair.numbers.view(pair.state, at));
      },
      state_->any);
}

Decision Guarded::try_acquire(std::uint64_t cost, Time now) {
  const std::scoped_lock lock(state_->mutex);
  return std::visit(
      [&](auto& pair) {
        const algorithm::Outcome outcome = pair.numbers.decide(pair.state, state_->instant(now), cost);
        return decision_of(outcome.verdict, outcome.view);
      },
      state_->any);
}

Decision Guarded::peek(std::uint64_t cost, Time now) const {
  const std::scoped_lock lock(state_->mutex);
  return std::visit(
      [&](const auto& pair) {
        const algorithm::Outcome outcome = pair.numbers.peek(pair.state, state_->instant(now), cost);
        return decision_of(outcome.verdict, outcome.view);
      },
      state_->any);
}

Granted Guarded::acquire_up_to(std::uint64_t most, Time now) {
  const std::scoped_lock lock(state_->mutex);
  const std::int64_t at = state_->instant(now);
  return std::visit(
      [&](auto& pair) {
        const std::uint64_t cost = std::min(most, pair.numbers.view(pair.state, at).remaining);
        const algorithm::Outcome outcome = pair.numbers.decide(pair.state, at, cost);
        return Granted{cost, decision_of(outcome.verdict, outcome.view)};
      },
      state_->any);
}

Decision Guarded::refund(std::uint64_t cost, Time now, std::optional<Time> charged) {
  return change(now, [&](const auto& numbers, auto& state, std::int64_t at) {
    numbers.refund(state, at, cost, charged ? std::optional(state_->instant(*charged)) : std::nullopt);
  });
}

Decision Guarded::settle(std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged) {
  return change(now, [&](const auto& numbers, auto& state, std::int64_t at) {
    numbers.settle(state, at, reserved, actual, charged ? std::optional(state_->instant(*charged)) : std::nullopt);
  });
}

Decision Guarded::penalize(std::uint64_t cost, Time now) {
  return change(now, [&](const auto& numbers, auto& state, std::int64_t at) { numbers.penalize(state, at, cost); });
}

Decision Guarded::reset(Time now) {
  return change(now, [](const auto&, auto& state, std::int64_t) { state = {}; });
}

Decision Guarded::set_limit(const Limit& limit, Time now) {
  Any next = made(limit);
  {
    const std::scoped_lock lock(state_->mutex);
    const std::int64_t at = state_->instant(now);
    std::visit(
        [&]<typename P>(P& pair) {
          P& successor = *std::get_if<P>(&next);
          successor.numbers.convert(pair.state, pair.numbers, at);
          pair.numbers = successor.numbers;
        },
        state_->any);
    state_->limit = limit;
  }
  return peek(0, now);
}

}  // namespace sluice::internal
