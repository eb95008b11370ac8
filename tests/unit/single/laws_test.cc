// Laws that hold for every limiter in every state, seen as a program sees them: through decisions only. The seed is
// SLUICE_SEED (default 1).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "tests/unit/algorithm/random_limits.h"
#include "tests/unit/single/any_limiter.h"

namespace sluice {
namespace {

using algorithm::kDay;
using algorithm::kNewYear;
using algorithm::kSecond;
using algorithm::Random;
using algorithm::Uint128;

constexpr int kCases = 1'500;
constexpr int kOperations = 30;
constexpr std::int64_t kLongest = kLongestWait.count();
// Longer waits end after the times that are told apart.
constexpr std::int64_t kEnd = algorithm::kLatest - 3 * kMaxPeriod.count();

Time both(std::int64_t now) { return {.steady = now, .utc = now}; }

std::int64_t ns(Wait wait) { return wait.value().count(); }

// Of the kinds that only the library's limiters have, too.
Limit any_limit(Algorithm algorithm, Random& random) {
  Limit limit = algorithm::random_limit(algorithm, random);
  limit.ttl = limit.period;
  if (algorithm == Algorithm::sliding_window && limit.period.count() % 4'000 == 0) limit.slots = 4;
  if (algorithm == Algorithm::fixed_window) limit.count_denied = random.between(0, 3) == 0;
  return limit;
}

// A limiter to which something has happened, at a time not before the newest of that.
struct Case {
  Limit limit;
  std::unique_ptr<AnyLimiter> limiter;
  std::int64_t newest = 0;  // time of the newest operation
  std::int64_t now = 0;

  [[nodiscard]] Decision peek(std::uint64_t cost, std::int64_t ns_later = 0) const {
    return limiter->peek(cost, both(now + ns_later));
  }
  [[nodiscard]] std::uint64_t most() const { return peek(0).limit; }
};

void do_something(Case& one, Random& random) {
  const std::uint64_t cost = algorithm::random_cost(one.most(), random);
  const Time now = both(one.now);
  switch (random.between(0, 12)) {
    case 0:
      one.limiter->refund(cost, now, random.between(0, 1) == 0 ? std::nullopt : std::optional(both(one.newest)));
      break;
    case 1:
      one.limiter->settle(0, cost, now);
      break;
    case 2:
      one.limiter->penalize(cost, now);
      break;
    case 3:
      one.limiter->release(now);
      break;
    case 4:
      one.limiter->acquire_up_to(cost, now);
      break;
    case 5:
      if (random.between(0, 3) == 0) {
        const Limit next = any_limit(one.limit.algorithm, random);
        one.limiter->set_limit(next, now);
        one.limit = next;
      }
      break;
    case 6:
      if (random.between(0, 5) == 0) one.limiter->reset(now);
      break;
    default:
      one.limiter->check(cost, now);
  }
  one.newest = one.now;
}

Case random_case(Algorithm algorithm, Random& random) {
  const Limit limit = any_limit(algorithm, random);
  Case one{.limit = limit, .limiter = any_limiter(limit), .newest = kNewYear, .now = kNewYear};
  for (std::int64_t left = random.between(0, kOperations); left > 0; --left) {
    one.now += algorithm::random_step(one.limit, random);
    do_something(one, random);
  }
  one.now += algorithm::random_step(one.limit, random);
  return one;
}

// All that can be seen of a state: what costs of some sizes are told, now and later.
std::vector<Decision> sight(const AnyLimiter& limiter, const Limit& limit, std::int64_t now) {
  std::vector<Decision> seen;
  const std::int64_t period = limit.period.count();
  for (const std::int64_t later : {std::int64_t{0}, std::int64_t{1}, period / 3, period - 1, period, 2 * period}) {
    const Decision present = limiter.peek(0, both(now + later));
    for (const std::uint64_t cost : {std::uint64_t{0}, std::uint64_t{1}, present.remaining, present.limit}) {
      seen.push_back(limiter.peek(cost, both(now + later)));
    }
  }
  return seen;
}

class Laws : public testing::TestWithParam<Algorithm> {
 protected:
  template <typename Law>
  void for_all_cases(Law law) {
    Random random(algorithm::seed() + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kCases && !HasFailure(); ++i) {
      Case one = random_case(GetParam(), random);
      SCOPED_TRACE("SLUICE_SEED=" + std::to_string(algorithm::seed()) + " case " + std::to_string(i));
      law(one, algorithm::random_cost(one.most(), random));
    }
  }
};

TEST_P(Laws, PeekTellsWhatTryAcquireWouldAnswerAndChangesNothing) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const std::vector<Decision> before = sight(*one.limiter, one.limit, one.now);
    const Decision peeked = one.peek(cost);
    ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == before);
    ASSERT_TRUE(one.limiter->check(cost, both(one.now)) == peeked);
  });
}

