// What all limiters for one key share: the clock that calls without `now` go by, and which verbs there are.
#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <type_traits>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

template <typename Limiter>
class OwnClock : public testing::Test {};

using Limiters = testing::Types<TokenBucket, LeakyBucket, FixedWindow, SlidingWindow, SlidingLog>;
TYPED_TEST_SUITE(OwnClock, Limiters);

// Two tokens, that are there again after `period` at the latest.
template <typename Limiter>
typename Limiter::Numbers two_tokens(nanoseconds period) {
  if constexpr (std::is_same_v<Limiter, TokenBucket>) return {.rate = 2, .period = period, .burst = 2};
  if constexpr (std::is_same_v<Limiter, LeakyBucket>) return {.rate = 2, .period = period, .queue = 1};
  if constexpr (std::is_same_v<typename Limiter::Numbers, FixedWindow::Numbers>) {
    return {.rate = 2, .period = period, .align = Align::epoch, .calendar = {}};
  }
  if constexpr (std::is_same_v<Limiter, SlidingWindow> || std::is_same_v<Limiter, SlidingLog>) {
    return {.rate = 2, .period = period};
  }
}

TYPED_TEST(OwnClock, EveryVerbGoesByTheClockThatWasGiven) {
  SimulatedClock clock;
  const nanoseconds period = seconds(10);
  TypeParam limiter{two_tokens<TypeParam>(period), &clock};
  const auto refill = [&] {
    clock.advance(2 * period);  // also where the window before this one still counts
    return limiter.peek(2).allowed;
  };

  EXPECT_TRUE(limiter.try_acquire(2).allowed);
  EXPECT_FALSE(limiter.peek().allowed);
  const Time later{.steady = clock.now().steady + 2 * period.count(), .utc = clock.now().utc + 2 * period.count()};
  EXPECT_TRUE(limiter.peek(1, later).allowed);
  EXPECT_TRUE(refill());
  EXPECT_FALSE(limiter.settle(0, 2).remaining > 0);
  EXPECT_TRUE(refill());
  EXPECT_EQ(limiter.penalize(1).remaining, 1U);
  EXPECT_EQ(limiter.reset().remaining, 2U);
  if constexpr (requires { limiter.acquire_up_to(5); }) {
    EXPECT_EQ(limiter.acquire_up_to(5).tokens, 2U);
    EXPECT_EQ(limiter.refund(1).remaining, 1U);
    EXPECT_TRUE(refill());
  }
  EXPECT_TRUE(limiter.try_acquire(2).allowed);
  EXPECT_FALSE(limiter.set_limit(two_tokens<TypeParam>(period)).remaining > 0);
  EXPECT_TRUE(refill());
}

TYPED_TEST(OwnClock, TheMachinesWhenNoneWasGiven) {
  TypeParam limiter{two_tokens<TypeParam>(std::chrono::hours(24 * 365))};
  EXPECT_TRUE(limiter.try_acquire().allowed);
  EXPECT_LE(limiter.peek(0).reset_after.value(), std::chrono::hours(24 * 365 * 2));
  EXPECT_GT(limiter.peek(0).reset_after.value(), nanoseconds(0));
}

TEST(OwnClock, OfLeases) {
  SimulatedClock clock;
  Concurrency limit{{.rate = 1, .ttl = seconds(1)}, &clock};
  auto lease = limit.try_acquire();
  ASSERT_TRUE(lease);
  clock.advance(seconds(1) - nanoseconds(1));
  EXPECT_FALSE(limit.try_acquire());
  clock.advance(nanoseconds(1));
  EXPECT_TRUE(limit.peek().allowed);
  EXPECT_FALSE(lease.release());
  lease = limit.try_acquire();
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(limit.set_limit({.rate = 3, .ttl = seconds(1)}).remaining, 3U);
  EXPECT_EQ(limit.reset().remaining, 3U);
}

template <typename Limiter>
concept GivesBack = requires(Limiter limiter, Time now) {
  limiter.refund(1, now);
  limiter.acquire_up_to(1, now);
};
template <typename Limiter>
concept AsksWhenItWasCharged = requires(Limiter limiter, Time now) {
  limiter.refund(1, now, now);
  limiter.settle(1, 2, now, now);
};

static_assert(GivesBack<TokenBucket> && GivesBack<FixedWindow> && GivesBack<SlidingWindow> && GivesBack<SlidingLog>);
static_assert(!GivesBack<LeakyBucket>, "a slot given away could be given twice");
static_assert(AsksWhenItWasCharged<FixedWindow> && AsksWhenItWasCharged<SlidingWindow> &&
              AsksWhenItWasCharged<SlidingLog>);
static_assert(!AsksWhenItWasCharged<TokenBucket> && !AsksWhenItWasCharged<LeakyBucket>);
static_assert(!std::copy_constructible<TokenBucket> && !std::copy_constructible<FixedWindow>);

}  // namespace
}  // namespace sluice
