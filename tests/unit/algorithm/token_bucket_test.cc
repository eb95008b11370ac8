#include "algorithm/token_bucket.h"

#include <gtest/gtest.h>

#include "sluice/limit.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

TokenBucket bucket(std::uint64_t rate, std::int64_t period, std::uint64_t burst) {
  return TokenBucket(rate, period, burst, Tick::nanosecond);
}

TEST(TokenBucket, ThirtyAtOnceThenOneEveryTenth) {
  const TokenBucket limit = bucket(10, kSecond, 30);
  TokenBucket::State state;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const Outcome outcome = limit.decide(state, kStart, 1);
    EXPECT_TRUE(outcome.verdict.fits);
    EXPECT_EQ(outcome.verdict.retry_after, 0);
    EXPECT_EQ(outcome.view.remaining, 29 - i);
  }
  const Outcome denied = limit.decide(state, kStart, 1);
  EXPECT_FALSE(denied.verdict.fits);
  EXPECT_EQ(denied.verdict.retry_after, 100 * kMillisecond);
  EXPECT_EQ(denied.view.reset_after, 3 * kSecond);
  EXPECT_EQ(denied.view.remaining, 0U);
  EXPECT_EQ(denied.view.limit, 30U);
  EXPECT_FALSE(limit.decide(state, kStart + 100 * kMillisecond - 1, 1).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kStart + 100 * kMillisecond, 1).verdict.fits);
  EXPECT_FALSE(limit.decide(state, kStart + 100 * kMillisecond, 1).verdict.fits);
}

TEST(TokenBucket, DenialAndCostZeroLeaveTheStateAsItWas) {
  const TokenBucket limit = bucket(3, kSecond, 4);
  TokenBucket::State state;
  limit.take(state, kStart, 3);
  const TokenBucket::State before = state;
  EXPECT_FALSE(limit.decide(state, kStart + 5, 2).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kStart + 5, 0).verdict.fits);
  EXPECT_EQ(limit.decide(state, kStart + 5, 5).verdict.retry_after, kNever);
  EXPECT_EQ(state, before);
}

TEST(TokenBucket, OlderNowIsAnsweredAsTheNewestTime) {
  const TokenBucket limit = bucket(10, kSecond, 1);
  TokenBucket::State state;
  EXPECT_TRUE(limit.decide(state, kStart, 1).verdict.fits);
  EXPECT_EQ(limit.decide(state, kStart - kHour, 1).verdict.retry_after, 100 * kMillisecond);
  EXPECT_FALSE(limit.decide(state, kStart + 99 * kMillisecond, 1).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kStart + 100 * kMillisecond, 1).verdict.fits);
}

TEST(TokenBucket, NegativeAndExtremeTimes) {
  const TokenBucket limit = bucket(10, kSecond, 2);
  TokenBucket::State state;
  EXPECT_TRUE(limit.decide(state, -kLatest, 2).verdict.fits);
  EXPECT_FALSE(limit.decide(state, -kLatest, 1).verdict.fits);
  EXPECT_TRUE(limit.decide(state, kLatest, 2).verdict.fits);
  EXPECT_FALSE(limit.decide(state, kLatest, 1).verdict.fits);
  EXPECT_EQ(limit.view(state, kLatest).reset_after, 200 * kMillisecond);
}

TEST(TokenBucket, LargestNumbersStayExact) {
  const TokenBucket limit = bucket(1, 366 * kDay, kMaxTokens);
  TokenBucket::State state;
  const Outcome all = limit.decide(state, kStart, kMaxTokens);
  EXPECT_TRUE(all.verdict.fits);
  EXPECT_EQ(all.view.reset_after, longest_wait(Tick::nanosecond));
  EXPECT_EQ(limit.judge(state, kStart, 1).retry_after, 366 * kDay);
  EXPECT_FALSE(limit.judge(state, kStart + 366 * kDay - 1, 1).fits);
  EXPECT_TRUE(limit.judge(state, kStart + 366 * kDay, 1).fits);
  EXPECT_EQ(limit.judge(state, kStart, kMaxTokens + 1).retry_after, kNever);
  EXPECT_EQ(limit.judge(state, kStart, UINT64_MAX).retry_after, kNever);
  limit.settle(state, kStart, 0, kMaxTokens);
  EXPECT_EQ(limit.view(state, kStart).remaining, 0U);
  limit.settle(state, kStart, kMaxTokens, 0);
  EXPECT_EQ(limit.view(state, kStart).remaining, 0U);
  limit.refund(state, kStart, 7);
  EXPECT_EQ(limit.view(state, kStart).remaining, 7U);
}