TEST_P(Laws, ADenialChangesNothing) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    if (one.limit.count_denied) return;
    const std::vector<Decision> before = sight(*one.limiter, one.limit, one.now);
    if (one.limiter->check(cost, both(one.now)).allowed) return;
    ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == before);
  });
}

TEST_P(Laws, CostZeroIsAllowedAndTakesNothing) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const std::vector<Decision> before = sight(*one.limiter, one.limit, one.now);
    ASSERT_TRUE(one.limiter->check(0, both(one.now)).allowed);
    ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == before);
  });
}

TEST_P(Laws, ExactlyAfterRetryAfterItPassesAndOneTickEarlierNot) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const Decision decision = one.peek(cost);
    if (decision.allowed) {
      ASSERT_EQ(ns(decision.retry_after), 0);
      return;
    }
    ASSERT_EQ(decision.retry_after.is_never(), cost > decision.limit);
    if (cost > decision.limit || ns(decision.retry_after) >= kEnd - one.now) return;
    ASSERT_GT(ns(decision.retry_after), 0);
    ASSERT_FALSE(one.peek(cost, ns(decision.retry_after) - 1).allowed);
    ASSERT_TRUE(one.limiter->check(cost, both(one.now + ns(decision.retry_after))).allowed);
  });
}

TEST_P(Laws, RemainingCanBeTakenAtOnceAndNotOneMore) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const Decision present = one.peek(0);
    ASSERT_LE(present.remaining, present.limit);
    ASSERT_FALSE(one.peek(present.remaining + 1).allowed);
    const Decision taken = one.limiter->check(present.remaining, both(one.now));
    ASSERT_TRUE(taken.allowed);
    ASSERT_EQ(taken.remaining, 0U);
  });
}

TEST_P(Laws, AcquireUpToTakesAllThatThereIs) {
  if (GetParam() == Algorithm::leaky_bucket || GetParam() == Algorithm::concurrency) GTEST_SKIP();
  for_all_cases([](Case& one, std::uint64_t cost) {
    const std::uint64_t there = one.peek(0).remaining;
    ASSERT_EQ(one.limiter->acquire_up_to(cost, both(one.now)), std::min(cost, there));
    ASSERT_EQ(one.peek(0).remaining, there - std::min(cost, there));
  });
}

TEST_P(Laws, AfterResetAfterNothingIsLeftOfWhatHappened) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const Wait reset = one.peek(0).reset_after;
    if (reset.is_never() || ns(reset) >= kEnd - one.now) return;
    const std::int64_t then = one.now + ns(reset);
    ASSERT_TRUE(sight(*one.limiter, one.limit, then) == sight(*any_limiter(one.limit), one.limit, then));
  });
}

TEST_P(Laws, ARefundRestoresWhatWasTakenButGivesNoSlotTwice) {
  if (GetParam() == Algorithm::concurrency) GTEST_SKIP();
  for_all_cases([](Case& one, std::uint64_t cost) {
    const Decision before = one.peek(0);
    // A window that opens with the first hit stays open.
    if (one.limit.align == Align::first_hit && ns(before.reset_after) == 0) return;
    if (!one.limiter->check(cost, both(one.now)).allowed) return;
    const std::vector<Decision> taken = sight(*one.limiter, one.limit, one.now);
    one.limiter->refund(cost, both(one.now), both(one.now));
    if (one.limit.algorithm == Algorithm::leaky_bucket) {
      ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == taken);
    } else {
      ASSERT_TRUE(one.peek(0) == before);
    }
  });
}

