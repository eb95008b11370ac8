#include "limiter/combine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

namespace sluice::limiter {
namespace {

using std::chrono::milliseconds;
using store::Charge;
using store::Enforcement;

struct One {
  Decision decision;
  Enforcement enforcement = Enforcement::enforce;
};

One fits(std::uint64_t remaining, std::uint64_t limit, Enforcement enforcement = Enforcement::enforce) {
  One one;
  one.enforcement = enforcement;
  one.decision.limit = limit;
  one.decision.remaining = remaining;
  one.decision.reset_after = Wait(milliseconds(limit - remaining));
  return one;
}

One misfits(Wait retry_after, std::uint64_t limit = 10, Enforcement enforcement = Enforcement::enforce) {
  One one;
  one.enforcement = enforcement;
  one.decision.allowed = false;
  one.decision.limit = limit;
  one.decision.retry_after = retry_after;
  one.decision.reset_after = Wait(milliseconds(limit));
  return one;
}

One answered_by(Source source, One one) {
  one.decision.source = source;
  return one;
}

One delayed(Wait delay, One one) {
  one.decision.delay = delay;
  return one;
}

Decision together(const std::vector<One>& all) {
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  for (const One& one : all) {
    charges.push_back({.limit = nullptr, .key = {}, .cost = 1, .enforcement = one.enforcement});
    decisions.push_back(one.decision);
  }
  return combine(charges, decisions);
}

TEST(Combine, OneChargeIsItsOwnDecision) {
  const Decision allowed = together({delayed(Wait(milliseconds(3)), fits(4, 10))});
  EXPECT_TRUE(allowed.allowed);
  EXPECT_EQ(allowed.remaining, 4U);
  EXPECT_EQ(allowed.delay, Wait(milliseconds(3)));
  const Decision denied = together({misfits(Wait(milliseconds(7)))});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, Wait(milliseconds(7)));
}

TEST(Combine, AllowedShowsTheLeastRatio) {
  const Decision decision = together({fits(50, 100), fits(3, 10), fits(900, 1000)});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.which, 1U);
  EXPECT_EQ(decision.remaining, 3U);
  EXPECT_EQ(decision.limit, 10U);
  EXPECT_EQ(decision.reset_after, Wait(milliseconds(7)));
}

TEST(Combine, EqualRatiosShowTheFirst) {
  EXPECT_EQ(together({fits(5, 10), fits(50, 100), fits(1, 2)}).which, 0U);
  EXPECT_EQ(together({fits(0, 10), fits(0, 3)}).which, 0U);
}

TEST(Combine, RatiosAreComparedExactly) {
  // Equal in double: both quotients round to the same 53 bits.
  const Decision decision = together({fits(kMaxTokens - 1, kMaxTokens), fits(kMaxTokens - 2, kMaxTokens - 1)});
  EXPECT_EQ(decision.which, 1U);
}

TEST(Combine, LimitZeroIsTheLeast) {
  EXPECT_EQ(together({fits(0, 10), fits(0, 0), fits(0, 0)}).which, 1U);  // charges of cost 0
}

TEST(Combine, AllowedHasTheLargestDelayWhoeverShows) {
  const Decision decision = together(
      {delayed(Wait(milliseconds(20)), fits(9, 10)), fits(1, 10), delayed(Wait(milliseconds(10)), fits(8, 10))});
  EXPECT_EQ(decision.which, 1U);
  EXPECT_EQ(decision.delay, Wait(milliseconds(20)));
}

TEST(Combine, DeniedShowsTheLimitThatWaitsLongest) {
  const Decision decision = together({fits(0, 0), misfits(Wait(milliseconds(5)), 3), misfits(Wait(milliseconds(9)), 4),
                                      misfits(Wait(milliseconds(9)), 5)});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.which, 2U);
  EXPECT_EQ(decision.retry_after, Wait(milliseconds(9)));
  EXPECT_EQ(decision.limit, 4U);
  EXPECT_EQ(decision.reset_after, Wait(milliseconds(4)));
}

TEST(Combine, NeverWaitsLongest) {
  EXPECT_EQ(together({misfits(Wait(kLongestWait)), misfits(Wait::never()), misfits(Wait::never())}).which, 1U);
}

TEST(Combine, DeniedHasNoDelayOfOthers) {
  const Decision decision = together({delayed(Wait(milliseconds(20)), fits(9, 10)), misfits(Wait(milliseconds(1)))});
  EXPECT_EQ(decision.delay, Wait());
}