TEST(TokenBucket, FastestRefill) {
  const TokenBucket limit = bucket(kMaxRate, kMicrosecond, kMaxTokens);
  TokenBucket::State state;
  EXPECT_TRUE(limit.decide(state, kStart, kMaxTokens).verdict.fits);
  EXPECT_EQ(limit.view(state, kStart).reset_after, 1'000'000);
  EXPECT_EQ(limit.view(state, kStart + 1).remaining, 1'000'000'000U);
}

TEST(TokenBucket, RefundPaysADebtFirstAndStopsAtFull) {
  const TokenBucket limit = bucket(1, kSecond, 10);
  TokenBucket::State state;
  limit.refund(state, kStart, 5);
  EXPECT_EQ(state, TokenBucket::State{});
  limit.settle(state, kStart, 0, 14);
  EXPECT_EQ(limit.judge(state, kStart, 1).retry_after, 5 * kSecond);
  limit.refund(state, kStart, 5);
  EXPECT_EQ(limit.view(state, kStart).remaining, 1U);
  limit.refund(state, kStart, 100);
  EXPECT_EQ(limit.view(state, kStart).remaining, 10U);
  EXPECT_TRUE(limit.is_initial(state, kStart));
}

TEST(TokenBucket, PenaltyGoesIntoDebtAtMostTheBurstDeep) {
  const TokenBucket limit = bucket(1, kSecond, 10);
  TokenBucket::State state;
  limit.penalize(state, kStart, 1'000);
  EXPECT_EQ(limit.view(state, kStart).reset_after, 20 * kSecond);
  limit.settle(state, kStart, 0, 5);
  limit.penalize(state, kStart, 1);
  EXPECT_EQ(limit.view(state, kStart).reset_after, 25 * kSecond);
}

TEST(TokenBucket, NewNumbersKeepTokensAndDebts) {
  const TokenBucket slow = bucket(1, kSecond, 10);
  const TokenBucket fast = bucket(3, kSecond, 100);
  const TokenBucket small = bucket(1, kSecond, 2);
  TokenBucket::State state;
  slow.take(state, kStart, 4);
  fast.convert(state, slow, kStart + kSecond / 2);
  EXPECT_EQ(fast.view(state, kStart + kSecond / 2).remaining, 6U);
  // Six and a half tokens: the half that was earned at the old rate stays.
  EXPECT_EQ(fast.judge(state, kStart + kSecond / 2, 7).retry_after, (kSecond / 2 + 2) / 3);
  small.convert(state, fast, kStart + kSecond / 2);
  EXPECT_EQ(small.view(state, kStart + kSecond / 2).remaining, 2U);
  TokenBucket::State debt;
  slow.settle(debt, kStart, 0, 15);
  fast.convert(debt, slow, kStart);
  EXPECT_EQ(fast.judge(debt, kStart, 1).retry_after, 2 * kSecond);
}

TEST(TokenBucket, AFullBucketStaysFullUnderNewNumbers) {
  const TokenBucket small = bucket(1, kSecond, 2);
  const TokenBucket large = bucket(1, kSecond, 20);
  TokenBucket::State state;
  small.take(state, kStart, 2);
  large.convert(state, small, kStart + 2 * kSecond);
  EXPECT_EQ(large.view(state, kStart + 2 * kSecond).remaining, 20U);
  TokenBucket::State fresh;
  large.convert(fresh, small, kStart);
  EXPECT_EQ(fresh, TokenBucket::State{});
}

TEST(TokenBucket, SameNumbersChangeNothing) {
  const TokenBucket limit = bucket(3, kSecond, 4);
  TokenBucket::State state;
  limit.take(state, kStart, 2);
  const TokenBucket::State before = state;
  limit.convert(state, bucket(3, kSecond, 4), kStart + 77);
  EXPECT_EQ(state, before);
}

TEST(TokenBucket, ExpiresWhenFull) {
  const TokenBucket limit = bucket(10, kSecond, 30);
  TokenBucket::State state;
  EXPECT_TRUE(limit.is_initial(state, kStart));
  EXPECT_LE(limit.expires_at(state), kStart);
  limit.take(state, kStart, 2);
  EXPECT_EQ(limit.expires_at(state), kStart + 200 * kMillisecond);
  EXPECT_FALSE(limit.is_initial(state, kStart + 200 * kMillisecond - 1));
  EXPECT_TRUE(limit.is_initial(state, kStart + 200 * kMillisecond));
  const TokenBucket once = bucket(0, kSecond, 1);
  TokenBucket::State spent;
  once.take(spent, kStart, 1);
  EXPECT_EQ(once.expires_at(spent), kNever);
  EXPECT_EQ(once.view(spent, kStart).reset_after, kNever);
}

TEST(TokenBucket, MicrosecondTicksGiveTheSameAnswers) {
  const TokenBucket limit(10, 1'000'000, 30, Tick::microsecond);
  TokenBucket::State state;
  EXPECT_TRUE(limit.decide(state, kNewYear / 1'000, 30).verdict.fits);
  EXPECT_EQ(limit.judge(state, kNewYear / 1'000, 1).retry_after, 100'000);
}

}  // namespace
}  // namespace sluice::algorithm
