#include "algorithm/limit_check.h"

#include <gtest/gtest.h>

#include <functional>

namespace sluice::algorithm {
namespace {

using std::chrono::nanoseconds;

std::vector<std::string> fields(const Limit& limit) {
  std::vector<std::string> names;
  for (const LimitProblem& problem : validate(limit)) names.emplace_back(problem.field);
  return names;
}
using Fields = std::vector<std::string>;

Limit of(Algorithm algorithm, const std::function<void(Limit&)>& change) {
  Limit limit{.algorithm = algorithm, .rate = 10, .burst = 10};
  change(limit);
  return limit;
}

TEST(Validate, EdgesOfEachRange) {
  const auto expect_range = [](Algorithm algorithm, const char* field, auto member, auto low, auto high) {
    using Number = std::remove_cvref_t<decltype(std::declval<Limit>().*member)>;
    const auto problems = [&](auto value) {
      return fields(of(algorithm, [&](Limit& limit) { limit.*member = static_cast<Number>(value); }));
    };
    EXPECT_EQ(problems(low), Fields{}) << field;
    EXPECT_EQ(problems(high), Fields{}) << field;
    EXPECT_EQ(problems(high + 1), Fields{field}) << field;
    if (low > 0) {
      EXPECT_EQ(problems(low - 1), Fields{field}) << field;
    }
  };
  expect_range(Algorithm::token_bucket, "rate", &Limit::rate, std::uint64_t{0}, kMaxRate);
  expect_range(Algorithm::leaky_bucket, "rate", &Limit::rate, std::uint64_t{1}, kMaxRate);
  expect_range(Algorithm::token_bucket, "burst", &Limit::burst, std::uint64_t{1}, kMaxTokens);
  expect_range(Algorithm::leaky_bucket, "queue", &Limit::queue, std::uint64_t{0}, kMaxTokens - 1);
  expect_range(Algorithm::sliding_window, "slots", &Limit::slots, std::uint32_t{1}, std::uint32_t{1'000});
}

TEST(Validate, DurationsAreWholeMicrosecondsUpTo366Days) {
  for (const auto& [ns, good] : {std::pair{1'000L, true},
                                 {kMaxPeriod.count(), true},
                                 {0L, false},
                                 {-1'000L, false},
                                 {999L, false},
                                 {1'500L, false},
                                 {kMaxPeriod.count() + 1'000, false},
                                 {INT64_MAX, false},
                                 {INT64_MIN, false}}) {
    const Fields period = good ? Fields{} : Fields{"period"};
    const Fields ttl = good ? Fields{} : Fields{"ttl"};
    for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_log}) {
      EXPECT_EQ(fields(of(algorithm, [&](Limit& limit) { limit.period = nanoseconds(ns); })), period) << ns;
    }
    EXPECT_EQ(fields(of(Algorithm::concurrency, [&](Limit& limit) { limit.ttl = nanoseconds(ns); })), ttl) << ns;
  }
}

TEST(Validate, SlotsMustSplitThePeriod) {
  const auto slots = [](std::int64_t period, std::uint32_t count) {
    return fields(of(Algorithm::sliding_window, [&](Limit& limit) {
      limit.period = nanoseconds(period);
      limit.slots = count;
    }));
  };
  EXPECT_EQ(slots(1'000'000'000, 1'000), Fields{});
  EXPECT_EQ(slots(1'000'000'000, 3), Fields{"slots"});
  EXPECT_EQ(slots(7'000, 7), Fields{});
  EXPECT_EQ(slots(7'000, 14), Fields{"slots"});
}

TEST(Validate, TellsAllProblemsAtOnceAndOnlyThoseOfTheAlgorithm) {
  Limit limit{.rate = kMaxRate + 1, .period = nanoseconds(0), .burst = 0, .queue = UINT64_MAX, .slots = 0};
  EXPECT_EQ(fields(limit), (Fields{"rate", "period", "burst"}));
  limit.algorithm = Algorithm::fixed_window;
  EXPECT_EQ(fields(limit), (Fields{"rate", "period"}));
  limit.align = Align::calendar;
  limit.calendar = {.unit = Calendar::Unit::month, .timezone = "UTC", .anchor_day = 32};
  EXPECT_EQ(fields(limit), (Fields{"rate", "calendar.anchor_day"}));
}

TEST(Validate, Cost) {
  EXPECT_EQ(validate_cost(0), "");
  EXPECT_EQ(validate_cost(kMaxTokens), "");
  EXPECT_EQ(validate_cost(kMaxTokens + 1), "must be 0 … 1000000000000000, is 1000000000000001");
}

}  // namespace
}  // namespace sluice::algorithm
