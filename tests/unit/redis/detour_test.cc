#include "store/redis/detour.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::store::redis {
namespace {

const Address kAsked{.host = "10.0.0.1", .port = 6379};

// What becomes of a call after a node's words, the first time or later.
Detour after(const std::string& words, unsigned hops = 1) {
  const auto redirect = parse_redirect(words);
  EXPECT_TRUE(redirect) << words;
  return plan_detour(*redirect, hops, kAsked);
}

TEST(Detour, MovedIsForGood) {
  const Detour moved = after("MOVED 3999 10.0.0.2:6380");
  EXPECT_EQ(moved.failure, Failure::none);
  EXPECT_EQ(moved.to, (Address{.host = "10.0.0.2", .port = 6380}));
  EXPECT_TRUE(moved.has_moved);
  EXPECT_TRUE(moved.wants_map);
  EXPECT_FALSE(moved.is_asking);
  EXPECT_EQ(moved.delay, 0);
}

TEST(Detour, AskIsForThisCallAlone) {
  const Detour ask = after("ASK 3999 10.0.0.2:6380");
  EXPECT_EQ(ask.to, (Address{.host = "10.0.0.2", .port = 6380}));
  EXPECT_TRUE(ask.is_asking);
  EXPECT_FALSE(ask.has_moved);
  EXPECT_FALSE(ask.wants_map);
  EXPECT_EQ(ask.delay, 0);
}

TEST(Detour, ANodeWithoutAHostIsWhereTheOneThatToldItIs) {
  EXPECT_EQ(after("MOVED 3999 :6380").to, (Address{.host = "10.0.0.1", .port = 6380}));
  EXPECT_EQ(after("ASK 3999 :6380").to, (Address{.host = "10.0.0.1", .port = 6380}));
}

TEST(Detour, WhatIsTornApartIsTriedAgainWhereTheSlotIs) {
  std::int64_t expected = 1'000'000;
  for (unsigned hops = 1; hops <= kMostHops; ++hops) {
    const Detour again = after("TRYAGAIN Multiple keys request during rehashing of slot", hops);
    EXPECT_EQ(again.failure, Failure::none);
    EXPECT_FALSE(again.to);
    EXPECT_FALSE(again.wants_map);
    EXPECT_EQ(again.delay, expected);
    expected = std::min<std::int64_t>(2 * expected, 8'000'000);
  }
}

TEST(Detour, AClusterThatIsDownIsAskedForItsMap) {
  const Detour down = after("CLUSTERDOWN The cluster is down");
  EXPECT_FALSE(down.to);
  EXPECT_TRUE(down.wants_map);
  EXPECT_GT(down.delay, 0);
}

TEST(Detour, NobodyIsSentInCirclesForEver) {
  EXPECT_EQ(after("MOVED 3999 10.0.0.2:6380", kMostHops).failure, Failure::none);
  EXPECT_EQ(after("MOVED 3999 10.0.0.2:6380", kMostHops + 1).failure, Failure::slot_unserved);
  EXPECT_EQ(after("ASK 3999 10.0.0.2:6380", kMostHops + 1).failure, Failure::slot_unserved);
  EXPECT_EQ(after("TRYAGAIN", kMostHops + 1).failure, Failure::slot_moving);
  EXPECT_EQ(after("CLUSTERDOWN Hash slot not served", 255).failure, Failure::cluster_down);
  // None of them was ever carried out.
  for (const Failure failure : {Failure::slot_unserved, Failure::slot_moving, Failure::cluster_down}) {
    EXPECT_FALSE(may_be_done(failure));
  }
}

}  // namespace
}  // namespace sluice::store::redis
