// No drift: what a greedy caller gets over a long run is exact to the token.
#include <gtest/gtest.h>

#include "algorithm/int128.h"
#include "algorithm/token_bucket.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

struct Numbers {
  std::uint64_t rate;
  std::int64_t period;
  std::uint64_t burst;
};

std::uint64_t earned(const Numbers& numbers, std::int64_t elapsed) {
  return static_cast<std::uint64_t>(Uint128{numbers.rate} * static_cast<std::uint64_t>(elapsed) /
                                    static_cast<std::uint64_t>(numbers.period));
}

// Asks for `cost` again and again, each time as early as it can be had.
std::uint64_t greedy(const Numbers& numbers, std::uint64_t cost, std::int64_t length) {
  const TokenBucket limit(numbers.rate, numbers.period, numbers.burst, Tick::nanosecond);
  TokenBucket::State state;
  std::uint64_t admitted = 0;
  std::int64_t now = kNewYear;
  while (now <= kNewYear + length) {
    const Verdict verdict = limit.decide(state, now, cost).verdict;
    if (verdict.fits) {
      admitted += cost;
    } else {
      now += verdict.retry_after;
    }
  }
  return admitted;
}

// Takes all that is there, every `step`.
std::uint64_t drain(const Numbers& numbers, std::int64_t step, std::int64_t length) {
  const TokenBucket limit(numbers.rate, numbers.period, numbers.burst, Tick::nanosecond);
  TokenBucket::State state;
  std::uint64_t admitted = 0;
  for (std::int64_t at = 0; at <= length; at += step) {
    const std::uint64_t all = limit.view(state, kNewYear + at).remaining;
    EXPECT_TRUE(limit.decide(state, kNewYear + at, all).verdict.fits);
    admitted += all;
  }
  return admitted;
}

TEST(LongRun, ThreeASecondForADay) {
  const Numbers numbers{3, kSecond, 4};
  EXPECT_EQ(greedy(numbers, 1, kDay), numbers.burst + 259'200);
  EXPECT_EQ(drain(numbers, 7 * kMillisecond, kDay),
            numbers.burst + earned(numbers, kDay / (7 * kMillisecond) * (7 * kMillisecond)));
}

TEST(LongRun, SevenAMinuteForAYear) {
  const Numbers numbers{7, kMinute, 7};
  EXPECT_EQ(greedy(numbers, 1, 365 * kDay), numbers.burst + 7 * 60 * 24 * 365);
}

TEST(LongRun, AMillionAndThreeASecondForAnHour) {
  const Numbers numbers{1'000'003, kSecond, 4'000};
  EXPECT_EQ(drain(numbers, kMillisecond, kHour), numbers.burst + 3'600 * std::uint64_t{1'000'003});
  EXPECT_EQ(greedy(numbers, 1, kSecond), numbers.burst + 1'000'003);
}

TEST(LongRun, AGigabyteASecondInPacketsOf1500) {
  const Numbers numbers{1'000'000'000, kSecond, 6'000};
  EXPECT_EQ(greedy(numbers, 1'500, kSecond), (numbers.burst + 1'000'000'000) / 1'500 * 1'500);
  EXPECT_EQ(drain(numbers, 5 * kMicrosecond, kSecond), numbers.burst + 1'000'000'000);
}

TEST(LongRun, EveryRateEarnsExactlyItsRate) {
  for (const Numbers& numbers :
       {Numbers{1, 3 * kSecond, 2}, Numbers{999, 7 * kMicrosecond, 12'000}, Numbers{600'000'000, kSecond, 2'000'000},
        Numbers{5, kDay, 5}, Numbers{1'000'000'000'000, kMicrosecond, 1'000'000'000'000'000}}) {
    for (const std::int64_t step : {std::int64_t{1}, std::int64_t{997}, std::int64_t{1'000}}) {
      EXPECT_EQ(drain(numbers, step, 100'000 * step), numbers.burst + earned(numbers, 100'000 * step)) << numbers.rate;
    }
  }
}

}  // namespace
}  // namespace sluice::algorithm
