// Bounded, self-cleaning, and nothing forgotten silently. All on simulated time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;

template <typename Algorithm>
class KeyedMemory : public ::testing::Test {
 protected:
  // A second of traffic by keys that never come again.
  void one_hits(Keyed<Algorithm>& limits, std::int64_t start, std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      const std::int64_t now = start + static_cast<std::int64_t>(i * static_cast<std::uint64_t>(kSecond) / calls);
      static_cast<void>(check(limits, "one hit " + std::to_string(next_++), 1, now));
    }
  }
  std::uint64_t next_ = 0;
};
TYPED_TEST_SUITE(KeyedMemory, AllAlgorithms);

// The law, at a size for every build; bench/micro/keyed_memory.cc does it with five million keys.
TYPED_TEST(KeyedMemory, IsBackTwoWindowsAfterAFloodOfOneHitKeys) {
  constexpr std::uint64_t kFlood = 200'000;
  Keyed<TypeParam> limits(numbers<TypeParam>(1), {.max_keys = 1'000'000});
  std::int64_t now = kStart;
  for (int i = 0; i < 4; ++i, now += kSecond) this->one_hits(limits, now, kFlood / 100);
  const KeyedFigures before = limits.figures();
  this->one_hits(limits, now, kFlood);
  now += kSecond;
  const KeyedFigures full = limits.figures();
  EXPECT_GE(full.keys, kFlood);
  EXPECT_GE(full.bytes, kFlood * 32);
  // A sliding window's key is fresh one window after it has left.
  const int windows = std::is_same_v<TypeParam, SlidingWindow> ? 4 : 2;
  for (int i = 0; i < windows; ++i, now += kSecond) this->one_hits(limits, now, kFlood / 100);
  const KeyedFigures after = limits.figures();
  EXPECT_LE(after.keys, before.keys * 12 / 10);
  EXPECT_LE(after.bytes, before.bytes * 12 / 10);
  EXPECT_EQ(after.evicted, 0U);
  EXPECT_EQ(after.keys + after.expired, this->next_);
}

