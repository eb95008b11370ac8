// The verbs, key first.
#include "sluice/keyed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/testing/simulated_clock.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Keyed, EachKeyHasABucketOfItsOwn) {
  Keyed<TokenBucket> limits({.rate = 10, .burst = 30});
  for (std::uint64_t left = 30; left-- > 0;) {
    const Decision decision = limits.try_acquire("alice", 1, at(kStart));
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, left);
  }
  const Decision denied = limits.try_acquire("alice", 1, at(kStart));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, Wait(milliseconds(100)));
  EXPECT_EQ(denied.reset_after, Wait(seconds(3)));
  EXPECT_EQ(limits.try_acquire("bob", 1, at(kStart)).remaining, 29U);
  EXPECT_FALSE(limits.try_acquire("alice", 1, at(kStart + kSecond / 10 - 1)).allowed);
  EXPECT_TRUE(limits.try_acquire("alice", 1, at(kStart + kSecond / 10)).allowed);
}

template <typename Algorithm>
class KeyedOf : public ::testing::Test {};
TYPED_TEST_SUITE(KeyedOf, AllAlgorithms);

TYPED_TEST(KeyedOf, AsksWithoutTakingAndMakesNoKeyOfIt) {
  Keyed<TypeParam> limits(numbers<TypeParam>(3));
  EXPECT_EQ(limits.peek("k", 3, at(kStart)).remaining, 0U);
  EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 3U);
  EXPECT_EQ(check(limits, "k", 0, kStart).remaining, 3U);
  EXPECT_FALSE(check(limits, "k", 4, kStart).allowed);
  EXPECT_TRUE(limits.peek("k", 4, at(kStart)).retry_after.is_never());
  EXPECT_EQ(limits.figures().keys, 0U);
  EXPECT_TRUE(check(limits, "k", 3, kStart).allowed);
  EXPECT_FALSE(limits.peek("k", 1, at(kStart)).allowed);
  EXPECT_EQ(limits.figures().keys, 1U);
}

TYPED_TEST(KeyedOf, AResetKeyIsAsNeverSeen) {
  Keyed<TypeParam> limits(numbers<TypeParam>(3));
  EXPECT_TRUE(check(limits, "k", 3, kStart).allowed);
  EXPECT_TRUE(check(limits, "other", 3, kStart).allowed);
  const Decision answer = limits.reset("k", at(kStart));
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.remaining, 3U);
  EXPECT_EQ(limits.figures().keys, 1U);
  EXPECT_TRUE(check(limits, "k", 3, kStart).allowed);
  EXPECT_FALSE(check(limits, "other", 1, kStart).allowed);
  EXPECT_EQ(limits.reset("unknown", at(kStart)).remaining, 3U);
}

