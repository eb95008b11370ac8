// The public limiters, as a program uses them. That their figures are right is shown by tests/model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'767'225'600 * kSecond;
constexpr std::int64_t kDay = 86'400 * kSecond;

Time at(std::int64_t ns) { return {.steady = kStart + ns, .utc = kStart + ns}; }

TEST(TokenBucket, FiveLines) {
  TokenBucket bucket{{.rate = 10, .period = seconds(1), .burst = 30}};
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(bucket.try_acquire(1, at(0)).allowed);
  const Decision denied = bucket.try_acquire(1, at(0));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after.value(), milliseconds(100));
  EXPECT_EQ(denied.reset_after.value(), seconds(3));
  EXPECT_TRUE(bucket.try_acquire(1, at(kSecond / 10)).allowed);
}

TEST(TokenBucket, ByItsOwnClock) {
  TokenBucket bucket{{.rate = 1, .period = hours(1), .burst = 2}};
  EXPECT_EQ(bucket.try_acquire().remaining, 1U);
  EXPECT_TRUE(bucket.peek().allowed);
  EXPECT_EQ(bucket.acquire_up_to(5).tokens, 1U);
  EXPECT_FALSE(bucket.try_acquire().allowed);
  EXPECT_EQ(bucket.refund(1).remaining, 1U);
  EXPECT_EQ(bucket.settle(0, 1).remaining, 0U);
  EXPECT_EQ(bucket.set_limit({.rate = 2, .period = hours(1), .burst = 5}).limit, 5U);
  EXPECT_EQ(bucket.penalize(1).remaining, 0U);
  EXPECT_EQ(bucket.reset().remaining, 5U);
}

TEST(TokenBucket, AnOlderNowIsNeverGivenMoreThanTheNewest) {
  TokenBucket bucket{{.rate = 10, .burst = 1}};
  EXPECT_TRUE(bucket.try_acquire(1, at(kSecond)).allowed);
  EXPECT_FALSE(bucket.try_acquire(1, at(0)).allowed);
  EXPECT_FALSE(bucket.try_acquire(1, at(-kDay)).allowed);
  EXPECT_FALSE(bucket.try_acquire(1, at(kSecond + kSecond / 10 - 1)).allowed);
  EXPECT_TRUE(bucket.try_acquire(1, at(kSecond + kSecond / 10)).allowed);
}

