// Many threads at one line: what is granted stays within the bound, and nothing is lost, whoever stops when.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/leaky_bucket.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Random = std::mt19937;

std::uint64_t pick(Random& random, std::uint64_t from, std::uint64_t to) {
  return std::uniform_int_distribution<std::uint64_t>(from, to)(random);
}

TEST(WaitingStorm, AStopAtAnyMomentTakesAllOrNothing) {
  SimulatedClock clock;
  TokenBucket bucket({.rate = 1, .period = 1h, .burst = 3}, &clock);
  int stopped = 0;
  for (int round = 0; round < 2'000; ++round) {
    bucket.reset();
    bucket.try_acquire(3);
    std::atomic<bool> begun{false};
    WaitResult first;
    WaitResult second;
    std::jthread one([&](std::stop_token stop) {
      begun = true;
      first = bucket.wait(2, {}, std::move(stop));
    });
    std::jthread two([&] { second = bucket.wait(1, 1h); });
    while (!begun) std::this_thread::yield();
    for (int spin = 0; spin < round % 50; ++spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    std::jthread mover([&] { clock.advance(2h); });
    one.request_stop();
    one.join();
    mover.join();
    clock.advance(1h);
    two.join();
    // An hour's token each: those granted are gone, all else is there.
    const std::uint64_t used = 3 + (first ? 2U : 0U) + (second ? 1U : 0U);
    const std::chrono::nanoseconds left = bucket.peek(0).reset_after.value();
    EXPECT_EQ(left, used > 3 ? std::chrono::hours(used - 3) : 0h) << round;
    if (!first) {
      EXPECT_EQ(first.outcome, WaitOutcome::stopped);
      ++stopped;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(stopped, 0);
}

TEST(WaitingStorm, ThreadsThatWaitStopAndChangeTheLimitStayWithinTheBound) {
  constexpr std::uint64_t kBurst = 20;
  constexpr std::uint64_t kRate = 100'000;
  TokenBucket bucket({.rate = kRate, .period = 1s, .burst = kBurst});
  std::atomic<std::uint64_t> used{0};
  std::array<std::stop_source, 4> stops;
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(stops.size());
    for (unsigned t = 0; t < stops.size(); ++t) {
      threads.emplace_back([&, t] {
        Random random(t);
        for (int i = 0; i < 400; ++i) {
          const std::uint64_t cost = pick(random, 1, 4);
          const Deadline deadline = i % 3 == 0 ? Deadline(20us) : Deadline();
          if (bucket.wait(cost, deadline, i % 2 == 0 ? stops[t].get_token() : std::stop_token())) used += cost;
          if (i % 7 == 0 && bucket.try_acquire(cost).allowed) used += cost;
          if (auto reservation = bucket.reserve(cost, 1ms); reservation && i % 5 == 0) {
            used += cost;
            reservation.commit();
          }
        }
      });
    }
    for (unsigned i = 0; i < 40; ++i) {
      std::this_thread::yield();
      bucket.set_limit({.rate = kRate, .period = 1s, .burst = kBurst});
      bucket.penalize(1);
      if (i % 10 == 0) stops[i % stops.size()].request_stop();
    }
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin + 1ms;  // reserved ahead
  EXPECT_LE(static_cast<double>(used), static_cast<double>(kBurst) + elapsed.count() * kRate);
  EXPECT_GT(used, kBurst);
}

TEST(WaitingStorm, ALeakyBucketNeverGrantsASlotTwice) {
  LeakyBucket queue({.rate = 50'000, .period = 1s, .queue = 1'000});
  std::array<std::vector<std::int64_t>, 4> slots;
  std::stop_source stop;
  {
    std::vector<std::jthread> threads;
    threads.reserve(slots.size());
    for (auto& own : slots) {
      threads.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          const WaitResult result = queue.wait(1, {}, i % 3 == 0 ? stop.get_token() : std::stop_token());
          if (result) own.push_back(result.ready_at);
        }
      });
    }
    std::this_thread::yield();
    stop.request_stop();
  }
  std::vector<std::int64_t> all;
  for (const auto& some : slots) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i) ASSERT_GE(all[i] - all[i - 1], 20'000);
}

}  // namespace
}  // namespace sluice