TEST_P(Laws, SettlingForLessIsARefundAndForAsMuchIsNothing) {
  if (GetParam() == Algorithm::concurrency || GetParam() == Algorithm::leaky_bucket) GTEST_SKIP();
  for_all_cases([](Case& one, std::uint64_t cost) {
    if (one.limit.align == Align::first_hit && ns(one.peek(0).reset_after) == 0) return;
    const Decision before = one.peek(0);
    if (!one.limiter->check(cost, both(one.now)).allowed) return;
    const Decision taken = one.peek(0);
    one.limiter->settle(cost, cost, both(one.now));
    ASSERT_TRUE(one.peek(0) == taken);
    one.limiter->settle(cost, 0, both(one.now));
    ASSERT_TRUE(one.peek(0) == before);
  });
}

TEST_P(Laws, TheSameNumbersChangeNothing) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const std::vector<Decision> before = sight(*one.limiter, one.limit, one.now);
    one.limiter->set_limit(one.limit, both(one.now));
    ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == before);
  });
}

TEST_P(Laws, ResetIsAsNeverUsed) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    one.limiter->reset(both(one.now));
    ASSERT_TRUE(sight(*one.limiter, one.limit, one.now) == sight(*any_limiter(one.limit), one.limit, one.now));
  });
}

// An older `now` gets no more than the newest. Buckets may answer it as itself, and then refuse at worst for as many ns
// as it is late; all others answer it as the newest.
TEST_P(Laws, AnOlderNowIsGivenNoMoreThanTheNewest) {
  const bool is_bucket = GetParam() == Algorithm::token_bucket || GetParam() == Algorithm::leaky_bucket;
  for_all_cases([&](Case& one, std::uint64_t cost) {
    one.limiter->check(1, both(one.now));  // mostly a change, which makes `now` the newest time
    const Decision newest = one.peek(cost);
    for (const std::int64_t late : {std::int64_t{1}, std::int64_t{1'000'003}, kDay}) {
      const Decision older = one.peek(cost, -late);
      if (older.allowed) {
        ASSERT_TRUE(newest.allowed);
      }
      ASSERT_LE(one.peek(0, -late).remaining, one.peek(0).remaining);
      ASSERT_EQ(older.limit, newest.limit);
      if (is_bucket && newest.allowed && !older.allowed) {
        ASSERT_LE(ns(older.retry_after), late);
      }
    }
  });
}

TEST_P(Laws, AClockThatJumpsBothWaysNeverGivesMore) {
  Random random(algorithm::seed());
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const Limit limit = any_limit(GetParam(), random);
    if (limit.count_denied) continue;
    const auto limiter = any_limiter(limit);
    std::int64_t highest = kNewYear;
    // As many as are there at first; then no more, however often the clock is set back and comes to that time again.
    while (limiter->check(std::max<std::uint64_t>(1, limiter->peek(0, both(kNewYear)).remaining), both(kNewYear))
               .allowed) {
    }
    for (int k = 0; k < 50; ++k) {
      ASSERT_FALSE(limiter->check(1, both(highest - random.size(100 * kDay))).allowed);
      ASSERT_FALSE(limiter->check(1, both(highest)).allowed);
    }
    ASSERT_EQ(limiter->peek(0, both(highest)).remaining, 0U);
  }
}

