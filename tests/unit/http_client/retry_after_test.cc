#include "http_client/retry_after.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>

namespace sluice::http_client {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

/// A little after 2026-10-21 07:28:00.
constexpr std::chrono::system_clock::time_point kNow = sys_days(2026y / 10 / 21) + 7h + 28min + 900ms;

std::chrono::seconds asked(std::string_view field) { return read_retry_after(field, kNow, 1h); }

TEST(RetryAfter, Seconds) {
  EXPECT_EQ(asked("0"), 0s);
  EXPECT_EQ(asked("7"), 7s);
  EXPECT_EQ(asked("007"), 7s);
  for (const std::string_view large : {"3600", "3601", "86400", "4294967295", "4294967296", "99999999999999999999"}) {
    EXPECT_EQ(asked(large), 1h) << large;
  }
}

TEST(RetryAfter, DatesInEachOfTheirForms) {
  for (const std::string_view date : {"Wed, 21 Oct 2026 07:28:05 GMT", "Wednesday, 21-Oct-26 07:28:05 GMT",
                                      "Wed Oct 21 07:28:05 2026", "Fri, 21 Oct 2026 07:28:05 GMT"}) {
    EXPECT_EQ(asked(date), 5s) << date;
  }
  const auto end_of_month = [](std::string_view date) {
    return read_retry_after(date, sys_days(2026y / 10 / 31) + 23h, 24h);
  };
  EXPECT_EQ(end_of_month("Sun, 01 Nov 2026 00:00:10 GMT"), 1h + 10s);
  EXPECT_EQ(end_of_month("Sun Nov  1 00:00:10 2026"), 1h + 10s);
  EXPECT_EQ(asked("Wed, 21 Oct 2026 07:28:60 GMT"), 60s) << "a leap second";
}

TEST(RetryAfter, WhatIsFarAwayIsCutAndWhatIsPastIsNow) {
  for (const std::string_view far : {"Thu, 22 Oct 2026 07:28:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
                                     "Wednesday, 21-Oct-76 07:28:05 GMT", "Wed Oct 21 07:28:05 2126"}) {
    EXPECT_EQ(asked(far), 1h) << far;
  }
  for (const std::string_view past :
       {"Wed, 21 Oct 2026 07:28:00 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994", "Sat, 01 Jan 0000 00:00:00 GMT"}) {
    EXPECT_EQ(asked(past), 0s) << past;
  }
}

TEST(RetryAfter, WhatCannotBeReadAsksForNothing) {
  for (const std::string_view none : {"",
                                      " ",
                                      "-1",
                                      "+7",
                                      "7.5",
                                      "7s",
                                      "0x10",
                                      "soon",
                                      "Wed, 21 Oct 2026 07:28:05",
                                      "Wed, 21 Oct 2026 07:28:05 CET",
                                      "Wed, 21 Oct 2026 07:28:05 GMT ",
                                      "Wed, 1 Oct 2026 07:28:05 GMT",
                                      "Sat, 31 Nov 2026 07:28:05 GMT",
                                      "Wed, 00 Oct 2026 07:28:05 GMT",
                                      "Wed, 21 oct 2026 07:28:05 GMT",
                                      "Wed, 21 Oct 2026 24:00:00 GMT",
                                      "Wed, 21 Oct 2026 07:60:00 GMT",
                                      "Wed, 21 Oct 2026 07:28:61 GMT",
                                      "Wed, 21 Oct 26 07:28:05 GMT",
                                      "Wednesday, 21-Oct-2026 07:28:05 GMT",
                                      "Wed Oct 1 07:28:05 2026",
                                      "Wed, ",
                                      "Wed, 21 Oct 2026 07:2"}) {
    EXPECT_EQ(asked(none), 0s) << none;
  }
}

}  // namespace
}  // namespace sluice::http_client
