// A window of time, and where windows come from that are not multiples of a period.
#pragma once

#include <cstdint>

#include "sluice/limit.h"

namespace sluice::algorithm {

/// [start, start + length) in ticks. Length 0: no window is open.
struct Window {
  std::int64_t start = 0;
  std::int64_t length = 0;
};

/// Windows that follow a calendar. Thread-safe. The core knows only this; calendar.h has the one that knows time zones.
class CalendarWindows {
 public:
  CalendarWindows(const CalendarWindows&) = delete;
  CalendarWindows& operator=(const CalendarWindows&) = delete;
  virtual ~CalendarWindows() = default;
  /// The window that holds `now`, in ticks since 1970 UTC.
  [[nodiscard]] virtual Window window(std::int64_t now) const noexcept = 0;
  [[nodiscard]] virtual const Calendar& calendar() const noexcept = 0;

 protected:
  CalendarWindows() = default;
};

}  // namespace sluice::algorithm
