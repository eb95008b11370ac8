#include "algorithm/narrow_bucket.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "algorithm/compiled_limit.h"
#include "tests/unit/algorithm/instants.h"
#include "tests/unit/algorithm/random_limits.h"

namespace sluice::algorithm {
namespace {

CompiledLimit compiled(const Limit& limit, Tick tick = Tick::nanosecond) {
  auto result = CompiledLimit::compile(limit, tick);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

void expect_same(const Decision& got, const Decision& want) {
  ASSERT_EQ(got.allowed, want.allowed);
  ASSERT_EQ(got.mark, want.mark);
  ASSERT_EQ(got.limit, want.limit);
  ASSERT_EQ(got.remaining, want.remaining);
  ASSERT_EQ(got.retry_after, want.retry_after);
  ASSERT_EQ(got.reset_after, want.reset_after);
  ASSERT_EQ(got.delay, want.delay);
}

// A limit of any size, one of whose capacity is about 2^62 parts, or one that never refills.
Limit any_bucket(Algorithm algorithm, Random& random) {
  Limit limit = random_limit(algorithm, random);
  switch (random.between(0, 5)) {
    case 0:
      limit = {.algorithm = algorithm,
               .rate = 1,
               .period = std::chrono::microseconds(std::int64_t{1} << 30),
               .burst = static_cast<std::uint64_t>(4'294'967 + random.between(-2, 2))};
      limit.queue = limit.burst - 1;
      break;
    case 1:
      if (algorithm == Algorithm::token_bucket) limit.rate = 0;
      break;
    default:
      break;
  }
  return limit;
}

class NarrowBucketOf : public testing::TestWithParam<Algorithm> {};

// Step by step the same cell, and the same figures, whatever came before.
TEST_P(NarrowBucketOf, AnswersAsTheLimitDoes) {
  Random random(seed());
  int decided = 0;
  int passed = 0;
  for (int round = 0; round < 4'000; ++round) {
    const Limit numbers = any_bucket(GetParam(), random);
    const CompiledLimit limit = compiled(numbers);
    const NarrowBucket bucket = limit.narrow_bucket();
    Cell cell;
    std::int64_t now = random.between(0, 20) == 0 ? -kLatest + kDay : kNewYear;
    Limit paced = numbers;
    if (paced.rate == 0) paced.rate = 1;
    for (int i = 0; i < 60; ++i) {
      const bool older = random.between(0, 9) == 0;
      const std::int64_t step = random_step(paced, random);
      if (!older) now += random.between(0, 50) == 0 ? 200 * 366 * (kDay / 2) : step;
      now = std::min(now, kLatest - kDay);
      const std::int64_t at = older ? now - std::min(step, kDay) : now;
      const std::uint64_t cost = random.between(0, 9) == 0 ? 0 : random_cost(limit.limit(), random);
      if (random.between(0, 15) == 0) limit.penalize(cell, at, cost);
      if (random.between(0, 15) == 0) limit.settle(cell, at, 0, cost);
      if (random.between(0, 15) == 0) limit.refund(cell, at, cost);
      if (!bucket.decides(cell)) {
        ++passed;
        static_cast<void>(limit.decide(cell, at, cost));
        continue;
      }
      ++decided;
      Cell copy = cell;
      expect_same(bucket.decide(cell, at, cost), limit.decision(limit.decide(copy, at, cost)));
      ASSERT_EQ(cell, copy);
      if (HasFatalFailure()) return;
    }
    limit.clear(cell);
  }
  EXPECT_GT(decided, 100'000);
  EXPECT_GT(passed, 1'000);
}

INSTANTIATE_TEST_SUITE_P(Each, NarrowBucketOf, testing::Values(Algorithm::token_bucket, Algorithm::leaky_bucket));

TEST(NarrowBucket, ThereIsNoneOfOtherLimitsNorOfOtherTicks) {
  const Cell fresh;
  EXPECT_TRUE(compiled({.rate = 10, .burst = 30}).narrow_bucket().decides(fresh));
  EXPECT_FALSE(compiled({.rate = 10, .burst = 30}, Tick::microsecond).narrow_bucket().decides(fresh));
  EXPECT_FALSE(compiled({.algorithm = Algorithm::fixed_window, .rate = 10}).narrow_bucket().decides(fresh));
  EXPECT_FALSE(NarrowBucket().decides(fresh));
}

}  // namespace
}  // namespace sluice::algorithm
