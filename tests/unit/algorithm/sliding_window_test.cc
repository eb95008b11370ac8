#include "algorithm/sliding_window.h"

#include <gtest/gtest.h>

#include "sluice/limit.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

TEST(SlidingWindow, WeighsTheWindowBefore) {
  const SlidingWindow limit(10, kMinute, 1);
  SlidingWindow::State state;
  EXPECT_TRUE(limit.decide(state, kStart + 59 * kSecond, 10).verdict.fits);
  // A quarter of the next minute is over: three quarters of ten still count.
  EXPECT_EQ(limit.view(state, kStart + 75 * kSecond).remaining, 2U);
  EXPECT_TRUE(limit.judge(state, kStart + 75 * kSecond, 2).fits);
  EXPECT_EQ(limit.judge(state, kStart + 75 * kSecond, 3).retry_after, 3 * kSecond);
  EXPECT_EQ(limit.view(state, kStart + 75 * kSecond).reset_after, 45 * kSecond);
  EXPECT_EQ(limit.view(state, kStart + 2 * kMinute).remaining, 10U);
}

TEST(SlidingWindow, ASkippedWindowLeavesNothing) {
  const SlidingWindow limit(10, kMinute, 1);
  SlidingWindow::State state;
  limit.take(state, kStart, 10);
  EXPECT_EQ(limit.decide(state, kStart + 2 * kMinute, 1).view.remaining, 9U);
}

TEST(SlidingWindow, SlotsAreExactToOneSlot) {
  const SlidingWindow limit(10, kMinute, 6);
  SlidingWindow::SlottedState state;
  EXPECT_TRUE(limit.decide(state, kStart, 4).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kStart + 10 * kSecond, 6).verdict.fits);
  EXPECT_EQ(limit.judge(state, kStart + 20 * kSecond, 1).retry_after, 42'500 * kMillisecond);
  EXPECT_FALSE(limit.judge(state, kStart + 62'500 * kMillisecond - 1, 1).fits);
  EXPECT_TRUE(limit.judge(state, kStart + 62'500 * kMillisecond, 1).fits);
  EXPECT_EQ(limit.judge(state, kStart + 20 * kSecond, 5).retry_after, 51'666'666'667);
}

TEST(SlidingWindow, AThousandSlots) {
  const SlidingWindow limit(1'000, kSecond, 1'000);
  SlidingWindow::SlottedState state;
  for (int ms = 0; ms < 1'000; ++ms) ASSERT_TRUE(limit.decide(state, kStart + ms * kMillisecond, 1).verdict.fits);
  EXPECT_EQ(limit.judge(state, kStart + 999 * kMillisecond, 1).retry_after, 2 * kMillisecond);
  EXPECT_EQ(limit.judge(state, kStart + 999 * kMillisecond, 1'000).retry_after, kSecond + kMillisecond);
}

TEST(SlidingWindow, NothingIsRoundedInTheComparison) {
  // 3 × (1 − 1/3·…): the estimate is a fraction above 2 until the very tick at which it is 2.
  const SlidingWindow limit(3, 7'000, 1);
  SlidingWindow::State state;
  limit.take(state, 0, 3);
  const std::int64_t retry = limit.judge(state, 7'000, 1).retry_after;
  EXPECT_EQ(retry, 2'334);
  EXPECT_FALSE(limit.judge(state, 7'000 + 2'333, 1).fits);
  EXPECT_TRUE(limit.judge(state, 7'000 + 2'334, 1).fits);
}

TEST(SlidingWindow, GivesTheNewestTokensBackFirst) {
  const SlidingWindow limit(10, kMinute, 1);
  SlidingWindow::State state;
  limit.take(state, kStart, 4);
  limit.take(state, kStart + kMinute, 3);
  limit.refund(state, kStart + kMinute, 5);
  EXPECT_EQ(limit.view(state, kStart + kMinute).remaining, 8U);
  EXPECT_EQ(limit.view(state, kStart + kMinute).reset_after, kMinute);
  limit.refund(state, kStart + 2 * kMinute, 5, kStart);
  EXPECT_EQ(limit.view(state, kStart + 2 * kMinute).remaining, 10U);
}

TEST(SlidingWindow, DebtLeavesWithItsSlot) {
  const SlidingWindow limit(10, kMinute, 1);
  SlidingWindow::State state;
  limit.penalize(state, kStart, 1'000);
  EXPECT_EQ(limit.judge(state, kStart, 10).retry_after, 2 * kMinute);
  EXPECT_EQ(limit.judge(state, kStart, 1).retry_after, kMinute + 33 * kSecond);
  limit.settle(state, kStart, 0, kMaxTokens);
  EXPECT_EQ(limit.view(state, kStart).remaining, 0U);
  EXPECT_EQ(limit.view(state, kStart + 2 * kMinute).remaining, 10U);
}

TEST(SlidingWindow, NewRateKeepsTheCountsNewSlotsStartAnew) {
  SlidingWindow::SlottedState state;
  const SlidingWindow six(10, kMinute, 6);
  six.take(state, kStart, 4);
  SlidingWindow(5, kMinute, 6).convert(state, six, kStart);
  EXPECT_EQ(SlidingWindow(5, kMinute, 6).view(state, kStart).remaining, 1U);
  SlidingWindow(5, kMinute, 3).convert(state, six, kStart);
  EXPECT_EQ(state, SlidingWindow::SlottedState{});
}

}  // namespace
}  // namespace sluice::algorithm
