#include "store/redis/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using testing::add;
using testing::answer;
using testing::bucket;
using testing::bucket_state;
using testing::kNow;
using testing::TestCheck;

CountedLimit named(std::string identity, std::uint64_t burst = 10) {
  CountedLimit limit = bucket(1, burst, std::chrono::hours(1));
  limit.identity = std::move(identity);
  return limit;
}

// Checks on many keys that stay where they are.
class Checks {
 public:
  explicit Checks(const CountedLimit& limit) : limit_(limit) {}
  TestCheck& make(std::string key) {
    keys_.push_back(std::move(key));
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = keys_.back()}});
    return checks_.back();
  }

 private:
  const CountedLimit& limit_;
  std::deque<std::string> keys_;
  std::deque<TestCheck> checks_;
};

TEST(Batch, EqualKeysOfManyRequestsAreOneKey) {
  const CountedLimit global = named("g");
  const CountedLimit user = named("u");
  TestCheck a({{.limit = &global, .key = "k"}, {.limit = &user, .key = "1"}});
  TestCheck b({{.limit = &global, .key = "k"}, {.limit = &user, .key = "2"}});
  Batch batch;
  ASSERT_TRUE(add(batch, a) && add(batch, b) && add(batch, a));
  batch.prepare();
  EXPECT_EQ(batch.sent_keys(), 3U);
  EXPECT_EQ(batch.sent_requests(), 3U);
}

// Two requests share the key g, which has three tokens left: the first asks for five, the second for one.
TEST(Batch, ARequestThatIsDeniedTakesNothingFromTheNext) {
  const CountedLimit global = named("g");
  const CountedLimit user = named("u");
  TestCheck a({{.limit = &global, .key = "k", .cost = 5}, {.limit = &user, .key = "1", .cost = 5}});
  TestCheck b({{.limit = &global, .key = "k", .cost = 1}, {.limit = &user, .key = "2", .cost = 1}});
  Batch batch;
  ASSERT_TRUE(add(batch, a) && add(batch, b));
  batch.prepare();
  const std::string three_left = bucket_state(10, 1, 3'600'000'000, 3, 0, kNow);
  const Reply reply = testing::parse(answer(kNow, "01", {three_left, "-", "-"}));
  ASSERT_EQ(AnswerReader().read(*reply, batch), Failure::none);
  EXPECT_FALSE(a.admitted);
  EXPECT_EQ(a.decisions[0].remaining, 3U);
  EXPECT_TRUE(a.decisions[1].allowed);
  EXPECT_EQ(a.decisions[1].remaining, 10U);
  EXPECT_TRUE(b.admitted);
  EXPECT_EQ(b.decisions[0].remaining, 2U);
  EXPECT_EQ(b.decisions[1].remaining, 9U);
}

TEST(Batch, HoldsItsMostKeysAndAnyNumberOfRequestsOnThem) {
  const CountedLimit limit = named("l");
  Checks checks(limit);
  Batch batch;
  for (std::size_t i = 0; i < Batch::kMostKeys; ++i) ASSERT_TRUE(add(batch, checks.make(std::to_string(i)))) << i;
  EXPECT_FALSE(add(batch, checks.make("one more")));
  EXPECT_TRUE(add(batch, checks.make("7")));
  batch.prepare();
  EXPECT_EQ(batch.sent_keys(), Batch::kMostKeys);
  EXPECT_EQ(batch.sent_requests(), Batch::kMostKeys + 1);
}

TEST(Batch, HoldsItsMostCharges) {
  const CountedLimit limit = named("l");
  Checks checks(limit);
  Batch batch;
  for (std::size_t i = 0; i < Batch::kMostCharges; ++i) ASSERT_TRUE(add(batch, checks.make("k")));
  EXPECT_FALSE(add(batch, checks.make("k")));
}

TEST(Batch, TheFirstRequestFitsWhateverItsSize) {
  const CountedLimit limit = named("l");
  std::deque<std::string> keys;
  std::vector<Charge> charges;
  for (int i = 0; i < 300; ++i) charges.push_back({.limit = &limit, .key = keys.emplace_back(std::to_string(i))});
  TestCheck large(charges);
  Checks checks(limit);
  Batch batch;
  ASSERT_TRUE(add(batch, large));
  EXPECT_FALSE(add(batch, checks.make("another")));
  EXPECT_FALSE(add(batch, checks.make("299")));
  EXPECT_EQ(batch.prepare(), 1U);
  EXPECT_EQ(batch.sent_keys(), 300U);
}

TEST(Batch, OldAndNewNumbersOfALimitDoNotMix) {
  const CountedLimit before = named("l", 10);
  const CountedLimit after = named("l", 20);
  TestCheck old_one({{.limit = &before, .key = "k"}});
  TestCheck new_one({{.limit = &after, .key = "other"}, {.limit = &after, .key = "k"}});
  Batch batch;
  ASSERT_TRUE(add(batch, old_one));
  EXPECT_FALSE(add(batch, new_one));
  // And nothing of it is left behind.
  batch.prepare();
  EXPECT_EQ(batch.sent_keys(), 1U);
  Batch another;
  EXPECT_TRUE(add(another, new_one));
}

TEST(Batch, WhatIsWithdrawnIsNotSentNorAreItsKeys) {
  const CountedLimit limit = named("l");
  Checks checks(limit);
  TestCheck& gone = checks.make("a");
  TestCheck& stays = checks.make("b");
  Batch batch;
  ASSERT_TRUE(add(batch, gone) && add(batch, stays));
  EXPECT_TRUE(batch.withdraw(gone));
  EXPECT_FALSE(batch.withdraw(gone));
  Batch alone;
  ASSERT_TRUE(add(alone, stays));
  EXPECT_EQ(testing::call_of(batch), testing::call_of(alone));
  EXPECT_TRUE(batch.withdraw(stays));
  EXPECT_FALSE(batch.is_awaited());
}

TEST(Batch, IsAsNewWhenCleared) {
  const CountedLimit limit = named("l");
  Checks checks(limit);
  Batch batch;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 64; ++i) ASSERT_TRUE(add(batch, checks.make(std::to_string(round * 64 + i))));
    EXPECT_EQ(batch.prepare(), 64U);
    batch.clear();
    EXPECT_TRUE(batch.is_empty());
  }
}

}  // namespace
}  // namespace sluice::store::redis
