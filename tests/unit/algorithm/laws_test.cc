// Laws that hold for every limit in every state, tried on random ones. The seed is SLUICE_SEED (default 1).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm/compiled_limit.h"
#include "algorithm/int128.h"
#include "tests/unit/algorithm/instants.h"
#include "tests/unit/algorithm/random_limits.h"

namespace sluice::algorithm {
namespace {

constexpr int kCases = 3'000;
constexpr int kOperations = 30;

bool operator==(const Outcome& a, const Outcome& b) {
  return a.verdict.fits == b.verdict.fits && a.verdict.mark == b.verdict.mark &&
         a.verdict.retry_after == b.verdict.retry_after && a.verdict.delay == b.verdict.delay &&
         a.view.limit == b.view.limit && a.view.remaining == b.view.remaining &&
         a.view.reset_after == b.view.reset_after;
}

// A random limit in a random state, at a random time.
struct Case {
  Limit limit;
  CompiledLimit compiled;
  CompiledLimit::State state;
  std::int64_t now = 0;
};

Case random_case(Algorithm algorithm, Random& random) {
  const Limit limit = random_limit(algorithm, random);
  Case one{.limit = limit, .compiled = *CompiledLimit::compile(limit, Tick::nanosecond), .state{}, .now = kNewYear};
  for (std::int64_t left = random.between(0, kOperations); left > 0; --left) {
    one.now += random_step(limit, random);
    const std::uint64_t cost = random_cost(one.compiled.limit(), random);
    switch (random.between(0, 9)) {
      case 0:
        one.compiled.refund(one.state, one.now, cost);
        break;
      case 1:
        one.compiled.settle(one.state, one.now, 0, cost);
        break;
      case 2:
        one.compiled.penalize(one.state, one.now, cost);
        break;
      default:
        static_cast<void>(one.compiled.decide(one.state, one.now, cost));
    }
  }
  one.now += random_step(limit, random);
  return one;
}

class Laws : public testing::TestWithParam<Algorithm> {
 protected:
  template <typename Law>
  void for_all_cases(Law law) {
    Random random(seed() + static_cast<std::uint64_t>(GetParam()));
    for (int i = 0; i < kCases && !HasFailure(); ++i) {
      Case one = random_case(GetParam(), random);
      SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed()) + " case " + std::to_string(i));
      law(one, random_cost(one.compiled.limit(), random));
    }
  }
};

TEST_P(Laws, PeekTellsWhatACheckWouldAnswer) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const CompiledLimit::State before = one.state;
    const Outcome peeked = one.compiled.peek(one.state, one.now, cost);
    ASSERT_EQ(one.state, before);
    const Verdict judged = one.compiled.judge(one.state, one.now, cost);
    const Outcome decided = one.compiled.decide(one.state, one.now, cost);
    ASSERT_TRUE(peeked == decided);
    ASSERT_TRUE((Outcome{judged, decided.view} == decided));
  });
}

TEST_P(Laws, ADenialChangesNothing) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const CompiledLimit::State before = one.state;
    if (!one.compiled.decide(one.state, one.now, cost).verdict.fits) {
      ASSERT_EQ(one.state, before);
    }
    const Outcome free = one.compiled.decide(one.state, one.now, 0);
    ASSERT_TRUE(free.verdict.fits);
  });
}

TEST_P(Laws, ExactlyAfterRetryAfterItFitsAndOneTickEarlierNot) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const Verdict verdict = one.compiled.judge(one.state, one.now, cost);
    if (verdict.fits) {
      ASSERT_EQ(verdict.retry_after, 0);
      return;
    }
    ASSERT_EQ(verdict.retry_after == kNever, cost > one.compiled.limit());
    if (verdict.retry_after >= longest_wait(Tick::nanosecond)) return;
    ASSERT_GT(verdict.retry_after, 0);
    ASSERT_FALSE(one.compiled.judge(one.state, one.now + verdict.retry_after - 1, cost).fits);
    ASSERT_TRUE(one.compiled.judge(one.state, one.now + verdict.retry_after, cost).fits);
  });
}

