#include "algorithm/compiled_limit.h"

#include <string>
#include <string_view>
#include <utility>

namespace sluice::algorithm {

namespace {

Error not_in_a_policy(std::string_view algorithm) {
  return Error{"algorithm: " + std::string(algorithm) +
               " is not supported by this version in a policy; token_bucket, leaky_bucket, fixed_window and "
               "sliding_window are"};
}

// Windows that are aligned to something outside of the process.
bool goes_by_utc(const Limit& limit) {
  return limit.algorithm == Algorithm::sliding_window ||
         (limit.algorithm == Algorithm::fixed_window && limit.align != Align::first_hit);
}

// Does a refund know whether its charge still counts?
template <typename A>
inline constexpr bool kHasWindows = std::is_same_v<A, FixedWindow> || std::is_same_v<A, SlidingWindow>;

}  // namespace

CompiledLimit::CompiledLimit(Any algorithm, const Limit& limit, Tick tick) noexcept
    : algorithm_(std::move(algorithm)),
      tick_(tick),
      uses_utc_(goes_by_utc(limit)),
      counts_denied_(limit.algorithm == Algorithm::fixed_window && limit.count_denied) {}

Result<CompiledLimit> CompiledLimit::compile(const Limit& limit, Tick tick, CalendarOpener calendars) {
  if (const auto problems = validate(limit); !problems.empty()) return Error{joined(problems)};
  const std::int64_t period = limit.period.count() / nanoseconds_in(tick);
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return CompiledLimit(TokenBucket(limit.rate, period, limit.burst, tick), limit, tick);
    case Algorithm::leaky_bucket:
      return CompiledLimit(LeakyBucket(limit.rate, period, limit.queue, tick), limit, tick);
    case Algorithm::fixed_window: {
      FixedWindow::Numbers numbers{
          .rate = limit.rate, .period = period, .align = limit.align, .count_denied = limit.count_denied};
      if (limit.align == Align::calendar) {
        if (calendars == nullptr) return Error{"align: calendar windows are not available here"};
        auto opened = calendars(limit.calendar, tick);
        if (!opened) return opened.error();
        numbers.calendar = *std::move(opened);
      }
      return CompiledLimit(FixedWindow(std::move(numbers)), limit, tick);
    }
    case Algorithm::sliding_window:
      if (limit.slots > 1) return Error{"slots: more than 1 is not supported by this version in a policy"};
      return CompiledLimit(SlidingWindow(limit.rate, period, limit.slots), limit, tick);
    case Algorithm::sliding_log:
      return not_in_a_policy("sliding_log");
    case Algorithm::concurrency:
      break;
  }
  return not_in_a_policy("concurrency");
}

void CompiledLimit::refund(State& state, std::int64_t now, std::uint64_t cost,
                           std::optional<std::int64_t> at) const noexcept {
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (kHasWindows<A>) {
      algorithm.refund(own, now, cost, at);
    } else {
      algorithm.refund(own, now, cost);
    }
  });
}

void CompiledLimit::settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
                           std::optional<std::int64_t> at) const noexcept {
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    if constexpr (kHasWindows<A>) {
      algorithm.settle(own, now, reserved, actual, at);
    } else {
      algorithm.settle(own, now, reserved, actual);
    }
  });
}

void CompiledLimit::penalize(State& state, std::int64_t now, std::uint64_t cost) const noexcept {
  on_state(state, [&](const auto& algorithm, auto& own) { algorithm.penalize(own, now, cost); });
}

void CompiledLimit::convert(State& state, const CompiledLimit& old, std::int64_t now) const noexcept {
  if (algorithm_.index() != old.algorithm_.index()) {
    state = {};
    return;
  }
  on_state(state, [&]<typename A>(const A& algorithm, auto& own) {
    algorithm.convert(own, *std::get_if<A>(&old.algorithm_), now);
  });
}

}  // namespace sluice::algorithm
