// Where the limit comes to rest before a service of known capacity, and how it follows when that changes.
#include "tests/unit/adaptive/server_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <tuple>

namespace sluice::adaptive {
namespace {

using std::chrono::milliseconds;

constexpr double kService = 0.01;  // seconds

double capacity(std::uint64_t workers) { return static_cast<double>(workers) / kService; }

// With w workers and a call of s seconds, L calls in flight take s·L/w. The gradient comes to rest where the limit is
// tolerance·w, but at least half of itself, and the square root of itself.
double rest(std::uint64_t workers) {
  const double tolerated = 1.5 * static_cast<double>(workers);
  double limit = tolerated;
  for (int i = 0; i < 50; ++i) limit = std::max(tolerated, limit / 2) + std::ceil(std::sqrt(limit));
  return limit;
}

class GradientAtRest : public testing::TestWithParam<std::tuple<std::uint64_t, bool>> {};

TEST_P(GradientAtRest, TheLimitIsNearWhatTheServiceTakes) {
  const auto [workers, random] = GetParam();
  AdaptiveConcurrency limiter({.max = 5'000});
  ServerModel model(limiter, {.workers = workers, .mean_seconds = kService, .random = random}, 1);
  model.run(120, 2 * capacity(workers));
  const auto seen = model.run(60, 2 * capacity(workers));
  EXPECT_GE(seen.mean_limit, static_cast<double>(workers));
  EXPECT_LE(seen.mean_limit, rest(workers) + 1);
  EXPECT_LE(static_cast<double>(seen.highest_limit), 1.25 * rest(workers) + 1);
  EXPECT_GE(static_cast<double>(seen.served), 0.95 * 60 * capacity(workers));  // the service is kept busy
  EXPECT_FALSE(seen.over_the_limit);
}

INSTANTIATE_TEST_SUITE_P(Workers, GradientAtRest,
                         testing::Combine(testing::Values(1, 3, 10, 50, 150), testing::Bool()));

TEST(GradientLaw, FollowsACapacityThatHalvesAndDoubles) {
  AdaptiveConcurrency limiter({.max = 5'000});
  ServerModel model(limiter, {.workers = 40, .mean_seconds = kService}, 1);
  constexpr double kCalls = 2 * 8'000;
  model.run(60, kCalls);
  const double at_40 = model.run(60, kCalls).mean_limit;
  model.change({.workers = 20, .mean_seconds = kService});
  model.run(10, kCalls);
  const double at_20 = model.run(60, kCalls).mean_limit;
  EXPECT_LT(at_20, 0.7 * at_40);
  EXPECT_LE(at_20, rest(20) + 1);
  model.change({.workers = 80, .mean_seconds = kService});
  model.run(20, kCalls);
  const double at_80 = model.run(60, kCalls).mean_limit;
  EXPECT_GE(at_80, 80);
  EXPECT_LE(at_80, rest(80) + 1);
}

// What makes a limit creep: the reference follows the latency that the limiter itself has caused.
TEST(GradientLaw, MildOverloadForHoursDoesNotMakeItCreep) {
  AdaptiveConcurrency limiter({.max = 5'000});
  ServerModel model(limiter, {.workers = 10, .mean_seconds = kService}, 1);
  model.run(120, 1.02 * capacity(10));
  for (int hour = 0; hour < 3; ++hour) {
    const auto seen = model.run(3'600, 1.02 * capacity(10));
    EXPECT_LE(seen.mean_limit, 30) << hour;
    EXPECT_LE(seen.highest_limit, 60U) << hour;
    EXPECT_LE(seen.mean_latency, 2 * kService) << hour;
  }
}

TEST(GradientLaw, ASlowerServiceIsNotTakenForAQueue) {
  AdaptiveConcurrency limiter({.max = 5'000});
  ServerModel model(limiter, {.workers = 40, .mean_seconds = kService}, 1);
  model.run(60, 8'000);
  model.change({.workers = 40, .mean_seconds = 4 * kService});
  model.run(60, 8'000);
  const auto slow = model.run(60, 8'000);
  EXPECT_GE(static_cast<double>(slow.served), 0.95 * 60 * capacity(40) / 4);
  EXPECT_LE(slow.mean_limit, rest(40) + 1);
  model.change({.workers = 40, .mean_seconds = kService});
  model.run(60, 8'000);
  const auto fast = model.run(60, 8'000);
  EXPECT_GE(static_cast<double>(fast.served), 0.95 * 60 * capacity(40));
  EXPECT_LE(fast.mean_limit, rest(40) + 1);
}

// The first reference is taken in the midst of overload: fifty times what the service takes.
TEST(GradientLaw, AStartInOverloadIsPutRight) {
  AdaptiveConcurrency limiter({.initial = 500, .max = 5'000});
  ServerModel model(limiter, {.workers = 10, .mean_seconds = kService}, 1);
  model.run(120, 3 * capacity(10));
  const auto seen = model.run(60, 3 * capacity(10));
  EXPECT_GE(seen.mean_limit, 10);
  EXPECT_LE(seen.mean_limit, rest(10) + 1);
}

class Outage : public testing::TestWithParam<bool> {};

TEST_P(Outage, FallsToTheLeastAndRecovers) {
  AdaptiveConcurrency::Numbers numbers{.min = 2, .max = 100};
  if (GetParam()) numbers.method = Aimd{.timeout = milliseconds(20)};
  AdaptiveConcurrency limiter(numbers);
  ServerModel model(limiter, {.workers = 40, .mean_seconds = kService, .random = false}, 1);
  model.run(60, 8'000);
  model.change({.workers = 40, .mean_seconds = kService, .random = false, .down = true});
  model.run(20, 8'000);
  EXPECT_EQ(model.run(10, 8'000).highest_limit, 2U);
  model.change({.workers = 40, .mean_seconds = kService, .random = false});
  model.run(30, 8'000);
  const auto seen = model.run(30, 8'000);
  EXPECT_GE(static_cast<double>(seen.served), 0.95 * 30 * capacity(40));
  EXPECT_LE(seen.mean_latency, 2.2 * kService);
}

INSTANTIATE_TEST_SUITE_P(Methods, Outage, testing::Bool());

TEST(AimdLaw, TheLimitIsNearWhatEndsInTime) {
  AdaptiveConcurrency limiter({.max = 5'000, .method = Aimd{.timeout = milliseconds(30)}});
  ServerModel model(limiter, {.workers = 20, .mean_seconds = kService, .random = false}, 1);
  model.run(60, 2 * capacity(20));
  const auto seen = model.run(120, 2 * capacity(20));
  EXPECT_GE(static_cast<double>(seen.lowest_limit), 0.8 * 60);
  EXPECT_LE(static_cast<double>(seen.highest_limit), 1.1 * 60);
  EXPECT_LE(seen.mean_latency, 0.03);
}

TEST(Law, LittleTrafficIsNotInTheWay) {
  AdaptiveConcurrency limiter({.max = 5'000});
  ServerModel model(limiter, {.workers = 40, .mean_seconds = kService}, 1);
  const auto seen = model.run(1'000, 0.05 * capacity(40));
  EXPECT_LE(seen.denied, seen.offered / 10'000);  // by a probe, when by chance many come at once
  EXPECT_LE(seen.highest_limit, 25U);             // and what isn't used doesn't grow
}

}  // namespace
}  // namespace sluice::adaptive