TYPED_TEST(KeyedMemory, AllKeysGoWhenOneCallerComesOften) {
  Keyed<TypeParam> limits(numbers<TypeParam>(1), {.max_keys = 100'000});
  for (int i = 0; i < 20'000; ++i) static_cast<void>(check(limits, std::to_string(i), 1, kStart));
  for (std::int64_t now = kStart + kSecond; now < kStart + 5 * kSecond; now += kSecond / 200) {
    static_cast<void>(check(limits, "the one", 1, now));
  }
  EXPECT_LE(limits.figures().keys, 1U);
  EXPECT_EQ(limits.figures().evicted, 0U);
  EXPECT_LE(limits.figures().bytes, 100'000U);
}

TYPED_TEST(KeyedMemory, MaxKeysIsExactAndWhatIsForgottenIsCounted) {
  for (const std::uint64_t most : {1U, 2U, 5U, 16U, 17U, 100U, 1'000U}) {
    Keyed<TypeParam> limits(numbers<TypeParam>(3, hours(1)), {.max_keys = most});
    for (std::uint64_t i = 1; i <= 3 * most; ++i) {
      EXPECT_TRUE(check(limits, std::to_string(i), 1, kStart).allowed);
      ASSERT_EQ(limits.figures().keys, std::min(i, most));
      ASSERT_EQ(limits.figures().evicted, i > most ? i - most : 0);
    }
    EXPECT_EQ(limits.figures().expired, 0U);
  }
}

TYPED_TEST(KeyedMemory, AClockThatJumpedAheadAndBackStillCleans) {
  constexpr std::int64_t kYear = 365LL * 86'400 * kSecond;
  for (const std::int64_t jump : {kYear, 100 * kYear, INT64_MAX - kStart}) {
    Keyed<TypeParam> limits(numbers<TypeParam>(1), {.max_keys = 50'000});
    static_cast<void>(check(limits, "seen ahead", 1, kStart + jump));
    for (int i = 0; i < 10'000; ++i) static_cast<void>(check(limits, std::to_string(i), 1, kStart));
    for (std::int64_t now = kStart + kSecond; now < kStart + 5 * kSecond; now += kSecond / 200) {
      static_cast<void>(check(limits, "the one", 1, now));
    }
    EXPECT_LE(limits.figures().keys, 2U) << jump;  // that one, and what was last changed in the future
  }
}

TYPED_TEST(KeyedMemory, AClockThatFarBehindGivesNothing) {
  Keyed<TypeParam> limits(numbers<TypeParam>(2), {.max_keys = 1'000});
  EXPECT_TRUE(check(limits, "k", 2, kStart).allowed);
  for (const std::int64_t now : {INT64_MIN, -kStart, std::int64_t{0}, kStart - kSecond}) {
    EXPECT_FALSE(check(limits, "k", 1, now).allowed);
    EXPECT_TRUE(check(limits, "at " + std::to_string(now), 1, now).allowed);
  }
  EXPECT_FALSE(check(limits, "k", 1, kStart).allowed);
}

// Growing to a hundred thousand and back: work is bounded by a shard of 8 192 keys at most, whatever the table holds.
TYPED_TEST(KeyedMemory, NoCallDoesMoreThanAShardsWork) {
  constexpr std::uint64_t kMost = 60'000;
  Keyed<TypeParam> limits(numbers<TypeParam>(3), {.max_keys = kMost});
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  const auto step = [&](const std::string& key, std::int64_t now) {
    static_cast<void>(check(limits, key, 1, now));
    const std::uint64_t work = limits.figures().work;
    most = std::max(most, work - before);
    before = work;
  };
  std::int64_t now = kStart;
  for (std::uint64_t i = 0; i < kMost * 11 / 10; ++i) step(std::to_string(i), now += 5'000);
  now += 100 * kSecond;
  for (int i = 0; i < 500; ++i) step("late" + std::to_string(i), now += kSecond / 200);
  EXPECT_GT(most, 1'000U);
  EXPECT_LE(most, 60'000U);  // slots looked at or moved
}

TEST(KeyedEviction, OfFewTheNearestToFreshGoesFirst) {
  Keyed<TokenBucket, int> limits({.rate = 1, .burst = 1'000'000}, {.max_keys = 16});
  for (const int n : {9, 4, 16, 2, 11, 6, 13, 1, 15, 8, 3, 12, 5, 14, 10, 7}) {
    limits.try_acquire(n, static_cast<std::uint64_t>(n), at(kStart));
  }
  const auto is_there = [&](int n) { return limits.peek(n, 0, at(kStart)).remaining < 1'000'000; };
  for (int next = 1; next <= 8; ++next) {
    EXPECT_TRUE(is_there(next));
    limits.try_acquire(100 + next, 1'000, at(kStart));
    EXPECT_FALSE(is_there(next));
  }
  for (int n = 9; n <= 16; ++n) EXPECT_TRUE(is_there(n));
  EXPECT_EQ(limits.figures().evicted, 8U);
}

TEST(KeyedEviction, WhatEqualsAFreshKeyGoesUncounted) {
  Keyed<TokenBucket, int> limits({.rate = 1, .burst = 100}, {.max_keys = 16});
  for (int n = 1; n <= 16; ++n) limits.try_acquire(n, static_cast<std::uint64_t>(n), at(kStart));
  for (int n = 101; n <= 105; ++n) limits.try_acquire(n, 10, at(kStart + 5 * kSecond));
  EXPECT_EQ(limits.figures().evicted, 0U);
  EXPECT_EQ(limits.figures().expired, 5U);
}

TEST(KeyedEviction, WhatNeverComesBackGoesLast) {
  Keyed<TokenBucket, int> limits({.rate = 0, .burst = 10}, {.max_keys = 16});
  for (int n = 0; n < 8; ++n) limits.try_acquire(n, 1, at(kStart));
  limits.set_limit({.rate = 1, .burst = 10}, at(kStart));
  for (int n = 100; n < 150; ++n) limits.try_acquire(n, 5, at(kStart));
  limits.set_limit({.rate = 0, .burst = 10}, at(kStart));
  for (int n = 0; n < 8; ++n) EXPECT_EQ(limits.peek(n, 0, at(kStart)).remaining, 9U);
}

/// Bytes a key, all in, between two sizes of a table.
template <typename Limiter, typename Make>
double bytes_per_key(Limiter& limits, std::uint64_t keys, Make make) {
  const std::uint64_t empty = limits.figures().bytes;
  for (std::uint64_t i = 0; i < keys; ++i) static_cast<void>(limits.try_acquire(make(i), 1, at(kStart)));
  EXPECT_EQ(limits.figures().keys, keys);
  return static_cast<double>(limits.figures().bytes - empty) / static_cast<double>(keys);
}

TEST(KeyedBytes, AtMostSixtyFourAKeyWhateverItsLength) {
  const TokenBucket::Numbers hourly{.rate = 1, .period = hours(1), .burst = 10};
  const auto text = [](std::size_t length) {
    return [length](std::uint64_t i) {
      const std::string number = std::to_string(i);
      return std::string(length - number.size(), '0') + number;
    };
  };
  for (const std::uint64_t keys : {300'000U, 350'000U, 400'000U}) {  // at any load
    Keyed<TokenBucket, std::uint64_t> integers(hourly, {.max_keys = 500'000});
    EXPECT_LE(bytes_per_key(integers, keys, [](std::uint64_t i) { return i; }), 64.0);
    for (const std::size_t length : {8U, 12U, 40U}) {
      Keyed<TokenBucket> strings(hourly, {.max_keys = 500'000});
      EXPECT_LE(bytes_per_key(strings, keys, text(length)), 64.0);
    }
  }
}

TEST(KeyedBytes, OtherAlgorithmsOfFixedSizeTakeTheSame) {
  const auto same = [](std::uint64_t i) { return i; };
  Keyed<FixedWindow, std::uint64_t> windows({.rate = 10, .period = hours(1)}, {.max_keys = 500'000});
  EXPECT_LE(bytes_per_key(windows, 400'000, same), 64.0);
  Keyed<FixedWindow, std::uint64_t> first_hit({.rate = 10, .period = hours(24), .align = Align::first_hit},
                                              {.max_keys = 500'000});
  EXPECT_LE(bytes_per_key(first_hit, 400'000, same), 64.0);
  Keyed<SlidingWindow, std::uint64_t> sliding({.rate = 10, .period = hours(1)}, {.max_keys = 500'000});
  EXPECT_LE(bytes_per_key(sliding, 400'000, same), 64.0);
  Keyed<LeakyBucket, std::uint64_t> queues({.rate = 10, .period = hours(1), .queue = 3}, {.max_keys = 500'000});
  EXPECT_LE(bytes_per_key(queues, 400'000, same), 64.0);
}

TEST(KeyedBytes, ALogsEntriesAreCountedAndGivenBack) {
  Keyed<SlidingLog> limits({.rate = 1'000, .period = seconds(1)}, {.max_keys = 100});
  const std::uint64_t empty = limits.figures().bytes;
  for (std::int64_t i = 0; i < 1'000; ++i) limits.try_acquire("k", 1, at(kStart + i));
  const std::uint64_t full = limits.figures().bytes;
  EXPECT_GE(full, empty + 1'000 * 16);
  EXPECT_LE(full, empty + 2'100 * 16 + 4'096);
  limits.try_acquire("k", 1, at(kStart + 2 * kSecond));  // all have left
  EXPECT_LT(limits.figures().bytes, empty + 4'096 + 1'000);
  limits.reset("k", at(kStart));
  EXPECT_LE(limits.figures().bytes, empty + 4'096);
}

TEST(KeyedBytes, LeasesAreCountedAndGivenBack) {
  Keyed<Concurrency> limits({.rate = 1'000}, {.max_keys = 100});
  const std::uint64_t empty = limits.figures().bytes;
  {
    std::vector<Keyed<Concurrency>::Lease> leases;
    for (int i = 0; i < 1'000; ++i) leases.push_back(limits.try_acquire("k", 1, at(kStart)));
    EXPECT_GE(limits.figures().bytes, empty + 1'000 * 24);
    for (auto& lease : leases) EXPECT_TRUE(lease.release(at(kStart)));
  }
  EXPECT_EQ(limits.figures().keys, 0U);
  EXPECT_LE(limits.figures().bytes, empty + 4'096);
}

TEST(KeyedBytes, EvictedAndExpiredStatesGiveTheirMemoryBack) {
  Keyed<SlidingWindow> limits({.rate = 5, .slots = 100}, {.max_keys = 50});
  std::int64_t now = kStart;
  for (int i = 0; i < 5'000; ++i) limits.try_acquire(std::to_string(i), 1, at(now += kSecond / 100));
  EXPECT_LE(limits.figures().keys, 50U);
  EXPECT_LE(limits.figures().bytes, 50 * (101 * 8 + 200) + 20'000U);
}

}  // namespace
}  // namespace sluice
