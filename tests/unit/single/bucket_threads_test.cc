// Buckets under threads: whatever the interleaving, never a token too many and, when all is asked for, none too few.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "sluice/leaky_bucket.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int kThreads = 4;
constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

Time at(std::int64_t ns) { return {.steady = ns, .utc = 0}; }

void in_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(TokenBucketThreads, ExactlyTheBurstAtOneInstant) {
  TokenBucket bucket({.rate = 10, .burst = 30'000});
  std::atomic<std::uint64_t> admitted{0};
  in_threads([&](int) {
    for (int i = 0; i < 20'000; ++i) admitted += bucket.try_acquire(1, at(kStart)).allowed ? 1 : 0;
  });
  EXPECT_EQ(admitted, 30'000U);
  EXPECT_EQ(bucket.peek(0, at(kStart)).remaining, 0U);
}

TEST(TokenBucketThreads, ExactlyWhatWasEarnedOnAMovingClock) {
  TokenBucket bucket({.rate = 1'000'003, .burst = 100});
  std::atomic<std::int64_t> clock{kStart};
  std::atomic<std::uint64_t> admitted{0};
  static_cast<void>(bucket.try_acquire(0, at(kStart)));
  in_threads([&](int) {
    for (int i = 0; i < 50'000; ++i) admitted += bucket.try_acquire(1, at(clock.fetch_add(100) + 100)).allowed ? 1 : 0;
  });
  const auto earned = static_cast<std::uint64_t>((clock - kStart) / 1'000) * 1'000'003 / 1'000'000;
  EXPECT_LE(admitted, 100 + earned + 1);
  while (bucket.try_acquire(1, at(clock)).allowed) ++admitted;
  EXPECT_GE(admitted, earned);  // threads that came late lost only what was over the burst meanwhile
}

TEST(TokenBucketThreads, NewNumbersNeverGiveATokenTwice) {
  // All numbers give nothing back within the test; only what was there at first can be taken.
  TokenBucket bucket({.rate = 1, .period = std::chrono::hours(24), .burst = 40'000});
  std::atomic<std::uint64_t> admitted{0};
  admitted += bucket.try_acquire(1, at(kStart)).allowed ? 1 : 0;  // a full bucket would stay full
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (int i = 0; !done; ++i) {
      bucket.set_limit({.rate = static_cast<std::uint64_t>(1 + i % 3),
                        .period = std::chrono::hours(24 + i % 7),
                        .burst = static_cast<std::uint64_t>(40'000 + i % 5)},
                       at(kStart));
    }
  });
  in_threads([&](int) {
    for (int i = 0; i < 20'000; ++i) admitted += bucket.try_acquire(1, at(kStart)).allowed ? 1 : 0;
  });
  done = true;
  changer.join();
  EXPECT_EQ(admitted, 40'000U);
}

TEST(TokenBucketThreads, AcquireUpToAndRefundsAddUp) {
  TokenBucket bucket({.rate = 0, .burst = 1'000});
  std::atomic<std::int64_t> held{0};
  std::atomic<bool> too_many{false};
  in_threads([&](int thread) {
    for (int i = 0; i < 5'000; ++i) {
      const auto taken = static_cast<std::int64_t>(bucket.acquire_up_to(300, at(kStart + thread)).tokens);
      if (held.fetch_add(taken) + taken > 1'000) too_many = true;
      held -= taken;
      bucket.refund(static_cast<std::uint64_t>(taken), at(kStart + thread));
    }
  });
  EXPECT_FALSE(too_many);
  EXPECT_EQ(bucket.peek(0, at(kStart)).remaining, 1'000U);
}

TEST(TokenBucketThreads, DebtsTooDeepForAWordComeAndGo) {
  TokenBucket bucket({.rate = 10, .burst = 1'000});
  bucket.try_acquire(1'000, at(kStart));
  in_threads([&](int) {
    for (int i = 0; i < 2'000; ++i) {
      bucket.settle(0, 100'000'000'000, at(kStart));
      if (bucket.try_acquire(1, at(kStart)).allowed) ADD_FAILURE() << "admitted in debt";
      bucket.refund(100'000'000'000, at(kStart));
    }
  });
  EXPECT_EQ(bucket.peek(0, at(kStart)).remaining, 0U);
  EXPECT_EQ(bucket.peek(1, at(kStart)).retry_after.value(), nanoseconds(100'000'000));
}

TEST(LeakyBucketThreads, NoTwoLeaveInTheSameSlot) {
  constexpr int kEach = 5'000;
  LeakyBucket queue({.rate = 1'000, .period = seconds(1), .queue = kThreads * kEach});
  std::vector<std::vector<std::int64_t>> delays(kThreads);
  in_threads([&](int thread) {
    for (int i = 0; i < kEach; ++i) {
      delays[static_cast<std::size_t>(thread)].push_back(queue.try_acquire(1, at(kStart)).delay.value().count());
    }
  });
  std::vector<bool> taken(kThreads * kEach);
  for (const auto& of_thread : delays) {
    for (const std::int64_t delay : of_thread) {
      ASSERT_EQ(delay % 1'000'000, 0);
      const auto slot = static_cast<std::size_t>(delay / 1'000'000);
      ASSERT_LT(slot, taken.size());
      ASSERT_FALSE(taken[slot]);
      taken[slot] = true;
    }
  }
}

}  // namespace
}  // namespace sluice