TYPED_TEST(KeyedOf, RefusesNumbersOutOfRangeByName) {
  const auto message = [](const auto& wrong, std::uint64_t max_keys) {
    try {
      Keyed<TypeParam> limits(wrong, {.max_keys = max_keys});
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(numbers<TypeParam>(kMaxRate + 1), 10), ::testing::HasSubstr("rate: must be"));
  EXPECT_EQ(message(numbers<TypeParam>(1), 0), "sluice: max_keys: must be 1 … 1000000000, is 0");
  EXPECT_THAT(message(numbers<TypeParam>(1), 1'000'000'001), ::testing::HasSubstr("max_keys: must be"));
  EXPECT_THAT(message(numbers<TypeParam>(kMaxRate + 1), 0),
              ::testing::AllOf(::testing::HasSubstr("rate: must be"), ::testing::HasSubstr("; max_keys: must be")));
}

TYPED_TEST(KeyedOf, GoesByTheClockItIsGiven) {
  SimulatedClock clock;
  Keyed<TypeParam> limits(numbers<TypeParam>(1), {.clock = &clock});
  EXPECT_TRUE(decision_of(limits.try_acquire("k")).allowed);
  EXPECT_FALSE(decision_of(limits.try_acquire("k")).allowed);
  clock.advance(seconds(2));  // a sliding window needs both
  EXPECT_TRUE(decision_of(limits.try_acquire("k")).allowed);
}

TYPED_TEST(KeyedOf, GoesByTheMachinesClockOtherwise) {
  Keyed<TypeParam> limits(numbers<TypeParam>(1, hours(1)));
  EXPECT_TRUE(decision_of(limits.try_acquire("k")).allowed);
  EXPECT_FALSE(decision_of(limits.try_acquire("k")).allowed);
  EXPECT_LE(limits.peek("k").retry_after, Wait(hours(2)));
  EXPECT_EQ(limits.reset("k").remaining, 1U);
}

TEST(Keyed, TakesAsMuchAsThereIs) {
  Keyed<TokenBucket> buckets({.rate = 1, .burst = 10});
  Keyed<SlidingLog> logs({.rate = 10});
  EXPECT_EQ(buckets.acquire_up_to("k", 7, at(kStart)).tokens, 7U);
  EXPECT_EQ(buckets.acquire_up_to("k", 7, at(kStart)).tokens, 3U);
  EXPECT_EQ(buckets.acquire_up_to("k", 7, at(kStart)).tokens, 0U);
  EXPECT_EQ(logs.acquire_up_to("k", 11, at(kStart)).tokens, 10U);
  EXPECT_EQ(logs.acquire_up_to("k", 1, at(kStart)).decision.remaining, 0U);
}

TEST(Keyed, GivesBackSettlesAndPenalizes) {
  Keyed<TokenBucket> limits({.rate = 1, .burst = 10});
  EXPECT_EQ(limits.try_acquire("k", 8, at(kStart)).remaining, 2U);
  EXPECT_EQ(limits.refund("k", 3, at(kStart)).remaining, 5U);
  EXPECT_EQ(limits.settle("k", 8, 6, at(kStart)).remaining, 7U);
  EXPECT_EQ(limits.settle("k", 6, 20, at(kStart)).remaining, 0U);  // a debt of 7
  EXPECT_EQ(limits.peek("k", 1, at(kStart)).retry_after, Wait(seconds(8)));
  EXPECT_EQ(limits.penalize("k", 100, at(kStart)).reset_after, Wait(seconds(20)));  // at most the burst deep
  EXPECT_EQ(limits.penalize("new", 4, at(kStart)).remaining, 6U);
  EXPECT_EQ(limits.refund("nobody", 4, at(kStart)).remaining, 10U);
  EXPECT_EQ(limits.figures().keys, 2U);
}

TEST(Keyed, ARefundThatKnowsItsChargeIsNothingOnceThatIsOver) {
  Keyed<FixedWindow> limits({.rate = 10});
  limits.try_acquire("k", 5, at(kStart));
  const std::int64_t next = kStart + kSecond;
  limits.try_acquire("k", 2, at(next));
  EXPECT_EQ(limits.refund("k", 2, at(next), at(kStart)).remaining, 8U);
  EXPECT_EQ(limits.refund("k", 1, at(next), at(next)).remaining, 9U);
  EXPECT_EQ(limits.settle("k", 1, 0, at(next), at(kStart)).remaining, 9U);
}

TEST(Keyed, ADebtTooDeepForTheTableIsKeptAllTheSame) {
  Keyed<TokenBucket> limits({.rate = 1, .period = hours(24 * 365), .burst = 10}, {.max_keys = 100});
  EXPECT_TRUE(limits.try_acquire("k", 1, at(kStart)).allowed);
  const std::uint64_t before = limits.figures().bytes;
  EXPECT_EQ(limits.settle("k", 0, kMaxTokens, at(kStart)).remaining, 0U);
  EXPECT_GT(limits.figures().bytes, before);
  EXPECT_EQ(limits.refund("k", kMaxTokens, at(kStart)).remaining, 9U);
  limits.reset("k", at(kStart));
  EXPECT_EQ(limits.figures().bytes, before);
}

TEST(Keyed, ManyAtOnceAreAsOneAfterTheOther) {
  Keyed<TokenBucket, std::uint32_t> at_once({.rate = 1, .burst = 3});
  Keyed<TokenBucket, std::uint32_t> in_turn({.rate = 1, .burst = 3});
  std::vector<std::uint32_t> keys;
  std::vector<std::uint64_t> costs;
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    keys.push_back(i * i % 301);
    costs.push_back(i % 3);
  }
  std::vector<Decision> decisions(keys.size());
  const auto compare = [&](std::span<const std::uint64_t> wanted, Time now) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Decision want = in_turn.try_acquire(keys[i], wanted.empty() ? 1 : wanted[i], now);
      EXPECT_EQ(decisions[i].allowed, want.allowed);
      EXPECT_EQ(decisions[i].remaining, want.remaining);
      EXPECT_EQ(decisions[i].retry_after, want.retry_after);
    }
  };
  at_once.try_acquire_many(std::span<const std::uint32_t>(keys), std::span(decisions), at(kStart));
  compare({}, at(kStart));
  const std::span<const std::uint64_t> own(costs);
  at_once.try_acquire_many(std::span<const std::uint32_t>(keys), std::span(decisions), at(kStart + kSecond), own);
  compare(own, at(kStart + kSecond));
  at_once.try_acquire_many(std::span<const std::uint32_t>(), std::span<Decision>());
}

TEST(Keyed, ManyTakesViewsOfKeys) {
  Keyed<FixedWindow> limits({.rate = 1});
  const std::array<std::string_view, 3> keys = {"a", "b", "a"};
  std::array<Decision, 3> decisions;
  limits.try_acquire_many(std::span<const std::string_view>(keys), std::span<Decision>(decisions), at(kStart));
  EXPECT_TRUE(decisions[0].allowed);
  EXPECT_TRUE(decisions[1].allowed);
  EXPECT_FALSE(decisions[2].allowed);
}

