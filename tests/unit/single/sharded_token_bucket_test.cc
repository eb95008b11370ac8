// A token bucket in shares: whatever thread asks, never more than a token bucket of the same numbers gives.
#include "sluice/sharded_token_bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/testing/simulated_clock.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int kThreads = 4;
constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

Time at(std::int64_t ns) { return {.steady = kStart + ns, .utc = 0}; }

// Each call by a thread that has another share than the one before.
void in_a_thread(const std::function<void()>& work) { std::thread(work).join(); }

void in_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(ShardedTokenBucket, AllOfTheBurstCanBeHadByOneThread) {
  ShardedTokenBucket bucket{{.rate = 1, .period = hours(24), .burst = 1'000, .shares = 8}};
  EXPECT_EQ(bucket.peek(0, at(0)).remaining, 1'000U);
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(bucket.try_acquire(1, at(0)).allowed) << i;
  const Decision denied = bucket.try_acquire(1, at(0));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.limit, 1'000U);
  EXPECT_EQ(denied.remaining, 0U);
  EXPECT_EQ(denied.retry_after.value(), hours(24));
  EXPECT_FALSE(bucket.try_acquire(1, at(hours(24) / nanoseconds(1) - 1)).allowed);
  EXPECT_TRUE(bucket.try_acquire(1, at(hours(24) / nanoseconds(1))).allowed);
}

TEST(ShardedTokenBucket, AtOnceOrInParts) {
  const ShardedTokenBucket::Numbers numbers{.rate = 0, .burst = 1'000, .shares = 8};
  ShardedTokenBucket at_once{numbers};
  EXPECT_TRUE(at_once.try_acquire(1'001, at(0)).retry_after.is_never());
  EXPECT_TRUE(at_once.try_acquire(1'000, at(0)).allowed);
  EXPECT_FALSE(at_once.try_acquire(1, at(0)).allowed);
  ShardedTokenBucket in_parts{numbers};
  EXPECT_EQ(in_parts.acquire_up_to(300, at(0)).tokens, 300U);
  EXPECT_FALSE(in_parts.try_acquire(701, at(0)).allowed);
  EXPECT_EQ(in_parts.peek(0, at(0)).remaining, 700U);
  in_a_thread([&] { EXPECT_EQ(in_parts.acquire_up_to(5'000, at(0)).tokens, 700U); });
  EXPECT_EQ(in_parts.refund(900, at(0)).remaining, 900U);
  EXPECT_EQ(in_parts.refund(900, at(0)).remaining, 1'000U);
  EXPECT_TRUE(in_parts.try_acquire(1'000, at(0)).allowed);
  EXPECT_EQ(in_parts.reset(at(0)).remaining, 1'000U);
}

TEST(ShardedTokenBucket, SharesThatNobodyUsesAreFilledInTheEnd) {
  ShardedTokenBucket bucket{{.rate = 1'000, .burst = 800, .shares = 8}};
  ASSERT_TRUE(bucket.try_acquire(800, at(0)).allowed);
  // Each denial moves into the shares what the rest, when it is full, has no more room for.
  std::int64_t now = 0;
  Decision decision = bucket.try_acquire(800, at(now));
  for (int i = 0; i < 3 && !decision.allowed; ++i) {
    ASSERT_FALSE(decision.retry_after.is_never());
    now += decision.retry_after.value().count();
    decision = bucket.try_acquire(800, at(now));
  }
  EXPECT_TRUE(decision.allowed);
}

TEST(ShardedTokenBucket, IsATokenBucketWhereTheBurstIsSmall) {
  SimulatedClock clock;
  ShardedTokenBucket bucket{{.rate = 10, .period = seconds(1), .burst = 3, .shares = 8}, &clock};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_acquire().allowed);
  EXPECT_EQ(bucket.try_acquire().retry_after.value(), std::chrono::milliseconds(100));
  clock.advance(std::chrono::milliseconds(100));
  EXPECT_EQ(bucket.peek().remaining, 0U);
  EXPECT_EQ(bucket.acquire_up_to(9).tokens, 1U);
  EXPECT_EQ(bucket.refund(1).remaining, 1U);
  EXPECT_EQ(bucket.reset().remaining, 3U);
}

TEST(ShardedTokenBucket, SaysWhatIsOutOfRange) {
  EXPECT_THAT(([] { ShardedTokenBucket({.rate = 1, .burst = 0}); }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("burst: ")));
  EXPECT_THAT(([] { ShardedTokenBucket({.rate = 1, .burst = 10, .shares = 1'025}); }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("shares: must be 0 … 1024, is 1025")));
}

// All pairs of admissions are looked at.
TEST(ShardedTokenBucketLaw, AtMostBurstPlusRateTimesWindow) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t burst = 1 + random() % 500;
    const std::uint64_t rate = 1 + random() % 2'000;
    ShardedTokenBucket bucket{{.rate = rate, .burst = burst, .shares = static_cast<std::uint32_t>(1 + random() % 6)}};
    struct Admitted {
      std::int64_t at;
      std::uint64_t cost;
    };
    std::vector<Admitted> admitted;
    std::int64_t now = 0;
    for (int k = 0; k < 60; ++k) {
      in_a_thread([&] {
        for (int j = 0; j < 5; ++j) {
          const std::uint64_t cost = random() % 3 == 0 ? 1 + random() % burst : 1 + random() % 3;
          const bool peeked = bucket.peek(cost, at(now)).allowed;
          const Decision decision = bucket.try_acquire(cost, at(now));
          ASSERT_EQ(decision.allowed, peeked);
          ASSERT_LE(decision.remaining, burst);
          if (decision.allowed) admitted.push_back({now, cost});
          if (random() % 4 == 0) now += static_cast<std::int64_t>(random() % 200'000'000);
        }
      });
    }
    for (std::size_t first = 0; first < admitted.size(); ++first) {
      std::uint64_t sum = 0;
      for (std::size_t last = first; last < admitted.size(); ++last) {
        sum += admitted[last].cost;
        const auto elapsed = static_cast<std::uint64_t>(admitted[last].at - admitted[first].at);
        ASSERT_LE(sum * 1'000'000'000, burst * 1'000'000'000 + rate * elapsed) << "bucket " << i;
      }
    }
  }
}

TEST(ShardedTokenBucketThreads, NoneTooManyAndNoneLost) {
  ShardedTokenBucket bucket{{.rate = 0, .burst = 100'000, .shares = kThreads}};
  std::atomic<std::uint64_t> admitted{0};
  in_threads([&](int thread) {
    std::uint64_t own = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto cost = static_cast<std::uint64_t>(1 + i % (3 + thread));
      if (bucket.try_acquire(cost, at(0)).allowed) own += cost;
      if (i % 7 == 0 && own > 0) {
        bucket.refund(1, at(0));
        --own;
      }
    }
    admitted += own;
  });
  EXPECT_LE(admitted, 100'000U);
  while (bucket.try_acquire(1, at(0)).allowed) ++admitted;
  EXPECT_EQ(admitted, 100'000U);
}

TEST(ShardedTokenBucketThreads, AtMostWhatWasEarnedOnAMovingClock) {
  ShardedTokenBucket bucket{{.rate = 1'000'003, .burst = 1'000, .shares = kThreads}};
  std::atomic<std::int64_t> clock{0};
  std::atomic<std::uint64_t> admitted{0};
  in_threads([&](int) {
    for (int i = 0; i < 30'000; ++i) admitted += bucket.try_acquire(1, at(clock.fetch_add(100) + 100)).allowed ? 1 : 0;
  });
  const auto earned = static_cast<std::uint64_t>(clock / 1'000) * 1'000'003 / 1'000'000;
  EXPECT_LE(admitted, 1'000 + earned + 1);
  EXPECT_GE(admitted, earned);
}

}  // namespace
}  // namespace sluice