TEST_P(Laws, RemainingCanBeTakenAtOnceAndNotOneMore) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const View view = one.compiled.view(one.state, one.now);
    ASSERT_TRUE(one.compiled.judge(one.state, one.now, view.remaining).fits);
    ASSERT_FALSE(one.compiled.judge(one.state, one.now, view.remaining + 1).fits);
    ASSERT_LE(view.remaining, view.limit);
  });
}

TEST_P(Laws, AfterResetTheStateEqualsAFreshOne) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const std::int64_t reset = one.compiled.view(one.state, one.now).reset_after;
    if (reset >= longest_wait(Tick::nanosecond)) return;
    ASSERT_TRUE(one.compiled.is_initial(one.state, one.now + reset));
    if (one.compiled.is_initial(one.state, one.now)) return;
    ASSERT_EQ(one.compiled.expires_at(one.state), one.now + reset);
    ASSERT_FALSE(one.compiled.is_initial(one.state, one.now + reset - 1));
  });
}

TEST_P(Laws, AnOlderNowIsAnsweredAsTheNewest) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    if (one.state.last == kNeverSeen) return;
    const Outcome newest = one.compiled.peek(one.state, one.state.last, cost);
    ASSERT_TRUE(one.compiled.peek(one.state, one.state.last - 1, cost) == newest);
    ASSERT_TRUE(one.compiled.peek(one.state, one.state.last - kDay, cost) == newest);
  });
}

TEST_P(Laws, ARefundRestoresWhatWasTakenButGivesNoSlotTwice) {
  for_all_cases([](Case& one, std::uint64_t cost) {
    const View before = one.compiled.view(one.state, one.now);
    if (one.limit.align == Align::first_hit && before.reset_after == 0) return;  // the window stays open
    if (!one.compiled.decide(one.state, one.now, cost).verdict.fits) return;
    const CompiledLimit::State taken = one.state;
    one.compiled.refund(one.state, one.now, cost, one.now);
    if (one.limit.algorithm == Algorithm::leaky_bucket) {
      ASSERT_EQ(one.state, taken);
      return;
    }
    const View after = one.compiled.view(one.state, one.now);
    ASSERT_EQ(after.remaining, before.remaining);
    ASSERT_EQ(after.reset_after, before.reset_after);
  });
}

TEST_P(Laws, TheSameNumbersChangeNothing) {
  for_all_cases([](Case& one, std::uint64_t /*cost*/) {
    const CompiledLimit::State before = one.state;
    one.compiled.convert(one.state, *CompiledLimit::compile(one.limit, Tick::nanosecond), one.now);
    ASSERT_EQ(one.state, before);
  });
}

INSTANTIATE_TEST_SUITE_P(All, Laws,
                         testing::Values(Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window));

// Admitted in any interval: at most burst + rate·length. All pairs of admissions are looked at.
TEST(TokenBucketLaw, AtMostBurstPlusRateTimesWindow) {
  Random random(seed());
  for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
    const Limit limit = random_limit(Algorithm::token_bucket, random);
    const CompiledLimit compiled = *CompiledLimit::compile(limit, Tick::nanosecond);
    CompiledLimit::State state;
    struct Admitted {
      std::int64_t at;
      std::uint64_t cost;
    };
    std::vector<Admitted> admitted;
    std::int64_t now = kNewYear;
    for (int k = 0; k < 100; ++k) {
      const std::uint64_t cost = random_cost(compiled.limit(), random);
      const Outcome outcome = compiled.decide(state, now, cost);
      if (outcome.verdict.fits) admitted.push_back({now, cost});
      now += outcome.verdict.retry_after < kDay && random.between(0, 1) == 0 ? outcome.verdict.retry_after
                                                                             : random_step(limit, random);
    }
    for (std::size_t first = 0; first < admitted.size(); ++first) {
      Uint128 sum = 0;
      for (std::size_t last = first; last < admitted.size(); ++last) {
        sum += admitted[last].cost;
        const auto period = static_cast<Uint128>(limit.period.count());
        const Uint128 most =
            limit.burst * period + Uint128{limit.rate} * ticks_between(admitted[first].at, admitted[last].at);
        ASSERT_TRUE(sum * period <= most) << "case " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::algorithm
