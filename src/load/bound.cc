#include "load/bound.h"

#include <algorithm>

#include "algorithm/calendar.h"
#include "algorithm/int128.h"

namespace sluice::load {
namespace {

using Wide = algorithm::Uint128;

constexpr std::int64_t kMicrosecond = 1'000;

std::uint64_t narrow(Wide value) { return value > kNoBound ? kNoBound : static_cast<std::uint64_t>(value); }

// Rounded down, for times before 1970, too.
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Redis counts whole microseconds, so what it saw may be up to one longer.
std::uint64_t refilled(const Limit& limit, std::int64_t length) {
  const Wide time = static_cast<Wide>(std::max<std::int64_t>(length, 0)) + kMicrosecond;
  return narrow(time * limit.rate / static_cast<Wide>(limit.period.count()));
}

std::uint64_t windows_of(std::int64_t period, std::int64_t begin, std::int64_t end) {
  return static_cast<std::uint64_t>(floor_div(end, period) - floor_div(begin, period)) + 1;
}

std::uint64_t calendar_windows(const Limit& limit, std::int64_t begin, std::int64_t end) {
  const auto calendar = algorithm::open_calendar(limit.calendar, algorithm::Tick::nanosecond);
  if (!calendar) return 2;
  std::uint64_t windows = 1;
  for (algorithm::Window window = (*calendar)->window(begin); window.start + window.length <= end; ++windows) {
    window = (*calendar)->window(window.start + window.length);
  }
  return windows;
}

}  // namespace

std::uint64_t add_bounds(std::uint64_t a, std::uint64_t b) { return narrow(Wide{a} + b); }
std::uint64_t times_bound(std::uint64_t bound, std::uint64_t times) { return narrow(Wide{bound} * times); }

std::uint64_t capacity(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return limit.burst;
    case Algorithm::leaky_bucket:
      return limit.queue + 1;
    default:
      return limit.rate;
  }
}

std::uint64_t bound(const Limit& limit, Time begin, Time end, std::chrono::nanoseconds slack) {
  const std::int64_t length = std::max<std::int64_t>(end.steady - begin.steady, 0);
  const std::int64_t period = limit.period.count();
  const std::int64_t first = begin.utc - slack.count();
  const std::int64_t last = std::max(end.utc, begin.utc) + slack.count();
  const auto covering = [length](std::int64_t span) { return static_cast<std::uint64_t>(length / span) + 1; };
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      return add_bounds(capacity(limit), refilled(limit, length));
    case Algorithm::fixed_window:
      // One may have been open before.
      if (limit.align == Align::first_hit) return times_bound(limit.rate, covering(period) + 1);
      if (limit.align == Align::calendar) return times_bound(limit.rate, calendar_windows(limit, first, last));
      return times_bound(limit.rate, windows_of(period, first, last));
    case Algorithm::sliding_window: {
      // Any `slots` sub-windows in a row admit at most the rate.
      const std::uint64_t touched = windows_of(period / limit.slots, first, last);
      return times_bound(limit.rate, (touched + limit.slots - 1) / limit.slots);
    }
    case Algorithm::sliding_log:
      return times_bound(limit.rate, covering(period));
    case Algorithm::concurrency:
      return times_bound(limit.rate, covering(limit.ttl.count()));
  }
  return kNoBound;
}

std::uint64_t local_bound(const Limit& limit, std::chrono::nanoseconds length) {
  const std::int64_t span = limit.algorithm == Algorithm::concurrency ? limit.ttl.count() : limit.period.count();
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
      return add_bounds(capacity(limit), refilled(limit, length.count()));
    default:
      // Aligned anywhere.
      return times_bound(limit.rate, static_cast<std::uint64_t>(std::max<std::int64_t>(length.count(), 0) / span) + 2);
  }
}

}  // namespace sluice::load
