// wait: in threads, by a simulated clock, so that nothing sleeps to be right.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/leaky_bucket.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"
#include "tests/unit/waiting/standing.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class WaitTest : public ::testing::Test {
 protected:
  std::int64_t since_start() const { return clock_.now().steady - start_; }

  SimulatedClock clock_;
  std::int64_t start_ = clock_.now().steady;
};

TEST_F(WaitTest, GrantsAtOnceWhatIsThere) {
  TokenBucket bucket({.rate = 10, .period = 1s, .burst = 2}, &clock_);
  const WaitResult result = bucket.wait();
  EXPECT_EQ(result.outcome, WaitOutcome::granted);
  EXPECT_EQ(result.decision.remaining, 1U);
  EXPECT_EQ(result.ready_at, start_);
}

TEST_F(WaitTest, GrantsInOrderForTheExactInstants) {
  TokenBucket bucket({.rate = 3, .period = 1s, .burst = 2}, &clock_);
  std::vector<Standing> line(6);
  for (Standing& one : line) one.join(bucket);
  EXPECT_TRUE(line[1].granted());
  EXPECT_FALSE(line[2].done());
  clock_.advance(333'333'333ns);
  EXPECT_FALSE(line[2].done());
  clock_.advance(1ns);
  ASSERT_TRUE(line[2].granted());
  EXPECT_EQ(line[2].result().ready_at, start_ + 333'333'334);
  EXPECT_FALSE(line[3].done());
  clock_.advance(10s);  // far too late: they are granted for their instants all the same
  ASSERT_TRUE(line[5].granted());
  EXPECT_EQ(line[3].result().ready_at, start_ + 666'666'667);
  EXPECT_EQ(line[4].result().ready_at, start_ + 1'000'000'000);
  EXPECT_EQ(line[5].result().ready_at, start_ + 1'333'333'334);
}

TEST_F(WaitTest, NobodyOvertakes) {
  TokenBucket bucket({.rate = 1, .period = 1s, .burst = 5}, &clock_);
  ASSERT_TRUE(bucket.try_acquire(5).allowed);
  Standing large;
  Standing small;
  large.join(bucket, 5);
  small.join(bucket, 1);
  clock_.advance(4s);
  EXPECT_FALSE(bucket.try_acquire(1).allowed);
  EXPECT_FALSE(small.done());
  clock_.advance(1s);
  EXPECT_TRUE(large.granted());
  EXPECT_FALSE(small.done());
  EXPECT_FALSE(bucket.try_acquire(1).allowed);
  clock_.advance(1s);
  EXPECT_TRUE(small.granted());
}

TEST_F(WaitTest, ADeadlineIsExactToTheNanosecond) {
  TokenBucket bucket({.rate = 3, .period = 1s, .burst = 1}, &clock_);
  ASSERT_TRUE(bucket.try_acquire().allowed);
  const Decision before = bucket.peek();
  Standing late;
  late.join(bucket, 1, Deadline(333'333'333ns));
  ASSERT_TRUE(late.done());
  EXPECT_EQ(late.result().outcome, WaitOutcome::deadline);
  EXPECT_EQ(late.result().decision.retry_after, Wait(333'333'334ns));
  EXPECT_EQ(bucket.peek().retry_after, before.retry_after);  // nothing was taken
  Standing in_time;
  in_time.join(bucket, 1, Deadline(Time{.steady = start_ + 333'333'334, .utc = 0}));
  EXPECT_FALSE(in_time.done());
  Standing second;
  second.join(bucket, 1, Deadline(666'666'667ns));
  EXPECT_TRUE(second.done());  // the bucket is full for two thirds of a nanosecond before the first is granted
  second.join(bucket, 1, Deadline(666'666'668ns));
  clock_.advance(333'333'334ns);
  EXPECT_TRUE(in_time.granted());
  clock_.advance(333'333'334ns);
  EXPECT_TRUE(second.granted());
}

TEST_F(WaitTest, ADeadlineThatHasPassedIsTooNear) {
  TokenBucket bucket({.rate = 3, .period = 1s, .burst = 1}, &clock_);
  EXPECT_EQ(bucket.wait(1, -1ns).outcome, WaitOutcome::deadline);
  EXPECT_EQ(bucket.peek(0).remaining, 1U);
  EXPECT_EQ(bucket.wait(1, 0ns).outcome, WaitOutcome::granted);
}

TEST_F(WaitTest, NeverIsToldAtOnce) {
  TokenBucket bucket({.rate = 3, .period = 1s, .burst = 2}, &clock_);
  EXPECT_EQ(bucket.wait(3).outcome, WaitOutcome::never);
  EXPECT_TRUE(bucket.wait(3).decision.retry_after.is_never());
  EXPECT_EQ(bucket.peek(0).remaining, 2U);
  TokenBucket still({.rate = 0, .period = 1s, .burst = 1}, &clock_);
  EXPECT_EQ(still.wait().outcome, WaitOutcome::granted);
  EXPECT_EQ(still.wait().outcome, WaitOutcome::never);
}

TEST_F(WaitTest, OneWhoLeavesGivesBackExactlyAndThoseBehindMoveUp) {
  TokenBucket bucket({.rate = 1, .period = 1s, .burst = 3}, &clock_);
  ASSERT_TRUE(bucket.try_acquire(3).allowed);
  std::vector<Standing> line(3);
  line[0].join(bucket, 2);
  line[1].join(bucket, 3);
  line[2].join(bucket, 1);
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(9s));
  EXPECT_TRUE(line[1].leave(bucket));
  EXPECT_EQ(line[1].result().outcome, WaitOutcome::stopped);
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(6s));
  EXPECT_FALSE(line[1].leave(bucket));
  EXPECT_TRUE(line[0].leave(bucket));
  clock_.advance(999'999'999ns);
  EXPECT_FALSE(line[2].done());
  clock_.advance(1ns);
  EXPECT_TRUE(line[2].granted());
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(3s));
}

