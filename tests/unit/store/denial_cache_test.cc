#include "store/denial_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "store/memory/memory_store.h"
#include "tests/unit/store/plain_check.h"
#include "tests/unit/store/remote_store.h"

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

class DenialCacheTest : public ::testing::Test {
 protected:
  DenialCacheTest() {
    auto remote = std::make_unique<RemoteStore>(memory_);
    remote_ = remote.get();
    cache_ = std::make_unique<DenialCache>(std::move(remote), 1s, epochs_, metrics_);
  }
  static CountedLimit counted(const Limit& numbers, std::uint32_t id = 1) {
    return {.numbers = numbers, .identity = "shop/" + std::to_string(id), .id = id};
  }
  Decision ask(std::vector<Charge> charges) {
    PlainCheck check(std::move(charges));
    EXPECT_EQ(cache_->check(check, now_), Progress::answered);
    admitted_ = check.admitted;
    return check.decisions[0];
  }
  Decision ask(const CountedLimit& limit, std::uint64_t cost = 1) {
    return ask({{.limit = &limit, .key = "k", .cost = cost}});
  }
  void advance(std::chrono::nanoseconds by) {
    now_.steady += by.count();
    now_.utc += by.count();
  }
  // Was the last one answered without the store?
  bool was_cached() { return remote_->asked == std::exchange(asked_, remote_->asked); }