// No time, cost or order of calls breaks a limiter: all it tells keeps to the ranges.
TEST_P(Laws, AbsurdTimesAndCostsAreAnswered) {
  Random random(algorithm::seed());
  const std::vector<std::int64_t> times{INT64_MIN, INT64_MIN + 1, -(std::int64_t{1} << 62), -kNewYear,     -1,       0,
                                        1,         kNewYear,      std::int64_t{1} << 62,    INT64_MAX - 1, INT64_MAX};
  const std::vector<std::uint64_t> costs{0, 1, 2, 7, kMaxTokens, kMaxTokens + 1, UINT64_MAX - 1, UINT64_MAX};
  const auto any = [&](const auto& values) {
    return values[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(values.size()) - 1))];
  };
  for (int i = 0; i < 300 && !HasFailure(); ++i) {
    const Limit limit = any_limit(GetParam(), random);
    const auto limiter = any_limiter(limit);
    for (int k = 0; k < 60; ++k) {
      const Time now{.steady = any(times), .utc = any(times)};
      const std::uint64_t cost = any(costs);
      switch (random.between(0, 8)) {
        case 0:
          limiter->refund(cost, now, Time{.steady = any(times), .utc = any(times)});
          break;
        case 1:
          limiter->settle(cost, any(costs), now);
          break;
        case 2:
          limiter->penalize(cost, now);
          break;
        case 3:
          limiter->set_limit(limit, now);
          break;
        case 4:
          ASSERT_LE(limiter->acquire_up_to(cost, now), cost);
          break;
        default: {
          const Decision decision = limiter->check(cost, now);
          ASSERT_TRUE(!decision.allowed || cost <= decision.limit);
          ASSERT_TRUE(decision.allowed || cost != 0);
          ASSERT_LE(decision.remaining, decision.limit);
          ASSERT_EQ(decision.allowed, decision.retry_after == Wait());
          for (const Wait wait : {decision.retry_after, decision.reset_after, decision.delay}) {
            ASSERT_GE(wait, Wait());
            ASSERT_TRUE(wait.is_never() || wait.value() <= kLongestWait);
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Laws,
                         testing::Values(Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency));

struct Admitted {
  std::int64_t at;
  std::uint64_t cost;
};

// What a caller gets that asks again and again, often at the first time that it was told.
std::vector<Admitted> admissions(AnyLimiter& limiter, const Limit& limit, Random& random) {
  std::vector<Admitted> admitted;
  std::int64_t now = kNewYear;
  for (int k = 0; k < 120; ++k) {
    const std::uint64_t cost = algorithm::random_cost(limiter.peek(0, both(now)).limit, random);
    const Decision decision = limiter.check(cost, both(now));
    const bool told = ns(decision.delay) < kLongest;  // a longer delay is told as this one
    if (decision.allowed && told) admitted.push_back({now + ns(decision.delay), cost});
    const bool soon = !decision.retry_after.is_never() && ns(decision.retry_after) < kDay;
    now += soon && random.between(0, 1) == 0 ? ns(decision.retry_after) : algorithm::random_step(limit, random);
  }
  return admitted;
}

// Calls bound(first, last, sum of the costs from first to last) for all pairs of admissions.
void for_all_intervals(Algorithm algorithm,
                       const std::function<void(const Limit&, const Admitted&, const Admitted&, Uint128)>& bound) {
  Random random(algorithm::seed());
  for (int i = 0; i < 200 && !testing::Test::HasFailure(); ++i) {
    const Limit limit = any_limit(algorithm, random);
    const std::vector<Admitted> admitted = admissions(*any_limiter(limit), limit, random);
    for (std::size_t first = 0; first < admitted.size(); ++first) {
      Uint128 sum = 0;
      for (std::size_t last = first; last < admitted.size(); ++last) {
        sum += admitted[last].cost;
        bound(limit, admitted[first], admitted[last], sum);
      }
    }
  }
}

TEST(BoundOfATokenBucket, BurstPlusRateTimesWindow) {
  for_all_intervals(Algorithm::token_bucket,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      const auto period = static_cast<Uint128>(limit.period.count());
                      const auto elapsed = static_cast<std::uint64_t>(last.at - first.at);
                      ASSERT_TRUE(sum * period <= limit.burst * period + Uint128{limit.rate} * elapsed);
                    });
}

TEST(BoundOfALeakyBucket, NothingLeavesFasterThanTheRate) {
  // The slots of all but the last admission lie between the two times, but for the tick that a delay is rounded up by.
  for_all_intervals(Algorithm::leaky_bucket,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      const auto period = static_cast<Uint128>(limit.period.count());
                      const auto elapsed = static_cast<std::uint64_t>(last.at - first.at) + 1;
                      ASSERT_TRUE((sum - last.cost) * period <= Uint128{limit.rate} * elapsed);
                    });
}

TEST(BoundOfAFixedWindow, RateInEachWindow) {
  for_all_intervals(Algorithm::fixed_window,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      const std::int64_t period = limit.period.count();
                      if (limit.align == Align::epoch && first.at / period == last.at / period) {
                        ASSERT_TRUE(sum <= limit.rate);
                      }
                      // Any interval of a period's length has parts of two windows.
                      if (last.at - first.at < period) {
                        ASSERT_TRUE(sum <= 2 * limit.rate);
                      }
                    });
}

TEST(BoundOfASlidingWindow, TwoSlotsMoreAtMost) {
  for_all_intervals(Algorithm::sliding_window,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      const std::int64_t period = limit.period.count();
                      const std::int64_t slot = period / limit.slots;
                      if (first.at / slot + limit.slots > last.at / slot) {
                        ASSERT_TRUE(sum <= limit.rate);  // all in one window of whole slots
                      } else if (last.at - first.at < period) {
                        ASSERT_TRUE(sum <= 2 * limit.rate);
                      }
                    });
}

