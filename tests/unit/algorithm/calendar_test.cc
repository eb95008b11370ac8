#include "algorithm/calendar.h"

#include <gtest/gtest.h>

#include "algorithm/fixed_window.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

using Unit = Calendar::Unit;

// Seconds since 1970 UTC of the window that holds `second`.
struct Bounds {
  std::int64_t start;
  std::int64_t end;
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

Bounds bounds(const Calendar& calendar, std::int64_t second) {
  const auto windows = open_calendar(calendar, Tick::nanosecond);
  if (!windows) return {0, 0};
  const Window window = (*windows)->window(second * kSecond + 1);
  return {window.start / kSecond, (window.start + window.length) / kSecond};
}

TEST(Calendar, UnitsInUtc) {
  constexpr std::int64_t kSecondsOfDay = 86'400;
  constexpr std::int64_t kThursday = 1'767'225'600;  // 2026-01-01
  EXPECT_EQ(bounds({.unit = Unit::day}, kThursday), (Bounds{kThursday, kThursday + kSecondsOfDay}));
  EXPECT_EQ(bounds({.unit = Unit::week}, kThursday),
            (Bounds{kThursday - 3 * kSecondsOfDay, kThursday + 4 * kSecondsOfDay}));
  EXPECT_EQ(bounds({.unit = Unit::month}, kThursday), (Bounds{kThursday, kThursday + 31 * kSecondsOfDay}));
  EXPECT_EQ(bounds({.unit = Unit::year}, kThursday + 99), (Bounds{kThursday, kThursday + 365 * kSecondsOfDay}));
}

TEST(Calendar, DayOfTwentyThreeAndOfTwentyFiveHours) {
  const Calendar berlin{.unit = Unit::day, .timezone = "Europe/Berlin"};
  EXPECT_EQ(bounds(berlin, 1'774'746'000), (Bounds{1'774'738'800, 1'774'738'800 + 23 * 3'600}));  // 2026-03-29
  EXPECT_EQ(bounds(berlin, 1'792'890'000), (Bounds{1'792'879'200, 1'792'879'200 + 25 * 3'600}));  // 2026-10-25
}

TEST(Calendar, AnchorDayIsTheLastDayOfAShorterMonth) {
  const Calendar month_end{.unit = Unit::month, .timezone = "UTC", .anchor_day = 31};
  EXPECT_EQ(bounds(month_end, 1'772'236'800), (Bounds{1'772'236'800, 1'774'915'200}));      // from 02-28 to 03-31
  EXPECT_EQ(bounds(month_end, 1'772'236'800 - 1), (Bounds{1'769'817'600, 1'772'236'800}));  // from 01-31 to 02-28
}

TEST(Calendar, MidnightThatDoesNotExist) {
  // In Beirut the clocks of 2022-03-27 went from 00:00 to 01:00.
  const Calendar beirut{.unit = Unit::day, .timezone = "Asia/Beirut"};
  EXPECT_EQ(bounds(beirut, 1'648'332'000), (Bounds{1'648'332'000, 1'648'332'000 + 23 * 3'600}));
  EXPECT_EQ(bounds(beirut, 1'648'331'999), (Bounds{1'648'332'000 - 24 * 3'600, 1'648'332'000}));
}

TEST(Calendar, DayThatDoesNotExist) {
  // Samoa had no 2011-12-30: the 29th ends where the 31st begins.
  const Calendar apia{.unit = Unit::day, .timezone = "Pacific/Apia"};
  EXPECT_EQ(bounds(apia, 1'325'239'199), (Bounds{1'325'239'200 - 24 * 3'600, 1'325'239'200}));
  EXPECT_EQ(bounds(apia, 1'325'239'200), (Bounds{1'325'239'200, 1'325'239'200 + 24 * 3'600}));
}

TEST(Calendar, WindowsFollowOneAnotherWithoutGapOrOverlap) {
  for (const Unit unit : {Unit::day, Unit::week, Unit::month, Unit::year}) {
    for (const char* zone : {"UTC", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kathmandu"}) {
      const auto windows = open_calendar({.unit = unit, .timezone = zone, .anchor_day = 30}, Tick::microsecond);
      ASSERT_TRUE(windows);
      std::int64_t now = -400 * kDay / 1'000;
      for (int i = 0; i < 800; ++i) {
        const Window window = (*windows)->window(now);
        ASSERT_LE(window.start, now);
        ASSERT_GT(window.length, 0);
        const Window last = (*windows)->window(window.start + window.length - 1);
        ASSERT_EQ(last.start, window.start) << zone << ' ' << i;
        now = window.start + window.length;
        ASSERT_EQ((*windows)->window(now).start, now) << zone << ' ' << i;
      }
    }
  }
}

TEST(Calendar, UnknownZoneIsAnErrorThatNamesIt) {
  for (const char* zone : {"Europe/Bielefeld", "", "../../etc/passwd", "Europe", "/etc/localtime", "leapseconds"}) {
    const auto windows = open_calendar({.unit = Unit::day, .timezone = zone}, Tick::nanosecond);
    ASSERT_FALSE(windows) << zone;
    EXPECT_NE(windows.error().message.find(zone), std::string::npos);
    EXPECT_NE(windows.error().message.find("calendar.timezone"), std::string::npos);
  }
}

TEST(Calendar, FixedWindowCountsInLocalDays) {
  auto windows = open_calendar({.unit = Unit::day, .timezone = "America/New_York"}, Tick::nanosecond);
  ASSERT_TRUE(windows);
  const FixedWindow limit({.rate = 1, .align = Align::calendar, .calendar = *windows});
  FixedWindow::State state;
  EXPECT_EQ(limit.decide(state, kNewYear, 1).view.reset_after, 5 * kHour);
  EXPECT_EQ(limit.expires_at(state), kNewYear + 5 * kHour);
  EXPECT_EQ(limit.judge(state, kNewYear + kHour, 1).retry_after, 4 * kHour);
  EXPECT_TRUE(limit.judge(state, kNewYear + 5 * kHour, 1).fits);
  EXPECT_TRUE(limit.is_initial(state, kNewYear + 5 * kHour));
}

}  // namespace
}  // namespace sluice::algorithm