TEST(TokenBucket, GoesOnWhenTheClockRunsOutOfBits) {
  // 10^9 parts a nanosecond: a reading of 57 bits lasts a seventh of a second.
  TokenBucket bucket{{.rate = 1'000'000'000'000, .period = nanoseconds(1'000), .burst = 2'000'000'000}};
  for (std::int64_t ns = 0; ns < kSecond; ns += 1'000'001) {
    ASSERT_TRUE(bucket.try_acquire(2'000'000'000, at(ns)).allowed) << ns;
    ASSERT_FALSE(bucket.try_acquire(1'000'000'001, at(ns + 1)).allowed) << ns;
    ASSERT_TRUE(bucket.try_acquire(1'000'000'000, at(ns + 1)).allowed) << ns;
  }
  // One part a nanosecond lasts for years, and then goes on as well.
  TokenBucket slow{{.rate = 1, .burst = 2}};
  for (std::int64_t year = 0; year < 20; ++year) {
    ASSERT_TRUE(slow.try_acquire(2, at(year * 365 * kDay)).allowed) << year;
    ASSERT_FALSE(slow.try_acquire(1, at(year * 365 * kDay + kSecond - 1)).allowed) << year;
    ASSERT_TRUE(slow.try_acquire(1, at(year * 365 * kDay + kSecond)).allowed) << year;
  }
}

TEST(TokenBucket, SaysWhatIsOutOfRange) {
  EXPECT_THAT(([] { TokenBucket bucket({.rate = 1, .period = nanoseconds(1), .burst = 0}); }),
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("period: "), HasSubstr("burst: "))));
  TokenBucket bucket({.rate = 1, .burst = 3});
  EXPECT_THROW(bucket.set_limit({.rate = kMaxRate + 1, .burst = 3}), std::invalid_argument);
  EXPECT_EQ(bucket.peek().limit, 3U);
  EXPECT_TRUE(bucket.try_acquire(kMaxTokens + 1, at(0)).retry_after.is_never());
}

TEST(LeakyBucket, SaysWhatIsOutOfRange) {
  EXPECT_THAT(
      ([] { LeakyBucket bucket({.queue = UINT64_MAX}); }),
      ThrowsMessage<std::invalid_argument>("sluice: queue: must be 0 … 999999999999999, is 18446744073709551615"));
  EXPECT_THAT(([] { LeakyBucket bucket({.queue = kMaxTokens}); }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("is 1000000000000000")));
}

TEST(LeakyBucket, TellsWhenToAct) {
  LeakyBucket queue{{.rate = 10, .period = seconds(1), .queue = 2}};
  for (const int delay : {0, 100, 200}) EXPECT_EQ(queue.try_acquire(1, at(0)).delay.value(), milliseconds(delay));
  EXPECT_EQ(queue.try_acquire(1, at(0)).retry_after.value(), milliseconds(100));
  EXPECT_THAT(([] { LeakyBucket({.rate = 0, .queue = UINT64_MAX}); }),
              ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("rate: "), HasSubstr("queue: "))));
}

TEST(FixedWindow, MarksTheLastTokenAndWhatIsBeyond) {
  FixedWindow quota{{.rate = 2, .period = minutes(1)}};
  EXPECT_EQ(quota.try_acquire(1, at(0)).mark, Mark::none);
  EXPECT_EQ(quota.try_acquire(1, at(0)).mark, Mark::quota_hit);
  EXPECT_EQ(quota.try_acquire(1, at(0)).mark, Mark::over_quota);
  EXPECT_TRUE(quota.try_acquire(1, at(60 * kSecond)).allowed);
}

TEST(FixedWindow, CalendarMonths) {
  FixedWindow quota{{.rate = 2, .align = Align::calendar, .calendar = {.unit = Calendar::Unit::month}}};
  EXPECT_EQ(quota.try_acquire(1, at(0)).reset_after.value(), hours(31 * 24));
  EXPECT_THAT(([] { FixedWindow({.rate = 1, .align = Align::calendar, .calendar = {.timezone = "Nowhere"}}); }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("Nowhere")));
}

TEST(FixedWindow, GoesByUtcButFirstHitByTheSteadyClock) {
  FixedWindow epoch{{.rate = 1, .period = minutes(1)}};
  EXPECT_TRUE(epoch.try_acquire(1, {.steady = 0, .utc = kStart}).allowed);
  EXPECT_TRUE(epoch.try_acquire(1, {.steady = 0, .utc = kStart + 60 * kSecond}).allowed);
  FixedWindow first_hit{{.rate = 1, .period = minutes(1), .align = Align::first_hit}};
  EXPECT_TRUE(first_hit.try_acquire(1, {.steady = 5, .utc = kStart}).allowed);
  EXPECT_FALSE(first_hit.try_acquire(1, {.steady = 6, .utc = kStart + 60 * kSecond}).allowed);
}

TEST(SlidingWindow, ByItsOwnClock) {
  SlidingWindow limit{{.rate = 5, .period = hours(24), .slots = 24}};
  EXPECT_EQ(limit.try_acquire(2).remaining, 3U);
  EXPECT_EQ(limit.acquire_up_to(9).tokens, 3U);
  EXPECT_FALSE(limit.try_acquire().allowed);
  EXPECT_EQ(limit.refund(2).remaining, 2U);
  EXPECT_THROW(SlidingWindow({.rate = 1, .period = seconds(1), .slots = 7}), std::invalid_argument);
}

TEST(SlidingLog, ARefundAfterItsEntryHasLeftIsNothing) {
  SlidingLog log{{.rate = 2, .period = minutes(1)}};
  EXPECT_TRUE(log.try_acquire(2, at(0)).allowed);
  EXPECT_TRUE(log.try_acquire(1, at(60 * kSecond)).allowed);
  EXPECT_EQ(log.refund(2, at(61 * kSecond), at(0)).remaining, 1U);
  EXPECT_EQ(log.refund(2, at(61 * kSecond), at(60 * kSecond)).remaining, 2U);
}

TEST(Concurrency, ALeaseIsGivenBackAtTheEndOfItsBlock) {
  Concurrency limit{{.rate = 1}};
  {
    const auto lease = limit.try_acquire();
    EXPECT_TRUE(lease);
    EXPECT_FALSE(limit.try_acquire());
    EXPECT_FALSE(limit.peek().allowed);
  }
  EXPECT_TRUE(limit.peek().allowed);
}

TEST(Concurrency, LeasesMoveAndDetach) {
  Concurrency limit{{.rate = 2, .ttl = minutes(1)}};
  auto first = limit.try_acquire(1, at(0));
  auto second = std::move(first);
  EXPECT_EQ(limit.peek(0, at(0)).remaining, 1U);
  second = limit.try_acquire(1, at(0));
  EXPECT_EQ(limit.peek(0, at(0)).remaining, 1U);
  const std::uint64_t id = second.detach();
  EXPECT_FALSE(second.release(at(0)));
  EXPECT_TRUE(limit.release(id, at(0)));
  EXPECT_FALSE(limit.release(id, at(0)));
  const auto late = limit.try_acquire(2, at(0));
  EXPECT_EQ(limit.peek(2, at(1)).retry_after.value(), minutes(1) - nanoseconds(1));
  EXPECT_TRUE(limit.peek(2, at(60 * kSecond)).allowed);
}

// NOLINTBEGIN(bugprone-use-after-move): that is what these are about
TEST(Concurrency, AMovedFromLeaseReadsAsDenied) {
  Concurrency limit{{.rate = 2}};
  auto lease = limit.try_acquire(1, at(0));
  auto moved = std::move(lease);
  EXPECT_TRUE(moved);
  EXPECT_NE(moved.id(), 0U);
  EXPECT_FALSE(lease);
  EXPECT_EQ(lease.id(), 0U);
  EXPECT_EQ(lease.detach(), 0U);
  lease = std::move(moved);
  EXPECT_TRUE(lease);
  EXPECT_FALSE(moved);
  EXPECT_EQ(moved.id(), 0U);
  EXPECT_EQ(limit.peek(0, at(0)).remaining, 1U);
}

TEST(TokenBucket, AMovedFromReservationReadsAsNotGranted) {
  TokenBucket bucket{{.rate = 1, .burst = 2}};
  auto slot = bucket.reserve(1, seconds(0), at(0));
  auto moved = std::move(slot);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(slot);
  EXPECT_EQ(slot.outcome(), WaitOutcome::stopped);
  EXPECT_FALSE(slot.decision().allowed);
  slot = std::move(moved);
  EXPECT_TRUE(slot);
  EXPECT_FALSE(moved);
  EXPECT_FALSE(moved.cancel(at(0)).allowed);
  EXPECT_EQ(bucket.peek(0, at(0)).remaining, 1U);
}
// NOLINTEND(bugprone-use-after-move)

TEST(Concurrency, CostZeroIsNoLease) {
  Concurrency limit{{.rate = 1}};
  const auto lease = limit.try_acquire(0, at(0));
  EXPECT_TRUE(lease);
  EXPECT_EQ(lease.id(), 0U);
  EXPECT_TRUE(limit.try_acquire(2, at(0)).decision().retry_after.is_never());
}

}  // namespace
}  // namespace sluice