TEST(Keyed, ManyTakesContainersOfKeysOrViews) {
  Keyed<TokenBucket> limits({.rate = 1, .burst = 1});
  const std::vector<std::string> keys = {"a", "b"};
  std::vector<Decision> decisions(2);
  limits.try_acquire_many(keys, decisions, at(kStart));
  EXPECT_TRUE(decisions[0].allowed && decisions[1].allowed);
  const std::array<std::string_view, 2> views = {"b", "c"};
  limits.try_acquire_many(views, decisions, at(kStart), std::vector<std::uint64_t>{1, 2});
  EXPECT_FALSE(decisions[0].allowed);
  EXPECT_TRUE(decisions[1].retry_after.is_never());
  Keyed<TokenBucket, std::string_view> of_views({.rate = 0, .burst = 1});
  of_views.try_acquire_many(views, decisions);
  EXPECT_TRUE(decisions[0].allowed && decisions[1].allowed);
  Keyed<TokenBucket, std::uint32_t> of_numbers({.rate = 0, .burst = 1});
  of_numbers.try_acquire_many(std::vector<std::uint32_t>{7, 7}, decisions);
  EXPECT_TRUE(decisions[0].allowed);
  EXPECT_FALSE(decisions[1].allowed);
}

TEST(KeyedConcurrency, ALeaseFreesItselfAtTheEnd) {
  Keyed<Concurrency> limits({.rate = 2});
  {
    const auto first = limits.try_acquire("k", 1, at(kStart));
    auto second = limits.try_acquire(std::string("k"), 1, at(kStart));
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_NE(first.id(), second.id());
    EXPECT_FALSE(limits.try_acquire("k", 1, at(kStart)));
    EXPECT_TRUE(limits.try_acquire("other", 2, at(kStart)));
    EXPECT_TRUE(second.release(at(kStart)));
    EXPECT_FALSE(second.release(at(kStart)));
    EXPECT_EQ(limits.peek("k", 0, at(kStart)).remaining, 1U);
  }
  EXPECT_EQ(limits.figures().keys, 0U);  // nothing held: gone at once
}

TEST(KeyedConcurrency, LeasesMoveAndDetach) {
  Keyed<Concurrency, int> limits({.rate = 1});
  auto lease = limits.try_acquire(7);
  auto moved = std::move(lease);
  EXPECT_FALSE(limits.peek(7).allowed);
  const std::uint64_t id = moved.detach();
  EXPECT_NE(id, 0U);
  EXPECT_FALSE(moved.release());
  EXPECT_FALSE(limits.release(8, id));
  EXPECT_FALSE(limits.release(7, id + 1));
  EXPECT_TRUE(limits.release(7, id));
  EXPECT_FALSE(limits.release(7, id));
  auto one = limits.try_acquire(1);
  auto two = limits.try_acquire(2);
  one = std::move(two);  // gives the first back
  EXPECT_TRUE(limits.peek(1).allowed);
  EXPECT_FALSE(limits.peek(2).allowed);
  EXPECT_EQ(limits.try_acquire(3, 0).id(), 0U);
}

// NOLINTBEGIN(bugprone-use-after-move): that is what this is about
TEST(KeyedConcurrency, AMovedFromLeaseReadsAsDenied) {
  Keyed<Concurrency, int> limits({.rate = 1});
  auto lease = limits.try_acquire(7);
  auto moved = std::move(lease);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(lease);
  EXPECT_EQ(lease.id(), 0U);
  lease = std::move(moved);
  EXPECT_TRUE(lease);
  EXPECT_FALSE(moved);
  EXPECT_EQ(moved.id(), 0U);
  EXPECT_FALSE(moved.release());
  EXPECT_FALSE(limits.peek(7).allowed);
}
// NOLINTEND(bugprone-use-after-move)

// A key that was forgotten and is there again must not take an old lease for a new one.
TEST(KeyedConcurrency, AnIdIsNeverGivenTwice) {
  Keyed<Concurrency> limits({.rate = 1, .ttl = seconds(1)});
  const std::uint64_t old = limits.try_acquire("k", 1, at(kStart)).detach();
  limits.reset("k", at(kStart));
  const auto fresh = limits.try_acquire("k", 1, at(kStart));
  EXPECT_TRUE(fresh);
  EXPECT_NE(fresh.id(), old);
  EXPECT_FALSE(limits.release("k", old, at(kStart)));
  EXPECT_FALSE(limits.peek("k", 1, at(kStart)).allowed);
}

TEST(KeyedConcurrency, ALeaseTimesOut) {
  Keyed<Concurrency> limits({.rate = 1, .ttl = seconds(60)});
  auto lease = limits.try_acquire("k", 1, at(kStart));
  EXPECT_FALSE(limits.try_acquire("k", 1, at(kStart + 60 * kSecond - 1)));
  EXPECT_TRUE(limits.try_acquire("k", 1, at(kStart + 60 * kSecond)));
  EXPECT_FALSE(lease.release(at(kStart + 60 * kSecond)));
}

}  // namespace
}  // namespace sluice