TEST_F(WaitTest, VerbsMoveThoseWhoWait) {
  TokenBucket bucket({.rate = 1, .period = 1s, .burst = 3}, &clock_);
  ASSERT_TRUE(bucket.try_acquire(3).allowed);
  std::vector<Standing> line(4);
  line[0].join(bucket, 1);
  line[1].join(bucket, 1);
  bucket.refund(1);
  EXPECT_TRUE(line[0].granted());
  EXPECT_FALSE(line[1].done());
  bucket.penalize(2);
  clock_.advance(2'999'999'999ns);
  EXPECT_FALSE(line[1].done());
  clock_.advance(1ns);
  EXPECT_TRUE(line[1].granted());
  line[2].join(bucket, 3);
  line[3].join(bucket, 2);
  bucket.set_limit({.rate = 10, .period = 1s, .burst = 2});
  EXPECT_EQ(line[2].result().outcome, WaitOutcome::never);
  clock_.advance(200ms);
  EXPECT_TRUE(line[3].granted());
  Standing one;
  one.join(bucket, 2);
  EXPECT_FALSE(one.done());
  bucket.reset();
  EXPECT_TRUE(one.granted());
  EXPECT_EQ(bucket.peek(0).remaining, 0U);
}

TEST_F(WaitTest, APenaltyFailsThoseWhoseDeadlineItPasses) {
  TokenBucket bucket({.rate = 1, .period = 1s, .burst = 3}, &clock_);
  ASSERT_TRUE(bucket.try_acquire(3).allowed);
  std::vector<Standing> line(2);
  line[0].join(bucket, 1, Deadline(2s));
  line[1].join(bucket, 1);
  bucket.penalize(2);
  EXPECT_EQ(line[0].result().outcome, WaitOutcome::deadline);
  clock_.advance(3s);
  EXPECT_TRUE(line[1].granted());  // without the first one's cost
}

TEST_F(WaitTest, ThreadsWaitByTheClockOfTheLimiter) {
  TokenBucket bucket({.rate = 1, .period = 1h, .burst = 1}, &clock_);
  ASSERT_TRUE(bucket.try_acquire().allowed);
  std::atomic<int> granted{0};
  std::vector<std::jthread> threads;
  threads.reserve(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      if (bucket.wait()) ++granted;
    });
  }
  while (bucket.peek(0).reset_after < Wait(4h)) std::this_thread::yield();
  clock_.advance(3h);
  threads.clear();
  EXPECT_EQ(granted, 3);
}

TEST_F(WaitTest, AStopRequestEndsAWait) {
  TokenBucket bucket({.rate = 1, .period = 1h, .burst = 1}, &clock_);
  ASSERT_TRUE(bucket.try_acquire().allowed);
  WaitResult result;
  std::jthread thread([&](std::stop_token stop) { result = bucket.wait(1, {}, std::move(stop)); });
  while (bucket.peek(0).reset_after < Wait(2h)) std::this_thread::yield();
  thread.request_stop();
  thread.join();
  EXPECT_EQ(result.outcome, WaitOutcome::stopped);
  EXPECT_EQ(bucket.peek(0).reset_after, Wait(1h));
  std::stop_source stopped;
  stopped.request_stop();
  bucket.reset();
  EXPECT_EQ(bucket.wait(1, {}, stopped.get_token()).outcome, WaitOutcome::stopped);
  EXPECT_EQ(bucket.peek(0).remaining, 1U);
}

TEST_F(WaitTest, SleepsByTheMachinesClock) {
  TokenBucket bucket({.rate = 100, .period = 1s, .burst = 1});
  ASSERT_TRUE(bucket.wait());
  const auto begin = std::chrono::steady_clock::now();
  const WaitResult second = bucket.wait();
  const WaitResult third = bucket.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 19ms);
  EXPECT_EQ(third.ready_at - second.ready_at, 10'000'000);
}

TEST_F(WaitTest, ALeakyBucketGrantsAtItsSlots) {
  LeakyBucket queue({.rate = 3, .period = 1s, .queue = 3}, &clock_);
  std::vector<Standing> line(5);
  for (Standing& one : line) one.join(queue);
  EXPECT_TRUE(line[0].granted());
  EXPECT_EQ(line[4].result().outcome, WaitOutcome::full);
  clock_.advance(1s);
  EXPECT_EQ(line[1].result().ready_at, start_ + 333'333'334);
  EXPECT_EQ(line[2].result().ready_at, start_ + 666'666'667);
  EXPECT_EQ(line[3].result().ready_at, start_ + 1'000'000'000);
}

}  // namespace
}  // namespace sluice
