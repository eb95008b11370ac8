// Inputs that broke other limiters that keep something for each key.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(KeyedPublicReports, public_report_11_ACostAboveCapacityTakesNothing) {
  Keyed<TokenBucket> limits({.rate = 3, .period = seconds(2), .burst = 3});
  const Decision never = limits.try_acquire("u", 4, at(kStart));
  EXPECT_FALSE(never.allowed);
  EXPECT_TRUE(never.retry_after.is_never());
  EXPECT_EQ(never.remaining, 3U);
  EXPECT_EQ(limits.figures().keys, 0U);
  EXPECT_TRUE(limits.try_acquire("u", 3, at(kStart)).allowed);
  EXPECT_EQ(limits.try_acquire("u", 1, at(kStart)).retry_after, Wait(std::chrono::nanoseconds(666'666'667)));
}

TEST(KeyedPublicReports, public_report_12_ACostAboveTheLimitStoresNothing) {
  Keyed<SlidingLog> limits({.rate = 10, .period = minutes(1)});
  const std::uint64_t empty = limits.figures().bytes;
  EXPECT_FALSE(limits.try_acquire("u", 11, at(kStart)).allowed);
  EXPECT_EQ(limits.figures().keys, 0U);
  EXPECT_EQ(limits.figures().bytes, empty);
  EXPECT_TRUE(limits.try_acquire("u", 10, at(kStart)).allowed);
}

TEST(KeyedPublicReports, public_report_13_MixedCosts) {
  Keyed<SlidingLog> limits({.rate = 10, .period = minutes(1)});
  EXPECT_TRUE(limits.try_acquire("u", 8, at(kStart)).allowed);
  EXPECT_FALSE(limits.try_acquire("u", 3, at(kStart)).allowed);
  EXPECT_TRUE(limits.try_acquire("u", 2, at(kStart)).allowed);
}

TEST(KeyedPublicReports, public_report_14_AMillionASecondAfterTwelveHours) {
  Keyed<TokenBucket> limits({.rate = 1'000'000, .burst = 1'000'000});
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart)).allowed);
  const Decision later = limits.try_acquire("u", 1, at(kStart + 12 * 3'600 * kSecond));
  EXPECT_TRUE(later.allowed);
  EXPECT_EQ(later.remaining, 999'999U);
}

TEST(KeyedPublicReports, public_report_15_RateZeroIsSpentOnceAndNotForgotten) {
  Keyed<TokenBucket> limits({.rate = 0, .burst = 1}, {.max_keys = 100});
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart)).allowed);
  for (std::int64_t i = 1; i < 1'000; ++i) {
    const Decision denied = limits.try_acquire("u", 1, at(kStart + i * 3'600 * kSecond));
    ASSERT_FALSE(denied.allowed);
    ASSERT_TRUE(denied.retry_after.is_never());
  }
  EXPECT_EQ(limits.figures().keys, 1U);
}

TEST(KeyedPublicReports, public_report_17_ARefusalMovesNothing) {
  Keyed<TokenBucket> limits({.rate = 0, .burst = 10});
  EXPECT_TRUE(limits.try_acquire("u", 4, at(kStart)).allowed);
  EXPECT_FALSE(limits.try_acquire("u", 7, at(kStart)).allowed);
  EXPECT_EQ(limits.try_acquire("u", 6, at(kStart)).remaining, 0U);
}

TEST(KeyedPublicReports, public_report_23_IdlingEarnsNoExtra) {
  Keyed<TokenBucket> limits({.rate = 5, .burst = 5});
  for (const std::int64_t now : {kStart, kStart + 2 * kSecond}) {
    for (int i = 0; i < 6; ++i) EXPECT_EQ(limits.try_acquire("u", 1, at(now)).allowed, i < 5);
  }
}

TEST(KeyedPublicReports, public_report_24_StartsFullWhateverTheUptime) {
  for (const std::int64_t now : {std::int64_t{0}, kSecond, kStart, -kStart}) {
    Keyed<TokenBucket> limits({.rate = 1, .period = seconds(10'000), .burst = 1});
    const Decision first = limits.try_acquire("u", 1, at(now));
    EXPECT_TRUE(first.allowed) << now;
    EXPECT_EQ(first.retry_after, Wait()) << now;
  }
}

TEST(KeyedPublicReports, public_report_25_OnePerTenSeconds) {
  Keyed<SlidingWindow> limits({.rate = 1, .period = seconds(10)});
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart)).allowed);
  EXPECT_FALSE(limits.try_acquire("u", 1, at(kStart)).allowed);
}

TEST(KeyedPublicReports, public_report_28_RefusalsDoNotStarve) {
  Keyed<TokenBucket> limits({.rate = 1, .burst = 1});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(limits.try_acquire("u", 1, at(kStart + i * (kSecond / 10))).allowed, i % 10 == 0) << i;
  }
}

TEST(KeyedPublicReports, public_report_29_WindowsOfHalfASecond) {
  Keyed<FixedWindow> limits({.rate = 2, .period = milliseconds(500)});
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart)).allowed);
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart)).allowed);
  EXPECT_FALSE(limits.try_acquire("u", 1, at(kStart)).allowed);
  EXPECT_TRUE(limits.try_acquire("u", 1, at(kStart + kSecond / 2)).allowed);
}

TEST(KeyedPublicReports, public_report_30_CallsWithinOneInstantAllCount) {
  Keyed<SlidingLog> limits({.rate = 10, .period = minutes(1)});
  int allowed = 0;
  for (int i = 0; i < 20; ++i) allowed += limits.try_acquire("u", 1, at(kStart + i * 50'000)).allowed ? 1 : 0;
  for (int i = 0; i < 20; ++i) allowed += limits.try_acquire("v", 1, at(kStart)).allowed ? 1 : 0;
  EXPECT_EQ(allowed, 20);
  EXPECT_EQ(limits.peek("u", 0, at(kStart + 60 * kSecond - 1)).remaining, 0U);
}

}  // namespace
}  // namespace sluice
