#include "store/redis/exactness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;

TEST(InexactInRedis, EveryLimitWithinTheRangesIsExact) {
  EXPECT_EQ(inexact_in_redis({.rate = 1, .period = kMaxPeriod, .burst = kMaxTokens}), std::nullopt);
  EXPECT_EQ(inexact_in_redis({.rate = kMaxRate, .period = 1us, .burst = kMaxTokens}), std::nullopt);
  EXPECT_EQ(inexact_in_redis({.algorithm = Algorithm::fixed_window, .rate = kMaxRate, .period = 1us}), std::nullopt);
  for (const Algorithm algorithm :
       {Algorithm::leaky_bucket, Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency}) {
    for (const std::uint64_t rate : {std::uint64_t{1}, kMaxRate}) {
      for (const std::chrono::nanoseconds period : {std::chrono::nanoseconds(1us), kMaxPeriod}) {
        const Limit limit{
            .algorithm = algorithm, .rate = rate, .period = period, .queue = kMaxTokens - 1, .ttl = period};
        EXPECT_EQ(inexact_in_redis(limit), std::nullopt);
      }
    }
  }
}

TEST(InexactInRedis, WhatIsRefusedIsNamed) {
  EXPECT_THAT(*inexact_in_redis({.rate = 1, .period = 1500ns}), ::testing::StartsWith("period: "));
  EXPECT_THAT(*inexact_in_redis({.rate = kMaxRate + 1}), ::testing::StartsWith("rate: "));
  EXPECT_THAT(*inexact_in_redis({.algorithm = Algorithm::leaky_bucket, .rate = 0}), ::testing::StartsWith("rate: "));
  EXPECT_THAT(*inexact_in_redis({.algorithm = Algorithm::sliding_window, .rate = 1, .period = 1s, .slots = 3}),
              ::testing::StartsWith("slots: "));
  EXPECT_THAT(*inexact_in_redis({.algorithm = Algorithm::concurrency, .rate = 1, .ttl = 1500ns}),
              ::testing::StartsWith("ttl: "));
}

}  // namespace
}  // namespace sluice::store::redis
