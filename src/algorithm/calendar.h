// Windows that follow the calendar of a time zone.
#pragma once

#include <memory>

#include "algorithm/ticks.h"
#include "algorithm/window.h"
#include "base/result.h"
#include "sluice/limit.h"

namespace sluice::algorithm {

/// Local days, weeks (from Monday), months (from the anchor day, or the last day of a month without it) and years of
/// the calendar's time zone, from the system's time zone database. Leap seconds don't exist. Fails when the zone is
/// unknown or there is no database. A look-up in the window of the one before costs a few ns, in another a few µs.
[[nodiscard]] Result<std::shared_ptr<const CalendarWindows>> open_calendar(const Calendar& calendar, Tick tick);

}  // namespace sluice::algorithm
