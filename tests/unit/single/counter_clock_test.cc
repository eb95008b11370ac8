// The clock of the cycle counter: against made-up counters, where each number is known, and against the machine's.
#include "sluice/internal/counter_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "single/counter_clock_lines.h"

namespace sluice::internal {
namespace {

constexpr std::int64_t kMicrosecond = 1'000;
constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'800'000'000 * kSecond;

// A counter and a steady clock that go on by what the test says; and a little at each reading, as real ones do. One
// kind for each test, as the clock calls static functions.
template <int kTest>
struct MadeUp {
  static inline bool invariant = true;
  static inline double ticks_per_ns = 3.0;
  static inline double counter = 5e9;
  static inline std::int64_t time = kStart;
  static inline int steady_reads = 0;

  static void pass(std::int64_t ns) {
    time += ns;
    counter += static_cast<double>(ns) * ticks_per_ns;
  }
  static bool trusted() { return invariant; }
  static std::uint64_t ticks() {
    pass(10);
    return static_cast<std::uint64_t>(counter);
  }
  static std::int64_t steady() {
    pass(24);
    ++steady_reads;
    return time;
  }
};

// Readings never fall, and are right to `error` ns; what is told is of a moment during the call.
template <typename Source>
void expect_right(CounterClock<Source>& clock, std::int64_t error, std::int64_t& newest) {
  const std::int64_t before = Source::time;
  const std::int64_t now = clock.now();
  ASSERT_GE(now, newest);
  ASSERT_GE(now, before - error);
  ASSERT_LE(now, Source::time + error);
  newest = now;
}

TEST(CounterClock, TellsTheTimeByAnyCounter) {
  using Source = MadeUp<1>;
  for (const double ticks_per_ns : {0.025, 0.4, 1.0, 2.45, 5.2}) {
    Source::ticks_per_ns = ticks_per_ns;
    CounterClock<Source> clock;
    std::int64_t newest = INT64_MIN;
    std::mt19937_64 random(7);
    for (int i = 0; i < 20'000; ++i) {
      expect_right(clock, 200 + static_cast<std::int64_t>(1 / ticks_per_ns), newest);
      if (testing::Test::HasFatalFailure()) return;
      Source::pass(static_cast<std::int64_t>(random() % (200 * kMicrosecond)));
    }
  }
}

TEST(CounterClock, ReadsTheSteadyClockRarely) {
  using Source = MadeUp<2>;
  CounterClock<Source> clock;
  for (int i = 0; i < 1'000; ++i) {
    static_cast<void>(clock.now());
    Source::pass(10 * kMicrosecond);
  }
  Source::steady_reads = 0;
  const std::int64_t begin = Source::time;
  while (Source::time < begin + kSecond) {
    static_cast<void>(clock.now());
    Source::pass(kMicrosecond);
  }
  EXPECT_LE(Source::steady_reads, 102 * 4);  // four for each 10 ms
  EXPECT_GE(Source::steady_reads, 90 * 4);
}

TEST(CounterClock, IsRightAfterLongIdles) {
  using Source = MadeUp<3>;
  CounterClock<Source> clock;
  std::int64_t newest = INT64_MIN;
  for (const std::int64_t idle : {kSecond, 3'600 * kSecond, kMillisecond, 30 * 86'400 * kSecond, kSecond}) {
    Source::pass(idle);
    for (int i = 0; i < 100; ++i) {
      expect_right(clock, 200, newest);
      if (testing::Test::HasFatalFailure()) return;
      Source::pass(20 * kMicrosecond);
    }
  }
}

TEST(CounterClock, FollowsASlewedClockToAFewMicroseconds) {
  using Source = MadeUp<4>;
  CounterClock<Source> clock;
  std::int64_t newest = INT64_MIN;
  for (int i = 0; i < 30'000; ++i) {
    if (i % 1'000 == 0) Source::ticks_per_ns = i % 2'000 == 0 ? 3.0 * 1.0005 : 3.0;
    expect_right(clock, 5'500, newest);
    if (testing::Test::HasFatalFailure()) return;
    Source::pass(50 * kMicrosecond);
  }
}

TEST(CounterClock, ReadsTheSteadyClockWhereTheCounterIsNotInvariant) {
  using Source = MadeUp<5>;
  Source::invariant = false;
  CounterClock<Source> clock;
  std::int64_t newest = INT64_MIN;
  for (int i = 0; i < 1'000; ++i) {
    Source::ticks_per_ns = 1.0 + i % 3;
    expect_right(clock, 0, newest);
    if (testing::Test::HasFatalFailure()) return;
    Source::pass(kMillisecond);
  }
  EXPECT_GE(Source::steady_reads, 1'000);
}

TEST(CounterClock, DoesNotTrustACounterThatChangesItsRateForLong) {
  using Source = MadeUp<6>;
  CounterClock<Source> clock;
  std::int64_t newest = INT64_MIN;
  for (int i = 0; i < 2'000; ++i) {
    expect_right(clock, 200, newest);
    if (testing::Test::HasFatalFailure()) return;
    Source::pass(50 * kMicrosecond);
  }
  // It runs twice as fast: no reading is off by more than one line, and none once that is found out.
  Source::ticks_per_ns *= 2;
  for (int i = 0; i < 2'000; ++i) {
    expect_right(clock, 20 * kMillisecond, newest);
    if (testing::Test::HasFatalFailure()) return;
    Source::pass(100 * kMicrosecond);
  }
  for (int i = 0; i < 2'000; ++i) {
    Source::ticks_per_ns = 1.0 + i % 5;
    expect_right(clock, 0, newest);
    if (testing::Test::HasFatalFailure()) return;
    Source::pass(100 * kMicrosecond);
  }
}

TEST(CounterClock, BearsAMachineThatSleptOrMoved) {
  using Source = MadeUp<7>;
  CounterClock<Source> clock;
  std::int64_t newest = INT64_MIN;
  const auto go_on = [&] {
    for (int i = 0; i < 2'000 && !testing::Test::HasFatalFailure(); ++i) {
      expect_right(clock, 200, newest);
      Source::pass(50 * kMicrosecond);
    }
  };
  go_on();
  for (const double jump : {1e13, -1e13, -1e9, 1e9}) {
    Source::counter += jump;  // the steady clock stood still, or the counter is another processor's
    go_on();
    if (testing::Test::HasFatalFailure()) return;
  }
  Source::steady_reads = 0;
  go_on();
  EXPECT_LE(Source::steady_reads, 60) << "the counter is trusted still";
}

#ifdef __x86_64__
TEST(MachineClock, AgreesWithTheSteadyClock) {
  constexpr std::int64_t kBound = 200 * kMicrosecond;
  const std::int64_t end = MachineCounter::steady() + 60 * kMillisecond;
  std::int64_t newest = INT64_MIN;
  std::int64_t before = 0;
  do {
    before = MachineCounter::steady();
    const std::int64_t now = steady_now();
    const std::int64_t after = MachineCounter::steady();
    ASSERT_GE(now, newest);
    ASSERT_GE(now, before - kBound);
    ASSERT_LE(now, after + kBound);
    newest = now;
  } while (before < end);
}
#endif

TEST(MachineClock, WhatOneThreadSawIsNotAheadOfTheNextByMoreThanItsError) {
  constexpr int kThreads = 4;
  constexpr std::int64_t kBound = 200 * kMicrosecond;
  std::atomic<std::int64_t> seen{0};
  std::atomic<bool> back{false};
  std::vector<std::thread> threads;
  const std::int64_t end = steady_now() + 60 * kMillisecond;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      std::int64_t own = 0;
      while (own < end) {
        const std::int64_t others = seen.load();
        const std::int64_t now = steady_now();
        if (now < others - kBound || now < own - kBound) back = true;
        own = now;
        std::int64_t newest = seen.load();
        while (newest < now && !seen.compare_exchange_weak(newest, now)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(back);
}

}  // namespace
}  // namespace sluice::internal
