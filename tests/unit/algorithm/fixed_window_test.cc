#include "algorithm/fixed_window.h"

#include <gtest/gtest.h>

#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

FixedWindow window(std::uint64_t rate, std::int64_t period, Align align = Align::epoch, bool count_denied = false) {
  return FixedWindow({.rate = rate, .period = period, .align = align, .count_denied = count_denied});
}

TEST(FixedWindow, CountsToTheRateAndMarksTheLastToken) {
  const FixedWindow limit = window(3, kMinute);
  FixedWindow::State state;
  EXPECT_EQ(limit.decide(state, kStart + kSecond, 1).verdict.mark, Mark::none);
  EXPECT_EQ(limit.decide(state, kStart + kSecond, 1).verdict.mark, Mark::none);
  const Outcome last = limit.decide(state, kStart + kSecond, 1);
  EXPECT_EQ(last.verdict.mark, Mark::quota_hit);
  EXPECT_EQ(last.view.remaining, 0U);
  EXPECT_EQ(last.view.reset_after, 59 * kSecond);
  const Outcome denied = limit.decide(state, kStart + 2 * kSecond, 1);
  EXPECT_FALSE(denied.verdict.fits);
  EXPECT_EQ(denied.verdict.mark, Mark::over_quota);
  EXPECT_EQ(denied.verdict.retry_after, 58 * kSecond);
  EXPECT_FALSE(limit.judge(state, kStart + kMinute - 1, 1).fits);
  EXPECT_TRUE(limit.judge(state, kStart + kMinute, 3).fits);
}

TEST(FixedWindow, EpochWindowsBeforeTheEpoch) {
  const FixedWindow limit = window(1, kMinute);
  FixedWindow::State state;
  EXPECT_EQ(limit.decide(state, -kSecond, 1).view.reset_after, kSecond);
  EXPECT_FALSE(limit.judge(state, -1, 1).fits);
  EXPECT_TRUE(limit.judge(state, 0, 1).fits);
}

TEST(FixedWindow, AnEmptyWindowEndsToo) {
  const FixedWindow limit = window(5, kMinute);
  const FixedWindow::State state;
  EXPECT_EQ(limit.view(state, kStart + kSecond).reset_after, 59 * kSecond);
}

TEST(FixedWindow, FirstHitOpensTheWindow) {
  const FixedWindow limit = window(2, kMinute, Align::first_hit);
  FixedWindow::State state;
  EXPECT_EQ(limit.view(state, 5).reset_after, 0);
  EXPECT_EQ(limit.decide(state, kStart + 7, 1).view.reset_after, kMinute);
  EXPECT_EQ(limit.decide(state, kStart + 7 + kMinute - 1, 1).view.reset_after, 1);
  EXPECT_EQ(limit.decide(state, kStart + 7 + kMinute - 1, 1).verdict.retry_after, 1);
  EXPECT_EQ(limit.decide(state, kStart + 7 + kMinute, 1).view.reset_after, kMinute);
}

TEST(FixedWindow, CostAboveTheRateNeverFits) {
  const FixedWindow limit = window(2, kMinute);
  FixedWindow::State state;
  const Verdict verdict = limit.decide(state, kStart, 3).verdict;
  EXPECT_EQ(verdict.retry_after, kNever);
  EXPECT_EQ(verdict.mark, Mark::over_quota);
  EXPECT_EQ(state, FixedWindow::State{});
  EXPECT_EQ(window(0, kMinute).judge(state, kStart, 1).retry_after, kNever);
  EXPECT_TRUE(window(0, kMinute).judge(state, kStart, 0).fits);
}

