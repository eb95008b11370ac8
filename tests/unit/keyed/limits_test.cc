// New numbers while running: each key at its first call.
#include <gtest/gtest.h>

#include <string>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;

TEST(KeyedSetLimit, TokensStayAndWhatWasEarnedWasEarnedAtTheOldRate) {
  Keyed<TokenBucket> limits({.rate = 1, .burst = 10});
  EXPECT_EQ(limits.try_acquire("spent", 8, at(kStart)).remaining, 2U);
  EXPECT_EQ(limits.try_acquire("hardly", 1, at(kStart)).remaining, 9U);
  limits.set_limit({.rate = 2, .burst = 5}, at(kStart));
  // A second at the old rate, as nobody asked in between; then one at the new.
  EXPECT_EQ(limits.try_acquire("spent", 0, at(kStart + kSecond)).remaining, 3U);
  EXPECT_EQ(limits.peek("spent", 0, at(kStart + 2 * kSecond)).remaining, 5U);
  EXPECT_EQ(limits.peek("hardly", 0, at(kStart)).remaining, 5U);  // cut
  EXPECT_EQ(limits.peek("new", 0, at(kStart)).remaining, 5U);
}

TEST(KeyedSetLimit, ALookTellsTheNewNumbersAndLeavesTheStateToTheOldOnes) {
  Keyed<TokenBucket> limits({.rate = 1, .period = hours(1), .burst = 20});
  EXPECT_EQ(limits.try_acquire("k", 12, at(kStart)).remaining, 8U);
  limits.set_limit({.rate = 1, .period = hours(1), .burst = 5}, at(kStart));
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 5U);
  limits.set_limit({.rate = 1, .period = hours(1), .burst = 20}, at(kStart));
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 8U);
}

TEST(KeyedSetLimit, ALookAtALogThatOtherNumbersMade) {
  Keyed<SlidingLog> limits({.rate = 20, .period = hours(1)});
  EXPECT_EQ(limits.try_acquire("k", 12, at(kStart)).remaining, 8U);
  limits.set_limit({.rate = 5, .period = hours(1)}, at(kStart));
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 0U);
  limits.set_limit({.rate = 20, .period = hours(1)}, at(kStart));
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 8U);
}

template <typename Algorithm>
class KeyedSetLimitOf : public ::testing::Test {};
TYPED_TEST_SUITE(KeyedSetLimitOf, AllAlgorithms);

TYPED_TEST(KeyedSetLimitOf, TheSameNumbersChangeNothing) {
  Keyed<TypeParam> limits(numbers<TypeParam>(5));
  EXPECT_TRUE(check(limits, "k", 3, kStart).allowed);
  const Decision before = limits.peek("k", 1, at(kStart + 1));
  for (int i = 0; i < 40; ++i) limits.set_limit(numbers<TypeParam>(5), at(kStart));
  const Decision after = limits.peek("k", 1, at(kStart + 1));
  EXPECT_EQ(before.remaining, after.remaining);
  EXPECT_EQ(before.reset_after, after.reset_after);
  EXPECT_EQ(before.delay, after.delay);
}

TYPED_TEST(KeyedSetLimitOf, BadNumbersChangeNothing) {
  Keyed<TypeParam> limits(numbers<TypeParam>(5));
  EXPECT_TRUE(check(limits, "k", 3, kStart).allowed);
  EXPECT_THROW(limits.set_limit(numbers<TypeParam>(kMaxRate + 1), at(kStart)), std::invalid_argument);
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 2U);
}

// More than a table tells apart: a key that no call is about is converted on the way.
TYPED_TEST(KeyedSetLimitOf, WhatWasTakenStaysTakenThroughAnyNumberOfThem) {
  Keyed<TypeParam> limits(numbers<TypeParam>(5, hours(1)));
  EXPECT_TRUE(check(limits, "asleep", 3, kStart).allowed);
  for (std::uint64_t more = 1; more <= 100; ++more) {
    limits.set_limit(numbers<TypeParam>(5 + more, hours(1)), at(kStart));
    if (more % 7 == 0) {
      EXPECT_LE(limits.peek("awake", 0, at(kStart)).remaining, 5 + more);
    }
    static_cast<void>(check(limits, "awake", 1, kStart));
  }
  // A bucket's tokens stay; a queue keeps the time of its slots; all others judge what was taken by the new rate.
  const std::uint64_t left = limits.peek("asleep", 0, at(kStart)).remaining;
  if constexpr (std::is_same_v<TypeParam, TokenBucket>) {
    EXPECT_EQ(left, 2U);
  } else if constexpr (std::is_same_v<TypeParam, LeakyBucket>) {
    EXPECT_LT(left, 105U);
    EXPECT_GT(left, 0U);
  } else {
    EXPECT_EQ(left, 102U);
  }
  limits.set_limit(numbers<TypeParam>(5, hours(1)), at(kStart));
  EXPECT_LE(limits.peek("awake", 0, at(kStart)).remaining, 5U);
}

TEST(KeyedSetLimit, AnotherClockStartsAllAnew) {
  // The two clocks are far apart, as they are on a machine.
  const auto moment = [](std::int64_t after) { return Time{.steady = 1'000 + after, .utc = kStart + after}; };
  Keyed<FixedWindow> limits({.rate = 2, .period = seconds(10), .align = Align::epoch});
  for (int i = 0; i < 100; ++i) limits.try_acquire(std::to_string(i), 2, moment(0));
  EXPECT_FALSE(limits.try_acquire("1", 1, moment(1)).allowed);
  limits.set_limit({.rate = 2, .period = seconds(10), .align = Align::first_hit}, moment(1));
  EXPECT_TRUE(limits.try_acquire("1", 2, moment(1)).allowed);
  EXPECT_EQ(limits.try_acquire("1", 1, moment(2)).retry_after, Wait(seconds(10) - std::chrono::nanoseconds(1)));
  // Nobody asks for the others any more; by the old clock they would be there for decades.
  for (std::int64_t t = kSecond; t < 5 * kSecond; t += kSecond / 10) limits.try_acquire("1", 1, moment(t));
  EXPECT_EQ(limits.figures().keys, 1U);
  limits.set_limit({.rate = 2, .period = seconds(1), .align = Align::epoch}, moment(5 * kSecond));
  EXPECT_TRUE(limits.try_acquire("1", 2, moment(5 * kSecond)).allowed);
  for (std::int64_t t = 6 * kSecond; t < 12 * kSecond; t += kSecond / 10) limits.try_acquire("2", 1, moment(t));
  EXPECT_EQ(limits.figures().keys, 1U);
}

TEST(KeyedSetLimit, OtherSlotsStartAWindowAnewAndGiveTheirMemoryBack) {
  Keyed<SlidingWindow> limits({.rate = 5, .slots = 1}, {.max_keys = 1'000});
  for (int i = 0; i < 500; ++i) limits.try_acquire(std::to_string(i), 5, at(kStart));
  const std::uint64_t before = limits.figures().bytes;
  limits.set_limit({.rate = 5, .slots = 100}, at(kStart));
  for (int i = 0; i < 500; ++i) EXPECT_TRUE(limits.try_acquire(std::to_string(i), 5, at(kStart)).allowed);
  EXPECT_GE(limits.figures().bytes, before + 500 * 101 * 8);
  limits.set_limit({.rate = 5, .slots = 1}, at(kStart));
  for (int i = 0; i < 500; ++i) EXPECT_EQ(limits.try_acquire(std::to_string(i), 0, at(kStart)).remaining, 5U);
  EXPECT_EQ(limits.figures().bytes, before);
}

}  // namespace
}  // namespace sluice
