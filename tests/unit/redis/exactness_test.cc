#include "store/redis/exactness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;

TEST(InexactInRedis, EveryBucketAndWindowWithinTheRangesIsExact) {
  EXPECT_EQ(inexact_in_redis({.rate = 1, .period = kMaxPeriod, .burst = kMaxTokens}), std::nullopt);
  EXPECT_EQ(inexact_in_redis({.rate = kMaxRate, .period = 1us, .burst = kMaxTokens}), std::nullopt);
  EXPECT_EQ(inexact_in_redis({.algorithm = Algorithm::fixed_window, .rate = kMaxRate, .period = 1us}), std::nullopt);
}

TEST(InexactInRedis, WhatIsRefusedIsNamed) {
  EXPECT_THAT(*inexact_in_redis({.rate = 1, .period = 1500ns}), ::testing::StartsWith("period: "));
  EXPECT_THAT(*inexact_in_redis({.rate = kMaxRate + 1}), ::testing::StartsWith("rate: "));
  for (const Algorithm algorithm :
       {Algorithm::leaky_bucket, Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency}) {
    EXPECT_THAT(*inexact_in_redis({.algorithm = algorithm, .rate = 1}), ::testing::StartsWith("algorithm: "));
  }
}

}  // namespace
}  // namespace sluice::store::redis
