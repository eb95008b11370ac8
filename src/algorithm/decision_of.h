// From the algorithms' answers to a Decision.
#pragma once

#include <chrono>
#include <cstdint>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"
#include "sluice/decision.h"

namespace sluice::algorithm {

/// A wait in ticks as one in nanoseconds.
[[nodiscard]] constexpr Wait wait_of(std::int64_t ticks, Tick tick = Tick::nanosecond) noexcept {
  return ticks == kNever ? Wait::never() : Wait(std::chrono::nanoseconds(ticks * nanoseconds_in(tick)));
}

/// A verdict and a view, in ticks of any length, as a Decision.
[[nodiscard]] constexpr Decision decision_of(const Verdict& verdict, const View& view,
                                             Tick tick = Tick::nanosecond) noexcept {
  return {.allowed = verdict.fits,
          .mark = verdict.mark,
          .limit = view.limit,
          .remaining = view.remaining,
          .retry_after = wait_of(verdict.retry_after, tick),
          .reset_after = wait_of(view.reset_after, tick),
          .delay = wait_of(verdict.delay, tick)};
}
[[nodiscard]] constexpr Decision decision_of(const Outcome& outcome, Tick tick = Tick::nanosecond) noexcept {
  return decision_of(outcome.verdict, outcome.view, tick);
}

}  // namespace sluice::algorithm
