#include "algorithm/leaky_bucket.h"

#include <gtest/gtest.h>

#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

TEST(LeakyBucket, QueuesTwoBehindTheFirst) {
  const LeakyBucket limit(10, kSecond, 2, Tick::nanosecond);
  LeakyBucket::State state;
  for (const std::int64_t delay : {0, 100, 200}) {
    const Verdict verdict = limit.decide(state, kStart, 1).verdict;
    EXPECT_TRUE(verdict.fits);
    EXPECT_EQ(verdict.delay, delay * kMillisecond);
  }
  const Outcome denied = limit.decide(state, kStart, 1);
  EXPECT_FALSE(denied.verdict.fits);
  EXPECT_EQ(denied.verdict.retry_after, 100 * kMillisecond);
  EXPECT_EQ(denied.view.limit, 3U);
}

TEST(LeakyBucket, CostTakesSlotsInARow) {
  const LeakyBucket limit(10, kSecond, 4, Tick::nanosecond);
  LeakyBucket::State state;
  EXPECT_EQ(limit.decide(state, kStart, 3).verdict.delay, 0);
  EXPECT_EQ(limit.judge(state, kStart, 0).delay, 300 * kMillisecond);
  EXPECT_EQ(limit.decide(state, kStart, 1).verdict.delay, 300 * kMillisecond);
  EXPECT_FALSE(limit.judge(state, kStart, 2).fits);
}

TEST(LeakyBucket, NothingLeavesFasterThanTheRate) {
  const LeakyBucket limit(3, kSecond, 1'000, Tick::nanosecond);
  LeakyBucket::State state;
  for (std::int64_t i = 0; i < 1'000; ++i) {
    // The i-th slot is at i/3 s exactly; only what is shown is rounded up.
    EXPECT_EQ(limit.decide(state, kStart, 1).verdict.delay, (i * kSecond + 2) / 3);
  }
}

TEST(LeakyBucket, GivesNothingBack) {
  const LeakyBucket limit(10, kSecond, 2, Tick::nanosecond);
  LeakyBucket::State state;
  limit.take(state, kStart, 3);
  const LeakyBucket::State before = state;
  limit.refund(state, kStart, 3);
  limit.settle(state, kStart, 3, 0);
  EXPECT_EQ(state, before);
}

TEST(LeakyBucket, NewNumbersKeepTheBacklog) {
  const LeakyBucket old(3, kSecond, 9, Tick::nanosecond);
  const LeakyBucket fast(1'000, kSecond, 9, Tick::nanosecond);
  LeakyBucket::State state;
  old.take(state, kStart, 1);
  fast.convert(state, old, kStart);
  EXPECT_EQ(fast.judge(state, kStart, 0).delay, (kSecond + 2) / 3);
  EXPECT_FALSE(fast.judge(state, kStart, 1).fits);
}

}  // namespace
}  // namespace sluice::algorithm