  MemoryStore memory_{10'000};
  DenialEpochs epochs_;
  metrics::Shard metrics_;
  RemoteStore* remote_ = nullptr;
  std::unique_ptr<DenialCache> cache_;
  Time now_{.steady = 5'000'000'000, .utc = 1'767'225'600'000'000'000};
  bool admitted_ = false;
  int asked_ = 0;
};

const Limit kBucket{.algorithm = Algorithm::token_bucket, .rate = 10, .period = 1s, .burst = 10};

TEST_F(DenialCacheTest, ADenialHoldsUntilItsRetryAfterToTheTick) {
  const CountedLimit limit = counted(kBucket);
  EXPECT_TRUE(ask(limit, 10).allowed);
  EXPECT_FALSE(was_cached());
  EXPECT_EQ(ask(limit).retry_after, Wait(100ms));
  EXPECT_FALSE(was_cached());
  advance(60ms);
  const Decision denied = ask(limit);
  EXPECT_TRUE(was_cached());
  EXPECT_FALSE(admitted_);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after, Wait(40ms));
  EXPECT_EQ(denied.reset_after, Wait(940ms));
  EXPECT_EQ(denied.remaining, 0U);
  EXPECT_EQ(denied.limit, 10U);
  advance(40ms - 1ns);
  EXPECT_FALSE(ask(limit).allowed);
  EXPECT_TRUE(was_cached());
  advance(1ns);
  EXPECT_TRUE(ask(limit).allowed);
  EXPECT_FALSE(was_cached());
  EXPECT_EQ(metrics_.value(metrics::Counter::store_cached_denials), 2U);
}

TEST_F(DenialCacheTest, GreaterCostsAreDeniedTooAndSmallerOnesAsk) {
  const CountedLimit limit = counted(kBucket);
  ask(limit, 8);
  EXPECT_EQ(ask(limit, 5).retry_after, Wait(300ms));
  was_cached();
  advance(100ms);
  Decision denied = ask(limit, 7);
  EXPECT_TRUE(was_cached());
  EXPECT_EQ(denied.retry_after, Wait(400ms));
  EXPECT_EQ(denied.remaining, 3U);
  denied = ask(limit, 11);
  EXPECT_TRUE(was_cached());
  EXPECT_TRUE(denied.retry_after.is_never());
  EXPECT_FALSE(ask(limit, 4).allowed);
  EXPECT_FALSE(was_cached());
  // Now four is the least that was denied.
  EXPECT_FALSE(ask(limit, 5).allowed);
  EXPECT_TRUE(was_cached());
  EXPECT_TRUE(ask(limit, 0).allowed);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, ItIsNotBelievedForLongerThanTheSetting) {
  Limit slow = kBucket;
  slow.period = 1h;
  const CountedLimit limit = counted(slow);
  ask(limit, 10);
  ask(limit);
  was_cached();
  advance(1s - 1ns);
  ask(limit);
  EXPECT_TRUE(was_cached());
  advance(1ns);
  EXPECT_FALSE(ask(limit).allowed);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, WhatIsGivenBackEndsIt) {
  const CountedLimit limit = counted(kBucket);
  ask(limit, 10);
  ask(limit);
  epochs_.forget(limit, "other");
  was_cached();
  ask(limit);
  EXPECT_TRUE(was_cached());
  epochs_.forget(limit, "k");
  ask(limit);
  EXPECT_FALSE(was_cached());
  epochs_.forget_all();
  ask(limit);
  EXPECT_FALSE(was_cached());
}

// The denial was made before the tokens were given back, and arrives after.
TEST_F(DenialCacheTest, AVerbEndsIt) {
  const CountedLimit limit = counted(kBucket);
  const auto apply = [&](const Verb& verb) {
    PlainCheck check({{.limit = &limit, .key = "k"}});
    check.verb = &verb;
    EXPECT_EQ(cache_->apply(check, now_), Progress::answered);
    EXPECT_EQ(check.failure, remote_->failure);
    return check.decisions[0];
  };
  const auto deny = [&] {
    (void)apply(Verb::reset());
    (void)ask(limit, 10);
    (void)ask(limit);
    was_cached();
    EXPECT_FALSE(ask(limit).allowed);
    EXPECT_TRUE(was_cached());
  };
  deny();
  (void)apply(Verb::peek());
  EXPECT_FALSE(ask(limit).allowed);
  EXPECT_TRUE(was_cached());
  EXPECT_EQ(apply(Verb::refund(3)).remaining, 3U);
  EXPECT_TRUE(ask(limit).allowed);
  deny();
  EXPECT_EQ(apply(Verb::penalize(1)).remaining, 0U);
  EXPECT_EQ(ask(limit).retry_after, Wait(200ms));
  deny();
  remote_->failure = Failure::timeout;  // it may have been done
  (void)apply(Verb::reset());
  remote_->failure = Failure::none;
  EXPECT_FALSE(ask(limit).allowed);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, AVerbThatIsOnItsWayEndsItWhenItIsAnsweredOrWithdrawn) {
  const CountedLimit limit = counted(kBucket);
  const Verb verb = Verb::refund(1);
  for (const bool is_withdrawn : {false, true}) {
    (void)ask(limit, 10);
    (void)ask(limit);
    was_cached();
    EXPECT_FALSE(ask(limit).allowed);
    EXPECT_TRUE(was_cached());
    PlainCheck check({{.limit = &limit, .key = "k"}});
    check.verb = &verb;
    remote_->later = true;
    ASSERT_EQ(cache_->apply(check, now_), Progress::pending);
    if (is_withdrawn) cache_->cancel(check);
    EXPECT_EQ(remote_->pending.size(), is_withdrawn ? 0U : 1U);
    remote_->answer_pending();
    EXPECT_EQ(check.completed, is_withdrawn ? 0 : 1);
    remote_->later = false;
    EXPECT_TRUE(ask(limit).allowed);
    EXPECT_FALSE(was_cached());
  }
}

TEST_F(DenialCacheTest, ADenialFromBeforeARefundIsNotLearnt) {
  const CountedLimit limit = counted(kBucket);
  ask(limit, 10);
  remote_->later = true;
  PlainCheck slow({{.limit = &limit, .key = "k"}});
  ASSERT_EQ(cache_->check(slow, now_), Progress::pending);
  epochs_.forget(limit, "k");
  remote_->answer_pending();
  EXPECT_EQ(slow.completed, 1);
  EXPECT_FALSE(slow.admitted);
  remote_->later = false;
  was_cached();
  ask(limit);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, TheWaitCountsFromWhenTheQuestionLeft) {
  const CountedLimit limit = counted(kBucket);
  ask(limit, 10);
  remote_->later = true;
  PlainCheck slow({{.limit = &limit, .key = "k"}});
  ASSERT_EQ(cache_->check(slow, now_), Progress::pending);
  advance(70ms);
  remote_->answer_pending();
  remote_->later = false;
  was_cached();
  EXPECT_EQ(ask(limit).retry_after, Wait(30ms));
  EXPECT_TRUE(was_cached());
}

TEST_F(DenialCacheTest, OtherNumbersAreAnotherQuestion) {
  const CountedLimit before = counted(kBucket);
  Limit numbers = kBucket;
  numbers.burst = 20;
  const CountedLimit after = counted(numbers);
  ask(before, 10);
  ask(before);
  was_cached();
  ask(after);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, NotWithoutKnowingAllCharges) {
  const CountedLimit user = counted(kBucket, 1);
  const CountedLimit global = counted({.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1s, .burst = 100}, 2);
  ask(user, 10);
  ask(user);
  was_cached();
  PlainCheck both({{.limit = &user, .key = "k"}, {.limit = &global, .key = "g"}});
  ASSERT_EQ(cache_->check(both, now_), Progress::answered);
  EXPECT_FALSE(was_cached());
  EXPECT_FALSE(both.admitted);
  EXPECT_TRUE(both.decisions[1].allowed);
  EXPECT_EQ(both.decisions[1].remaining, 100U);
  // Once both are known to be denied, both are told.
  ask({{.limit = &global, .key = "g", .cost = 100}});
  ask({{.limit = &global, .key = "g"}});
  was_cached();
  ASSERT_EQ(cache_->check(both, now_), Progress::answered);
  EXPECT_TRUE(was_cached());
  EXPECT_EQ(both.decisions[0].which, 0U);
  EXPECT_EQ(both.decisions[1].which, 1U);
  EXPECT_EQ(both.decisions[1].retry_after, Wait(1s));
}

TEST_F(DenialCacheTest, AShadowDenialAllowsTheRequest) {
  const CountedLimit limit = counted(kBucket);
  ask(limit, 10);
  ask(limit);
  was_cached();
  const Decision shadow = ask({{.limit = &limit, .key = "k", .enforcement = Enforcement::shadow}});
  EXPECT_TRUE(was_cached());
  EXPECT_TRUE(admitted_);
  EXPECT_FALSE(shadow.allowed);
}

TEST_F(DenialCacheTest, WhatCannotBeKnownIsNotRemembered) {
  Limit counting{.algorithm = Algorithm::fixed_window, .rate = 5, .period = 1h, .count_denied = true};
  const CountedLimit window = counted(counting, 2);
  ask(window, 5);
  ask(window);
  was_cached();
  ask(window);
  EXPECT_FALSE(was_cached());
  // A cost that never fits says nothing of the state.
  const CountedLimit limit = counted(kBucket, 3);
  ask(limit, 11);
  was_cached();
  ask(limit, 11);
  EXPECT_FALSE(was_cached());
}

TEST_F(DenialCacheTest, AFailureIsHandedOnAndNotRemembered) {
  const CountedLimit limit = counted(kBucket);
  remote_->failure = Failure::timeout;
  for (int i = 0; i < 2; ++i) {
    PlainCheck check({{.limit = &limit, .key = "k"}});
    ASSERT_EQ(cache_->check(check, now_), Progress::answered);
    EXPECT_EQ(check.failure, Failure::timeout);
    EXPECT_FALSE(was_cached());
  }
}

TEST_F(DenialCacheTest, ACancelledCheckIsCancelledAtTheStore) {
  const CountedLimit limit = counted(kBucket);
  remote_->later = true;
  PlainCheck check({{.limit = &limit, .key = "k"}});
  ASSERT_EQ(cache_->check(check, now_), Progress::pending);
  cache_->cancel(check);
  EXPECT_TRUE(remote_->pending.empty());
  EXPECT_EQ(check.completed, 0);
}

TEST_F(DenialCacheTest, MemoryIsBounded) {
  DenialTable table(epochs_);
  const CountedLimit limit = counted(kBucket);
  std::size_t found = 0;
  constexpr std::size_t many = 10 * DenialTable::kEntries;
  for (std::size_t i = 0; i < many; ++i) {
    table.put(denial_key(limit, std::to_string(i)), kBucket,
              {.cost = 1, .until = 1 + static_cast<std::int64_t>(i), .decision = {}});
  }
  for (std::size_t i = 0; i < many; ++i) {
    found += table.find(denial_key(limit, std::to_string(i)), kBucket, 0) != nullptr ? 1U : 0U;
  }
  EXPECT_LE(found, DenialTable::kEntries);
  EXPECT_GT(found, DenialTable::kEntries * 9 / 10);
  EXPECT_TRUE(table.is_empty(static_cast<std::int64_t>(many)));
}

// With and without the cache: the same verdicts on any trace, and figures that are no better than the truth.
TEST_F(DenialCacheTest, SameVerdictsAsWithoutIt) {
  const char* given = std::getenv("SLUICE_SEED");
  std::mt19937_64 random(given != nullptr ? std::strtoull(given, nullptr, 10) : 1);
  const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  std::vector<CountedLimit> limits;
  const std::array<Limit, 7> numbers = {
      kBucket,
      Limit{.algorithm = Algorithm::token_bucket, .rate = 7, .period = 60s, .burst = 4},
      Limit{.algorithm = Algorithm::token_bucket, .rate = 0, .burst = 30},
      Limit{.algorithm = Algorithm::leaky_bucket, .rate = 10, .queue = 2},
      Limit{.algorithm = Algorithm::fixed_window, .rate = 5, .period = 300ms},
      Limit{.algorithm = Algorithm::fixed_window, .rate = 5, .period = 300ms, .align = Align::first_hit},
      Limit{.algorithm = Algorithm::sliding_window, .rate = 6, .period = 500ms},
  };
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    limits.push_back(counted(numbers[i], static_cast<std::uint32_t>(i + 1)));
  }
  MemoryStore truth(10'000);
  constexpr std::array<std::chrono::nanoseconds, 7> steps = {0ns, 0ns, 1us, 1ms, 30ms, 100ms, 1s};
  constexpr std::array<const char*, 3> keys = {"a", "b", "c"};
  for (int i = 0; i < 200'000; ++i) {
    advance(steps[pick(steps.size())]);
    std::vector<Charge> charges;
    const std::size_t first = pick(limits.size());
    for (std::size_t n = 0; n <= pick(3) / 2; ++n) {
      charges.push_back({.limit = &limits[(first + n) % limits.size()],
                         .key = keys[pick(keys.size())],
                         .cost = pick(8),
                         .enforcement = static_cast<Enforcement>(pick(5) < 3 ? 0 : pick(3))});
    }
    PlainCheck with(charges);
    PlainCheck without(charges);
    ASSERT_EQ(cache_->check(with, now_), Progress::answered);
    ASSERT_EQ(truth.check(without, now_), Progress::answered);
    ASSERT_EQ(with.admitted, without.admitted) << i;
    for (std::size_t c = 0; c < charges.size(); ++c) {
      const Decision& mine = with.decisions[c];
      const Decision& true_one = without.decisions[c];
      ASSERT_EQ(mine.allowed, true_one.allowed) << i;
      ASSERT_EQ(mine.mark, true_one.mark) << i;
      ASSERT_EQ(mine.limit, true_one.limit) << i;
      ASSERT_LE(mine.remaining, true_one.remaining) << i;
      ASSERT_EQ(mine.retry_after.is_never(), true_one.retry_after.is_never()) << i;
      if (mine.retry_after.is_never()) continue;
      const auto off = mine.retry_after.value() - true_one.retry_after.value();
      ASSERT_TRUE(off >= 0ns && off <= 2us) << i << ' ' << off.count();
    }
  }
  EXPECT_GT(metrics_.value(metrics::Counter::store_cached_denials), 2'000U);
}

}  // namespace
}  // namespace sluice::store
