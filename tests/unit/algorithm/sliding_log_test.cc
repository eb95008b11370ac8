#include "algorithm/sliding_log.h"

#include <gtest/gtest.h>

#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

TEST(SlidingLog, AnEntryCountsForExactlyThePeriod) {
  const SlidingLog limit(2, kMinute);
  SlidingLog::State state;
  EXPECT_TRUE(limit.decide(state, kStart, 1).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kStart + 10 * kSecond, 1).verdict.fits);
  EXPECT_EQ(limit.judge(state, kStart + 10 * kSecond, 2).retry_after, kMinute);
  EXPECT_EQ(limit.judge(state, kStart + 10 * kSecond, 1).retry_after, 50 * kSecond);
  EXPECT_FALSE(limit.judge(state, kStart + kMinute - 1, 1).fits);
  EXPECT_TRUE(limit.judge(state, kStart + kMinute, 1).fits);
  EXPECT_EQ(limit.view(state, kStart + kMinute).reset_after, 10 * kSecond);
}

TEST(SlidingLog, RefundTakesTheNewestFirst) {
  const SlidingLog limit(10, kMinute);
  SlidingLog::State state;
  limit.take(state, kStart, 4);
  limit.take(state, kStart + 1, 3);
  limit.refund(state, kStart + 2, 5);
  EXPECT_EQ(limit.view(state, kStart + 2).remaining, 8U);
  EXPECT_EQ(limit.view(state, kStart + 2).reset_after, kMinute - 2);
  limit.refund(state, kStart + kMinute, 1, kStart);
  limit.refund(state, kStart + 3, 100);
  EXPECT_TRUE(limit.is_initial(state, kStart + 3));
}

TEST(SlidingLog, KeepsNoMoreThanIsLive) {
  const SlidingLog limit(1'000, kSecond);
  SlidingLog::State state;
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(limit.decide(state, kStart + i, 1).verdict.fits);
  EXPECT_GE(state.memory(), 16'000U);
  std::size_t most = 0;
  for (int i = 1; i <= 100'000; ++i) {
    ASSERT_TRUE(limit.decide(state, kStart + 2 * kSecond + i * kMillisecond * 2, 1).verdict.fits);
    most = std::max(most, state.memory());
  }
  EXPECT_LE(most, 16'000U * 4);
  limit.take(state, kStart + kHour, 1);
  limit.take(state, kStart + 2 * kHour, 1);
  EXPECT_LE(state.memory(), 1'024U);
}

TEST(SlidingLog, WhatHasLeftDoesNotComeBackWithALongerPeriod) {
  const SlidingLog minute(10, kMinute);
  const SlidingLog hour(10, kHour);
  SlidingLog::State state;
  minute.take(state, kStart, 4);
  minute.take(state, kStart + kMinute - 1, 2);
  hour.convert(state, minute, kStart + kMinute);
  EXPECT_EQ(hour.view(state, kStart + kMinute).remaining, 8U);
  EXPECT_EQ(hour.expires_at(state), kStart + kMinute - 1 + kHour);
}

TEST(SlidingLog, TotalsMayWrap) {
  // Always at least one entry alive, so that the running total is never set back to 0.
  const SlidingLog limit(1'000'000'000'000, kSecond);
  SlidingLog::State state;
  constexpr std::uint64_t kHuge = 900'000'000'000'000;
  for (std::int64_t i = 0; i < 50'000; ++i) {
    const std::int64_t now = kStart + i * (kSecond - 1);
    limit.settle(state, now, 0, kHuge);
    ASSERT_EQ(limit.view(state, now).remaining, 0U);
    limit.refund(state, now, kHuge - 1);
    ASSERT_GE(limit.view(state, now).remaining, 999'999'999'998U);
  }
}

}  // namespace
}  // namespace sluice::algorithm