TEST(Combine, ShadowDoesNotDenyNorShow) {
  const Decision decision = together({delayed(Wait(milliseconds(5)), fits(0, 10, Enforcement::shadow)),
                                      misfits(Wait::never(), 0, Enforcement::shadow), fits(9, 10)});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.which, 2U);
  EXPECT_EQ(decision.delay, Wait());
}

TEST(Combine, ShadowDoesNotHideADenial) {
  const Decision decision =
      together({misfits(Wait::never(), 7, Enforcement::shadow), misfits(Wait(milliseconds(1)), 8)});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.which, 1U);
}

TEST(Combine, ShadowAloneIsAllowed) {
  const Decision decision =
      together({fits(1, 10, Enforcement::shadow), misfits(Wait::never(), 7, Enforcement::shadow)});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.which, 1U);
  EXPECT_EQ(decision.retry_after, Wait());
  EXPECT_EQ(decision.mark, Mark::none);
}

TEST(Combine, QuotaThatIsOverBesideAnotherDoesNotShow) {
  const Decision decision =
      together({misfits(Wait(milliseconds(3)), 7, Enforcement::quota), fits(6, 10, Enforcement::quota), fits(7, 10)});
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.which, 1U);
}

TEST(Combine, EveryQuotaOverDenies) {
  const Decision decision = together({misfits(Wait(milliseconds(3)), 7, Enforcement::quota), fits(0, 10),
                                      misfits(Wait(milliseconds(4)), 9, Enforcement::quota)});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.which, 2U);
}

TEST(Combine, QuotaThatDoesNotDenyIsNotTheReasonOfADenial) {
  const Decision decision = together({misfits(Wait::never(), 7, Enforcement::quota), fits(1, 10, Enforcement::quota),
                                      misfits(Wait(milliseconds(4)), 9)});
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.which, 2U);
}

TEST(Combine, AnAnswerWithoutFiguresDecidesOnlyAlone) {
  EXPECT_EQ(together({answered_by(Source::fallback_allow, fits(0, 0)), fits(9, 10)}).which, 1U);
  EXPECT_EQ(together({fits(9, 10), answered_by(Source::fallback_allow, fits(0, 0))}).which, 0U);
  EXPECT_EQ(
      together({answered_by(Source::fallback_deny, misfits(Wait::never())), misfits(Wait(milliseconds(1)))}).which, 1U);
  EXPECT_EQ(
      together({misfits(Wait(milliseconds(1))), answered_by(Source::fallback_deny, misfits(Wait::never()))}).which, 0U);
  const Decision alone = together({fits(9, 10), answered_by(Source::fallback_deny, misfits(Wait()))});
  EXPECT_FALSE(alone.allowed);
  EXPECT_EQ(alone.source, Source::fallback_deny);
}

/// The rules of section 4 once more, as plainly as they can be said, for enforced charges.
std::size_t plainly(const std::vector<One>& all) {
  std::size_t best = all.size();
  bool denied = false;
  for (const One& one : all) denied |= !one.decision.allowed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Decision& mine = all[i].decision;
    if (denied && mine.allowed) continue;
    if (best == all.size()) {
      best = i;
      continue;
    }
    const Decision& theirs = all[best].decision;
    if (denied) {
      const bool longer = !theirs.retry_after.is_never() &&
                          (mine.retry_after.is_never() || mine.retry_after.value() > theirs.retry_after.value());
      if (longer) best = i;
    } else {
      const std::int64_t ratio = mine.limit == 0 ? -1 : static_cast<std::int64_t>(mine.remaining * 2520 / mine.limit);
      const std::int64_t other =
          theirs.limit == 0 ? -1 : static_cast<std::int64_t>(theirs.remaining * 2520 / theirs.limit);
      if (ratio < other) best = i;
    }
  }
  return best;
}

TEST(Combine, FollowsTheRulesOnRandomRequests) {
  std::mt19937_64 random(7);
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<One> all;
    const std::uint64_t count = 1 + below(5);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t limit = below(11);  // divides 2520, so that quotients are whole
      if (below(4) == 0) {
        all.push_back(misfits(below(4) == 0 ? Wait::never() : Wait(milliseconds(1 + below(4))), limit));
      } else {
        all.push_back(fits(limit == 0 ? 0 : below(limit + 1), limit));
      }
    }
    ASSERT_EQ(together(all).which, plainly(all)) << "round " << round;
  }
}

}  // namespace
}  // namespace sluice::limiter
