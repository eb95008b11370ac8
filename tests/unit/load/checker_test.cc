#include "load/checker.h"

#include <gtest/gtest.h>

namespace sluice::load {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kDay = 86'400'000 * kMs;

Time at(std::int64_t milliseconds) { return {.steady = milliseconds * kMs, .utc = 20'000 * kDay + milliseconds * kMs}; }

const Limit kBucket{.algorithm = Algorithm::token_bucket, .rate = 10, .period = 1s, .burst = 30};

Limit windows(Algorithm algorithm, std::uint32_t slots = 1) {
  return {.algorithm = algorithm, .rate = 10, .period = 1s, .slots = slots};
}

TEST(Bound, Buckets) {
  EXPECT_EQ(bound(kBucket, at(0), at(0)), 30U);
  EXPECT_EQ(bound(kBucket, at(0), at(99)), 30U);
  EXPECT_EQ(bound(kBucket, at(0), at(100)), 31U);
  EXPECT_EQ(bound(kBucket, at(0), at(60'000)), 630U);
  EXPECT_EQ(bound({.algorithm = Algorithm::leaky_bucket, .rate = 10, .queue = 2}, at(0), at(1'000)), 13U);
  // No product passes its type.
  const Limit large{.rate = kMaxRate, .period = 1us, .burst = kMaxTokens};
  EXPECT_EQ(bound(large, {}, {.steady = INT64_MAX, .utc = INT64_MAX}), kNoBound);
}

TEST(Bound, WindowsAreCountedWhole) {
  const Limit fixed = windows(Algorithm::fixed_window);
  EXPECT_EQ(bound(fixed, at(0), at(999)), 10U);
  EXPECT_EQ(bound(fixed, at(999), at(1'000)), 20U);
  EXPECT_EQ(bound(fixed, at(0), at(3'500)), 40U);
  EXPECT_EQ(bound(fixed, at(5), at(990), 10ms), 30U);  // the judge's clock may be in the windows beside
  EXPECT_EQ(bound(windows(Algorithm::sliding_window, 10), at(0), at(999)), 10U);
  EXPECT_EQ(bound(windows(Algorithm::sliding_window, 10), at(50), at(1'049)), 20U);
  EXPECT_EQ(bound({.algorithm = Algorithm::fixed_window, .rate = 10, .align = Align::first_hit}, at(0), at(999)), 20U);
  Limit daily = fixed;
  daily.align = Align::calendar;
  EXPECT_EQ(bound(daily, at(0), at(1'000)), 10U);
  EXPECT_EQ(bound(daily, at(-1), at(1'000)), 20U);
  EXPECT_EQ(bound(daily, at(0), at(3 * 86'400'000)), 40U);
}

class CheckerTest : public ::testing::Test {
 protected:
  void admit(Checker::KeyId key, std::int64_t when, int times, std::uint64_t cost = 1) {
    for (int i = 0; i < times; ++i) checker_.note(key, cost, at(when), at(when), Answered::admitted);
  }
  Checker checker_;
};

TEST_F(CheckerTest, OneTokenTooManyIsSeen) {
  const auto key = checker_.key(kBucket, "a");
  admit(key, 0, 30);
  EXPECT_TRUE(checker_.report().is_within());
  admit(key, 50, 1);
  const CheckReport report = checker_.report();
  EXPECT_FALSE(report.is_within());
  EXPECT_EQ(report.excess, 1U);
  EXPECT_EQ(report.keys_over, 1U);
  EXPECT_EQ(report.worst.name, "a");
  EXPECT_EQ(report.worst.bound, 30U);
  EXPECT_EQ(report.worst.admitted, 31U);
}

// What is denied or fails before and after must not stretch the time in which tokens came back.
TEST_F(CheckerTest, OnlyTheTimeOfWhatWasAdmittedCounts) {
  const auto key = checker_.key(kBucket, "a");
  checker_.note(key, 1, at(-10'000), at(-9'000), Answered::failed);
  admit(key, 0, 31);
  checker_.note(key, 1, at(9'000), at(10'000), Answered::denied);
  EXPECT_EQ(checker_.report().excess, 1U);
}

TEST_F(CheckerTest, ALogIsLookedAtInAnyWindow) {
  const auto key = checker_.key(windows(Algorithm::sliding_log), "a");
  admit(key, 0, 10);
  admit(key, 1'000, 10);
  EXPECT_TRUE(checker_.report().is_within());
  // 10 at 1 000 and 1 at 1 999: one too many, though not for the whole.
  admit(key, 1'999, 1);
  EXPECT_EQ(checker_.report().excess, 1U);
  EXPECT_EQ(checker_.report({.restarts = 1}).excess, 0U);
}

TEST_F(CheckerTest, ARequestThatMayHaveBeenJudgedOutsideAWindowIsNotHeldAgainstIt) {
  const auto key = checker_.key(windows(Algorithm::sliding_log), "a");
  admit(key, 0, 10);
  checker_.note(key, 1, at(999), at(1'001), Answered::admitted);
  EXPECT_TRUE(checker_.report().is_within());
}

TEST_F(CheckerTest, LeasesAreCountedOverTheirTtl) {
  const auto key = checker_.key({.algorithm = Algorithm::concurrency, .rate = 2, .ttl = 1s}, "a");
  admit(key, 0, 2);
  admit(key, 1'000, 2);
  EXPECT_TRUE(checker_.report().is_within());
  admit(key, 1'500, 1);
  EXPECT_FALSE(checker_.report().is_within());
}

TEST_F(CheckerTest, RestartsAndEvictionsAllowABurstEach) {
  const auto one = checker_.key(kBucket, "a");
  const auto two = checker_.key(kBucket, "b");
  admit(one, 0, 60);
  admit(two, 0, 30);
  EXPECT_FALSE(checker_.report().is_within());
  EXPECT_TRUE(checker_.report({.restarts = 1}).is_within());
  EXPECT_TRUE(checker_.report({.evictions = 1}).is_within());
  // An eviction is of one key, a restart of all.
  admit(two, 0, 30);
  EXPECT_FALSE(checker_.report({.evictions = 1}).is_within());
  EXPECT_TRUE(checker_.report({.evictions = 2}).is_within());
  EXPECT_TRUE(checker_.report({.restarts = 1}).is_within());
}

TEST_F(CheckerTest, WhatNodesAdmitThemselvesHasABoundOfItsOwn) {
  const auto key = checker_.key(kBucket, "a");
  admit(key, 0, 30);
  const auto rescue = [&](std::int64_t when, int times) {
    for (int i = 0; i < times; ++i) checker_.note(key, 1, at(when), at(when), Answered::admitted_local);
  };
  rescue(1'000, 30);
  rescue(2'000, 10);
  EXPECT_TRUE(checker_.report().is_within());
  rescue(2'000, 1);
  EXPECT_EQ(checker_.report().excess, 1U);
  EXPECT_TRUE(checker_.report({.nodes = 2}).is_within());
}

TEST_F(CheckerTest, WhereAnswersDoNotTellWhoGaveThemAnOutageIsAllowedFor) {
  const auto key = checker_.key(kBucket, "a");
  admit(key, 0, 70);
  EXPECT_FALSE(checker_.report().is_within());
  EXPECT_TRUE(checker_.report({.nodes = 1, .outage = 1s}).is_within());
  admit(key, 0, 1);
  EXPECT_FALSE(checker_.report({.nodes = 1, .outage = 1s}).is_within());
}

TEST_F(CheckerTest, TellsHowMuchOfABoundWasUsed) {
  const auto wanted = checker_.key(kBucket, "wanted");
  admit(wanted, 0, 24);
  for (int i = 0; i < 36; ++i) checker_.note(wanted, 1, at(0), at(0), Answered::denied);
  const auto idle = checker_.key(kBucket, "idle");
  admit(idle, 0, 1);
  const CheckReport report = checker_.report();
  EXPECT_EQ(report.keys_wanted, 1U);
  EXPECT_DOUBLE_EQ(report.used.value(), 0.8);
  EXPECT_DOUBLE_EQ(report.used_least.value(), 0.8);
  EXPECT_EQ(report.worst.name, "wanted");
}

TEST_F(CheckerTest, WhatSeveralHaveSeenAddsUp) {
  Checker other;
  admit(checker_.key(kBucket, "a"), 0, 20);
  const auto elsewhere = other.key(kBucket, "a");
  for (int i = 0; i < 11; ++i) other.note(elsewhere, 1, at(0), at(0), Answered::admitted);
  (void)other.key(kBucket, "b");
  checker_.add(other);
  EXPECT_EQ(checker_.report().keys, 2U);
  EXPECT_EQ(checker_.report().excess, 1U);
}

TEST_F(CheckerTest, TheSameNameUnderAnotherLimitIsAnotherKey) {
  Limit larger = kBucket;
  larger.burst = 31;
  EXPECT_NE(checker_.key(kBucket, "a"), checker_.key(larger, "a"));
  EXPECT_EQ(checker_.key(kBucket, "a"), checker_.key(kBucket, "a"));
}

}  // namespace
}  // namespace sluice::load