TEST(FixedWindow, CountsDeniedChargesWhenAsked) {
  const FixedWindow limit = window(2, kMinute, Align::epoch, true);
  FixedWindow::State state;
  EXPECT_FALSE(limit.decide(state, kStart, 3).verdict.fits);
  EXPECT_EQ(state.count, 3U);
  EXPECT_FALSE(limit.decide(state, kStart, 1).verdict.fits);
  for (int i = 0; i < 3; ++i) limit.count_denied(state, kStart, kMaxTokens);
  EXPECT_EQ(state.count, kMaxTokens + 2);
  EXPECT_TRUE(limit.decide(state, kStart + kMinute, 1).verdict.fits);
}

TEST(FixedWindow, RefundKnowsWhenItsChargeIsOver) {
  const FixedWindow limit = window(5, kMinute);
  FixedWindow::State state;
  limit.take(state, kStart, 3);
  limit.take(state, kStart + kMinute, 2);
  limit.refund(state, kStart + kMinute, 1, kStart);
  EXPECT_EQ(state.count, 2U);
  limit.refund(state, kStart + kMinute, 1, kStart + kMinute);
  EXPECT_EQ(state.count, 1U);
  limit.refund(state, kStart + kMinute, 9);
  EXPECT_EQ(state.count, 0U);
}

TEST(FixedWindow, DebtEndsWithItsWindow) {
  const FixedWindow limit = window(5, kMinute);
  FixedWindow::State state;
  limit.settle(state, kStart, 1, 101);
  EXPECT_EQ(limit.view(state, kStart).remaining, 0U);
  EXPECT_EQ(limit.judge(state, kStart, 5).retry_after, kMinute);
  limit.penalize(state, kStart, 1);
  EXPECT_EQ(state.count, 100U);
  EXPECT_EQ(limit.view(state, kStart + kMinute).remaining, 5U);
  limit.penalize(state, kStart + kMinute, 100);
  EXPECT_EQ(state.count, 10U);
}

TEST(FixedWindow, OlderNowIsAnsweredAsTheNewestTime) {
  const FixedWindow limit = window(1, kMinute);
  FixedWindow::State state;
  EXPECT_TRUE(limit.decide(state, kStart, 1).verdict.fits);
  EXPECT_EQ(limit.decide(state, kStart - 1, 1).verdict.retry_after, kMinute);
}

TEST(FixedWindow, NewRateKeepsTheCountNewWindowsStartAnew) {
  FixedWindow::State state;
  window(5, kMinute).take(state, kStart, 4);
  window(3, kMinute).convert(state, window(5, kMinute), kStart);
  EXPECT_EQ(state.count, 4U);
  window(3, kHour).convert(state, window(3, kMinute), kStart);
  EXPECT_EQ(state, FixedWindow::State{});
  window(5, kMinute).take(state, kStart, 4);
  window(5, kMinute, Align::first_hit).convert(state, window(5, kMinute), kStart);
  EXPECT_EQ(state, FixedWindow::State{});
}

TEST(FixedWindow, ExpiresWithItsWindow) {
  const FixedWindow limit = window(5, kMinute);
  FixedWindow::State state;
  EXPECT_TRUE(limit.is_initial(state, kStart));
  EXPECT_LE(limit.expires_at(state), kStart);
  limit.take(state, kStart + 7, 1);
  EXPECT_EQ(limit.expires_at(state), kStart + kMinute);
  EXPECT_FALSE(limit.is_initial(state, kStart + kMinute - 1));
  EXPECT_TRUE(limit.is_initial(state, kStart + kMinute));
  limit.refund(state, kStart + 8, 1);
  EXPECT_TRUE(limit.is_initial(state, kStart + 8));
  const FixedWindow first_hit = window(5, kMinute, Align::first_hit);
  FixedWindow::State open;
  first_hit.take(open, kStart + 7, 1);
  first_hit.refund(open, kStart + 8, 1);
  EXPECT_FALSE(first_hit.is_initial(open, kStart + 8));
  EXPECT_EQ(first_hit.expires_at(open), kStart + 7 + kMinute);
}

}  // namespace
}  // namespace sluice::algorithm