TEST(BoundOfASlidingLog, RateInAnyIntervalOfThePeriod) {
  for_all_intervals(Algorithm::sliding_log,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      if (last.at - first.at < limit.period.count()) {
                        ASSERT_TRUE(sum <= limit.rate);
                      }
                    });
}

TEST(BoundOfConcurrency, RateHeldAtAnyTime) {
  // Nothing is released, so all of the last ttl are held.
  for_all_intervals(Algorithm::concurrency,
                    [](const Limit& limit, const Admitted& first, const Admitted& last, Uint128 sum) {
                      if (last.at - first.at < limit.ttl.count()) {
                        ASSERT_TRUE(sum <= limit.rate);
                      }
                    });
}

// Asks for `cost` again and again, each time as early as it can be had.
std::uint64_t greedy(AnyLimiter& limiter, std::uint64_t cost, std::int64_t length) {
  std::uint64_t admitted = 0;
  for (std::int64_t at = 0; at <= length;) {
    const Decision decision = limiter.check(cost, both(kNewYear + at));
    if (decision.allowed) {
      admitted += cost;
    } else {
      at += ns(decision.retry_after);
    }
  }
  return admitted;
}

TEST(NoDrift, OverLongRuns) {
  const auto bucket = [](std::uint64_t rate, std::int64_t period, std::uint64_t burst) {
    return any_limiter({.rate = rate, .period = std::chrono::nanoseconds(period), .burst = burst});
  };
  EXPECT_EQ(greedy(*bucket(3, kSecond, 4), 1, kDay), 4 + 259'200U);
  EXPECT_EQ(greedy(*bucket(7, 60 * kSecond, 7), 1, 30 * kDay), 7 + 7 * 60 * 24 * 30U);
  EXPECT_EQ(greedy(*bucket(1'000'003, kSecond, 4'000), 1, kSecond), 4'000 + 1'000'003U);
  EXPECT_EQ(greedy(*bucket(1'000'000'000, kSecond, 6'000), 1'500, kSecond), (6'000 + 1'000'000'000U) / 1'500 * 1'500);
  const auto queue = any_limiter({.algorithm = Algorithm::leaky_bucket, .rate = 7, .queue = 3});
  EXPECT_EQ(greedy(*queue, 1, kDay), 4 + 7 * 86'400U);
  const auto log = any_limiter({.algorithm = Algorithm::sliding_log, .rate = 7});
  EXPECT_EQ(greedy(*log, 1, kDay), 7 * 86'401U);
}

}  // namespace
}  // namespace sluice
