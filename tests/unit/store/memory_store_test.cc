#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/memory/live_limit.h"
#include "tests/unit/store/store_test_util.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

Charge charge_of(const CountedLimit& limit, std::string_view key, std::uint64_t cost = 1,
                 Enforcement enforcement = Enforcement::enforce) {
  return {&limit, key, cost, enforcement};
}

TEST(MemoryStore, ABucketOfThirtyAtTenASecond) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit limit = counted("store.article", token_bucket(10, seconds(1), 30));
  for (std::uint64_t left = 30; left-- > 0;) {
    const Decision decision = check.ask_one(store, limit, "42", 1, at(kStart));
    EXPECT_TRUE(check.answered);
    EXPECT_TRUE(check.admitted);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.remaining, left);
    EXPECT_EQ(decision.source, Source::memory);
  }
  const Decision denied = check.ask_one(store, limit, "42", 1, at(kStart));
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(denied.retry_after, Wait(milliseconds(100)));
  EXPECT_EQ(denied.reset_after, Wait(seconds(3)));
  EXPECT_FALSE(check.ask_one(store, limit, "42", 1, at(kStart + kSecond / 10 - 1)).allowed);
  EXPECT_TRUE(check.ask_one(store, limit, "42", 1, at(kStart + kSecond / 10)).allowed);
  EXPECT_EQ(check.completed, 0);
}

TEST(MemoryStore, TheCostThatNeverFitsFitsNoLimit) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit bucket = counted("store.never.bucket", token_bucket(kMaxRate, seconds(1), kMaxTokens));
  const CountedLimit queue = counted("store.never.queue", leaky_bucket(1, seconds(1), kMaxTokens - 1));
  const CountedLimit window = counted("store.never.window", fixed_window(kMaxRate, seconds(1)));
  Limit numbers = fixed_window(kMaxRate, seconds(1));
  numbers.algorithm = Algorithm::sliding_window;
  const CountedLimit sliding = counted("store.never.sliding", numbers);
  for (const CountedLimit* limit : {&bucket, &queue, &window, &sliding}) {
    const Decision never = check.ask_one(store, *limit, "42", kNeverFits, at(kStart));
    EXPECT_FALSE(never.allowed) << limit->identity;
    EXPECT_TRUE(never.retry_after.is_never()) << limit->identity;
    EXPECT_EQ(never.remaining, never.limit) << limit->identity;
    EXPECT_TRUE(check.ask_one(store, *limit, "42", never.limit, at(kStart)).allowed) << limit->identity;
  }
  numbers.algorithm = Algorithm::fixed_window;
  numbers.count_denied = true;
  const CountedLimit counting = counted("store.never.counting", numbers);
  for (int i = 0; i < 3; ++i) {  // the count stops 10^15 above the rate
    EXPECT_EQ(check.ask_one(store, counting, "42", kNeverFits, at(kStart)).remaining, 0U);
  }
}

TEST(MemoryStore, NothingToCheckIsAdmitted) {
  MemoryStore store;
  AtOnce check;
  check.ask(store, {}, at(kStart));
  EXPECT_TRUE(check.answered);
  EXPECT_TRUE(check.admitted);
}

TEST(MemoryStore, ADeniedRequestTakesNothingFromTheOthers) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit global = counted("store.all.global", token_bucket(1, hours(1), 100));
  const CountedLimit address = counted("store.all.address", token_bucket(1, hours(1), 1));
  const std::vector<Charge> both = {charge_of(global, "g"), charge_of(address, "a")};
  EXPECT_EQ(check.ask(store, both, at(kStart))[0].remaining, 99U);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Decision>& denied = check.ask(store, both, at(kStart));
    EXPECT_FALSE(check.admitted);
    EXPECT_TRUE(denied[0].allowed);
    EXPECT_EQ(denied[0].remaining, 99U);
    EXPECT_EQ(denied[0].retry_after, Wait());
    EXPECT_FALSE(denied[1].allowed);
  }
  EXPECT_EQ(check.ask_one(store, global, "g", 1, at(kStart)).remaining, 98U);
}

TEST(MemoryStore, IdentityIsTheLimitAndTheKey) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit one = counted("store.identity.a", token_bucket(1, hours(1), 1));
  const CountedLimit two = counted("store.identity.b", token_bucket(1, hours(1), 1));
  EXPECT_TRUE(check.ask_one(store, one, "k", 1, at(kStart)).allowed);
  EXPECT_TRUE(check.ask_one(store, two, "k", 1, at(kStart)).allowed);
  EXPECT_TRUE(check.ask_one(store, one, "k2", 1, at(kStart)).allowed);
  EXPECT_FALSE(check.ask_one(store, one, "k", 1, at(kStart)).allowed);
}

TEST(MemoryStore, public_report_42_KeysOfAnyBytesAreDistinct) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit limit = counted("store.bytes", token_bucket(1, hours(1), 1));
  std::vector<std::string> keys = {"",
                                   "a b",
                                   {"a\0b", 3},
                                   "a\r\nb",
                                   "日本語",
                                   {"\0", 1},
                                   std::string(2, '\0'),
                                   std::string(64 * 1024, 'x'),
                                   "a",
                                   {"a\0", 2},
                                   "a|b",
                                   std::string(64 * 1024 + 1, 'x')};
  for (std::size_t length = 20; length < 40; ++length) {
    keys.emplace_back(length, 'y');
    keys.back().back() = 'z';
    keys.emplace_back(length, 'y');
  }
  for (const std::string& key : keys)
    EXPECT_TRUE(check.ask_one(store, limit, key, 1, at(kStart)).allowed) << key.size();
  for (const std::string& key : keys)
    EXPECT_FALSE(check.ask_one(store, limit, key, 1, at(kStart)).allowed) << key.size();
  EXPECT_EQ(store.figures().keys, keys.size());
}

TEST(MemoryStore, LooksAndDenialsMakeNoKey) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit limit = counted("store.nokey", token_bucket(10, seconds(1), 5));
  EXPECT_EQ(check.ask_one(store, limit, "a", 0, at(kStart)).remaining, 5U);
  const Decision never = check.ask_one(store, limit, "a", 6, at(kStart));
  EXPECT_FALSE(never.allowed);
  EXPECT_TRUE(never.retry_after.is_never());
  EXPECT_EQ(never.remaining, 5U);
  EXPECT_TRUE(check.ask_one(store, limit, "a", kMaxTokens, at(kStart)).retry_after.is_never());
  EXPECT_EQ(store.figures().keys, 0U);
  EXPECT_TRUE(check.ask_one(store, limit, "a", 5, at(kStart)).allowed);
  EXPECT_EQ(store.figures().keys, 1U);
}

TEST(MemoryStore, JudgingTakesNothing) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit limit = counted("store.judge", token_bucket(10, seconds(1), 10));
  EXPECT_EQ(store.judge(charge_of(limit, "a", 3), at(kStart)).remaining, 10U);
  EXPECT_EQ(store.figures().keys, 0U);
  EXPECT_EQ(check.ask_one(store, limit, "a", 9, at(kStart)).remaining, 1U);
  for (int i = 0; i < 3; ++i) {
    const Decision denied = store.judge(charge_of(limit, "a", 2), at(kStart));
    EXPECT_FALSE(denied.allowed);
    EXPECT_EQ(denied.remaining, 1U);
    EXPECT_EQ(denied.retry_after, Wait(milliseconds(100)));
    EXPECT_EQ(denied.reset_after, Wait(milliseconds(900)));
    EXPECT_TRUE(store.judge(charge_of(limit, "a", 1), at(kStart)).allowed);
  }
  EXPECT_TRUE(store.judge(charge_of(limit, "a", 11), at(kStart)).retry_after.is_never());
  // New numbers hold at once.
  const CountedLimit smaller = counted("store.judge", token_bucket(10, seconds(1), 5));
  EXPECT_EQ(store.judge(charge_of(smaller, "a"), at(kStart)).limit, 5U);
  EXPECT_EQ(check.ask_one(store, limit, "a", 1, at(kStart)).remaining, 0U);
}

TEST(MemoryStore, EachAlgorithmGoesByItsClock) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit bucket = counted("store.clock.bucket", token_bucket(1, seconds(1), 1));
  const CountedLimit epoch = counted("store.clock.epoch", fixed_window(1, seconds(1)));
  const CountedLimit first_hit = counted("store.clock.first", fixed_window(1, seconds(1), Align::first_hit));
  const auto all_allowed = [&](Time now) {
    return std::array{check.ask_one(store, bucket, "k", 1, now).allowed,
                      check.ask_one(store, epoch, "k", 1, now).allowed,
                      check.ask_one(store, first_hit, "k", 1, now).allowed};
  };
  EXPECT_EQ(all_allowed({0, kStart}), (std::array{true, true, true}));
  EXPECT_EQ(all_allowed({0, kStart + kSecond}), (std::array{false, true, false}));
  EXPECT_EQ(all_allowed({kSecond, kStart + kSecond}), (std::array{true, false, true}));
}

TEST(MemoryStore, AnOlderTimeGivesNothing) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit limit = counted("store.older", token_bucket(2, seconds(1), 4));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(check.ask_one(store, limit, "k", 1, at(kStart)).allowed);
  EXPECT_FALSE(check.ask_one(store, limit, "k", 1, at(kStart - 10 * kSecond)).allowed);
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(check.ask_one(store, limit, "k", 1, at(kStart)).allowed);
}

TEST(MemoryStore, CountDeniedCountsOnlyWhatDidNotFit) {
  MemoryStore store;
  AtOnce check;
  Limit numbers = fixed_window(2, hours(1));
  numbers.count_denied = true;
  const CountedLimit counts = counted("store.denied.a", numbers);
  const CountedLimit blocks = counted("store.denied.b", token_bucket(1, hours(1), 1));
  EXPECT_TRUE(check.ask_one(store, blocks, "k", 1, at(kStart)).allowed);
  check.ask(store, {charge_of(counts, "k"), charge_of(blocks, "k")}, at(kStart));
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.answers[0].remaining, 2U);  // it fits, so it is not counted
  EXPECT_EQ(check.ask_one(store, counts, "k", 1, at(kStart)).remaining, 1U);
  check.ask(store, {charge_of(counts, "k", 2), charge_of(blocks, "k")}, at(kStart));
  EXPECT_EQ(check.answers[0].remaining, 0U);  // 1 + 2 of 2: it does not, so it is
  EXPECT_FALSE(check.ask_one(store, counts, "k", 1, at(kStart)).allowed);
}

TEST(MemoryStore, ADenialThatIsCountedMakesAKey) {
  MemoryStore store;
  AtOnce check;
  Limit numbers = fixed_window(2, hours(1));
  numbers.count_denied = true;
  const CountedLimit limit = counted("store.denied.key", numbers);
  EXPECT_FALSE(check.ask_one(store, limit, "k", 3, at(kStart)).allowed);
  EXPECT_FALSE(check.ask_one(store, limit, "k", 1, at(kStart)).allowed);
}

TEST(MemoryStore, NewNumbersKeepTheTokens) {
  MemoryStore store;
  AtOnce check;
  const CountedLimit before = counted("store.reload", token_bucket(1, seconds(1), 10));
  const CountedLimit after = counted("store.reload", token_bucket(2, seconds(1), 5));
  EXPECT_EQ(check.ask_one(store, before, "spent", 8, at(kStart)).remaining, 2U);
  EXPECT_EQ(check.ask_one(store, before, "hardly", 1, at(kStart)).remaining, 9U);
  // 1 s at the old rate, then 1 s at the new one; a look is enough to bring the numbers.
  EXPECT_EQ(check.ask_one(store, after, "spent", 0, at(kStart + kSecond)).remaining, 3U);
  EXPECT_EQ(check.ask_one(store, after, "spent", 0, at(kStart + 2 * kSecond)).remaining, 5U);
  EXPECT_EQ(check.ask_one(store, after, "hardly", 0, at(kStart)).remaining, 5U);  // cut
  EXPECT_EQ(check.ask_one(store, after, "new", 0, at(kStart)).remaining, 5U);
}

TEST(MemoryStore, EqualNumbersOfAReloadChangeNothing) {
  MemoryStore store;
  AtOnce check;
  auto before = std::make_unique<CountedLimit>(counted("store.same", token_bucket(1, hours(1), 10)));
  EXPECT_TRUE(check.ask_one(store, *before, "k", 10, at(kStart)).allowed);
  const CountedLimit after = *before;
  before.reset();
  EXPECT_FALSE(check.ask_one(store, after, "k", 1, at(kStart)).allowed);
}

TEST(MemoryStore, ALimitThatCannotBeCompiledIsAnsweredAsAFailure) {
  MemoryStore store;
  AtOnce check;
  Limit broken = token_bucket(1, seconds(1), 0);
  CountedLimit deny = counted("store.broken.deny", broken);
  deny.on_store_failure = OnStoreFailure::deny;
  CountedLimit allow = counted("store.broken.allow", broken);
  allow.on_store_failure = OnStoreFailure::allow;
  const CountedLimit good = counted("store.broken.good", token_bucket(1, hours(1), 2));
  const Decision denied = check.ask_one(store, deny, "k", 1, at(kStart));
  EXPECT_FALSE(denied.allowed);
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(denied.source, Source::fallback_deny);
  EXPECT_EQ(check.ask_one(store, allow, "k", 1, at(kStart)).source, Source::fallback_allow);
  EXPECT_TRUE(check.admitted);
  check.ask(store, {charge_of(good, "k"), charge_of(deny, "k")}, at(kStart));
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.answers[0].remaining, 2U);
  check.ask(store, {charge_of(good, "k"), charge_of(allow, "k")}, at(kStart));
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.answers[0].remaining, 1U);
}

TEST(MemoryStore, NumbersAreForgottenWithTheirLastUser) {
  const std::size_t before = memory::live_limit_count();
  {
    MemoryStore store;
    AtOnce check;
    {
      const CountedLimit limit = counted("store.forgotten", token_bucket(1, hours(1), 10));
      const CountedLimit copy = limit;
      EXPECT_TRUE(check.ask_one(store, limit, "k", 1, at(kStart)).allowed);
      EXPECT_TRUE(check.ask_one(store, copy, "k", 1, at(kStart)).allowed);
      EXPECT_EQ(memory::live_limit_count(), before + 1);
    }
    EXPECT_EQ(memory::live_limit_count(), before + 1);  // the key's state is of these numbers
    const CountedLimit next = counted("store.forgotten", token_bucket(1, hours(1), 20));
    EXPECT_EQ(check.ask_one(store, next, "k", 1, at(kStart)).remaining, 7U);
    EXPECT_EQ(memory::live_limit_count(), before + 1);
  }
  EXPECT_EQ(memory::live_limit_count(), before);
}

TEST(MemoryStore, NeverMoreThanMaxKeysUnderRandomKeys) {
  constexpr std::uint64_t kMax = 40'000;
  MemoryStore store(kMax);
  AtOnce check;
  const CountedLimit limit = counted("store.attack", token_bucket(1, hours(1), 10));
  std::mt19937_64 random(1);
  std::uint64_t most = 0;
  constexpr std::uint64_t kCalls = 150'000;
  for (std::uint64_t i = 0; i < kCalls; ++i) {
    const std::string key = std::to_string(random()) + std::to_string(random());
    ASSERT_TRUE(check.ask_one(store, limit, key, 1, at(kStart + static_cast<std::int64_t>(i))).allowed);
    if (i % 1'000 == 0) most = std::max(most, store.figures().keys);
  }
  const MemoryStore::Figures figures = store.figures();
  EXPECT_LE(most, kMax);
  EXPECT_LE(figures.keys, kMax);
  EXPECT_GE(figures.keys, kMax * 19 / 20);
  EXPECT_EQ(figures.keys + figures.evicted, kCalls);
  EXPECT_LE(figures.bytes, kMax * 64 * 5 / 4 + (std::size_t{2} << 20U));
}

TEST(MemoryStore, EvictionsBeginNearTheBound) {
  constexpr std::uint64_t kMax = 100'000;
  MemoryStore store(kMax);
  AtOnce check;
  const CountedLimit limit = counted("store.near", token_bucket(1, hours(1), 10));
  for (std::uint64_t i = 0; i < kMax * 9 / 10; ++i) {
    static_cast<void>(check.ask_one(store, limit, std::to_string(i), 1, at(kStart)));
  }
  EXPECT_EQ(store.figures().evicted, 0U);
  EXPECT_EQ(store.figures().keys, kMax * 9 / 10);
}

/// Key n has spent n tokens of one a second: it equals a fresh one after n seconds.
class Eviction : public ::testing::Test {
 protected:
  void spend(MemoryStore& store, std::uint64_t n, std::int64_t now) {
    ASSERT_TRUE(check_.ask_one(store, limit_, std::to_string(n), n, at(now)).allowed);
  }
  bool is_there(MemoryStore& store, std::uint64_t n, std::int64_t now) {
    return check_.ask_one(store, limit_, std::to_string(n), 0, at(now)).remaining < limit_.numbers.burst;
  }
  CountedLimit limit_ = counted("store.eviction", token_bucket(1, seconds(1), 1'000'000));
  AtOnce check_;
};

TEST_F(Eviction, OfFewTheNearestToFreshGoesFirst) {
  MemoryStore store(16);
  for (const std::uint64_t n : {9U, 4U, 16U, 2U, 11U, 6U, 13U, 1U, 15U, 8U, 3U, 12U, 5U, 14U, 10U, 7U}) {
    spend(store, n, kStart);
  }
  EXPECT_EQ(store.figures().evicted, 0U);
  for (std::uint64_t next = 1; next <= 8; ++next) {
    EXPECT_TRUE(is_there(store, next, kStart));
    spend(store, 100 + next, kStart);
    EXPECT_FALSE(is_there(store, next, kStart));
    EXPECT_EQ(store.figures().evicted, next);
    EXPECT_EQ(store.figures().keys, 16U);
  }
  for (std::uint64_t n = 9; n <= 16; ++n) EXPECT_TRUE(is_there(store, n, kStart));
}

TEST_F(Eviction, WhatEqualsAFreshKeyGoesUncounted) {
  MemoryStore store(16);
  for (std::uint64_t n = 1; n <= 16; ++n) spend(store, n, kStart);
  const std::int64_t later = kStart + 5 * kSecond;
  for (std::uint64_t n = 101; n <= 105; ++n) spend(store, n, later);
  EXPECT_EQ(store.figures().evicted, 0U);
  EXPECT_EQ(store.figures().expired, 5U);
  for (std::uint64_t n = 6; n <= 16; ++n) EXPECT_TRUE(is_there(store, n, later));
}

TEST_F(Eviction, WhatNeverComesBackGoesLast) {
  MemoryStore store(16);
  const CountedLimit never = counted("store.eviction.never", token_bucket(0, seconds(1), 10));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(check_.ask_one(store, never, std::to_string(i), 1, at(kStart)).allowed);
  for (std::uint64_t n = 1'000; n < 1'050; ++n) spend(store, n, kStart);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(check_.ask_one(store, never, std::to_string(i), 0, at(kStart)).remaining, 9U);
  }
}

TEST_F(Eviction, OfManyTheFarthestFromFreshMostlyStay) {
  constexpr std::uint64_t kMax = 4'000;
  MemoryStore store(kMax);
  std::vector<std::uint64_t> order;
  for (std::uint64_t n = 1; n <= kMax; ++n) order.push_back(n);
  std::ranges::shuffle(order, std::mt19937_64(5));
  for (const std::uint64_t n : order) spend(store, n, kStart);
  for (std::uint64_t n = 0; n < kMax / 4; ++n) spend(store, 100'000 + n, kStart);
  EXPECT_EQ(store.figures().evicted, kMax / 4);
  std::uint64_t lost_of_upper_half = 0;
  for (std::uint64_t n = kMax / 2; n <= kMax; ++n) lost_of_upper_half += is_there(store, n, kStart) ? 0U : 1U;
  // The best of eight is in the upper half once in 256 draws, and more often as the lower half is used up.
  EXPECT_LT(lost_of_upper_half, kMax / 4 / 10);
}

/// Traffic that leaves its keys behind, and how much memory the store holds then.
TEST(MemoryStore, ShrinksWhenKeysAreLeftBehind) {
  constexpr std::uint64_t kMany = 300'000;
  const auto limit = counted("store.shrink", fixed_window(5, seconds(1)));
  AtOnce check;
  std::uint64_t next_key = 0;
  const auto window = [&](MemoryStore& store, std::int64_t start, std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      const std::int64_t now = start + static_cast<std::int64_t>(i * static_cast<std::uint64_t>(kSecond) / calls);
      static_cast<void>(check.ask_one(store, limit, "one hit " + std::to_string(next_key++), 1, at(now)));
    }
  };
  MemoryStore store(1'000'000);
  window(store, kStart, kMany);
  const std::uint64_t full = store.figures().bytes;
  EXPECT_EQ(store.figures().keys, kMany);
  EXPECT_GE(full, kMany * sizeof(memory::PolicyRecord));
  window(store, kStart + kSecond, kMany / 100);
  window(store, kStart + 2 * kSecond, kMany / 100);

  MemoryStore quiet(1'000'000);  // one that never had more than the last windows' keys
  window(quiet, kStart + kSecond, kMany / 100);
  window(quiet, kStart + 2 * kSecond, kMany / 100);
  EXPECT_LE(store.figures().keys, quiet.figures().keys * 12 / 10);
  EXPECT_LE(store.figures().bytes, quiet.figures().bytes * 12 / 10);
  EXPECT_LT(store.figures().bytes, full / 5);
}

TEST(MemoryStore, AllKeysGoWhenOneCallerComesOften) {
  MemoryStore store(100'000);
  AtOnce check;
  const CountedLimit limit = counted("store.quiet", token_bucket(10, seconds(1), 10));
  for (int i = 0; i < 50'000; ++i) {
    static_cast<void>(check.ask_one(store, limit, std::to_string(i), 1, at(kStart)));
  }
  for (std::int64_t now = kStart + kSecond; now < kStart + 4 * kSecond; now += kSecond / 500) {
    static_cast<void>(check.ask_one(store, limit, "the one", 1, at(now)));
  }
  EXPECT_LE(store.figures().keys, 1U);
  EXPECT_EQ(store.figures().evicted, 0U);
}

TEST(MemoryStore, NoCallDoesMoreThanAShardsWork) {
  constexpr std::uint64_t kMax = 80'000;
  MemoryStore store(kMax);
  AtOnce check;
  const CountedLimit limit = counted("store.stall", token_bucket(1, seconds(1), 1'000));
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  std::int64_t now = kStart;
  const auto step = [&](const std::string& key, std::uint64_t cost) {
    static_cast<void>(check.ask_one(store, limit, key, cost, at(now)));
    const std::uint64_t work = store.figures().work;
    most = std::max(most, work - before);
    before = work;
  };
  for (std::uint64_t i = 0; i < kMax * 11 / 10; ++i) {  // growing, then full
    step(std::to_string(i), 1 + i % 3);
    now += 5'000;
  }
  now += 100 * kSecond;
  for (int i = 0; i < 1'000; ++i) {  // emptied
    step("late" + std::to_string(i), 1);
    now += kSecond / 500;
  }
  EXPECT_GT(most, 1'000U);  // it is counted at all
  // Of two shards at most: the one it needs, and one it cleans. A slot's work is some ns.
  EXPECT_LE(most, 5 * memory::Shard<memory::PolicyRecord>::most_slots(8'192));
}

Failure apply(MemoryStore& store, const CountedLimit& limit, const Verb& verb, AtOnce& check, std::int64_t now) {
  const Charge charge{.limit = &limit, .key = "k"};
  check.answers.assign(1, Decision());
  check.charges = {&charge, 1};
  check.decisions = check.answers;
  check.verb = &verb;
  check.answered = store.apply(check, at(now)) == Progress::answered;
  check.charges = {};
  check.verb = nullptr;
  return check.failure;
}

TEST(MemoryStore, VerbsMakeAndForgetKeys) {
  MemoryStore store(100);
  AtOnce check;
  const CountedLimit limit = counted("store.verbs", token_bucket(1, hours(1), 10));
  for (const Verb& verb : {Verb::refund(3), Verb::settle(3, 1), Verb::reset(), Verb::peek()}) {
    EXPECT_EQ(apply(store, limit, verb, check, kStart), Failure::none);
    EXPECT_TRUE(check.answered);
    EXPECT_TRUE(check.admitted);
    EXPECT_EQ(store.figures().keys, 0U);
  }
  EXPECT_EQ(apply(store, limit, Verb::penalize(4), check, kStart), Failure::none);
  EXPECT_EQ(check.answers[0].remaining, 6U);
  EXPECT_EQ(check.answers[0].source, Source::memory);
  EXPECT_EQ(store.figures().keys, 1U);
  EXPECT_EQ(apply(store, limit, Verb::settle(0, kMaxTokens), check, kStart), Failure::none);
  EXPECT_EQ(check.answers[0].remaining, 0U);
  EXPECT_EQ(apply(store, limit, Verb::reset(), check, kStart), Failure::none);
  EXPECT_EQ(check.answers[0].remaining, 10U);
  EXPECT_EQ(store.figures().keys, 0U);
}

// A look under new numbers tells what they would make of the state, and leaves it to the old ones.
TEST(MemoryStore, ALookUnderNewNumbersChangesNothing) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                    Algorithm::sliding_window, Algorithm::sliding_log}) {
    MemoryStore store(100);
    AtOnce check;
    const auto numbered = [&](std::uint64_t most, std::chrono::nanoseconds period) {
      Limit limit{.algorithm = algorithm, .rate = most, .period = period};
      if (algorithm == Algorithm::token_bucket) limit.burst = most;
      if (algorithm == Algorithm::leaky_bucket) limit.queue = most - 1;
      return counted("store.look", limit);
    };
    const CountedLimit wide = numbered(20, hours(300));
    const CountedLimit narrow = numbered(5, hours(300));
    const CountedLimit other = numbered(20, hours(200));
    const std::uint64_t left = check.ask_one(store, wide, "k", 12, at(kStart)).remaining;
    const memory::TableFigures before = store.figures();
    EXPECT_EQ(apply(store, narrow, Verb::peek(), check, kStart), Failure::none);
    EXPECT_LE(check.answers[0].remaining, 5U);
    EXPECT_EQ(apply(store, other, Verb::peek(), check, kStart), Failure::none);
    EXPECT_LE(store.judge(charge_of(narrow, "k"), at(kStart)).remaining, 5U);
    EXPECT_EQ(store.figures().bytes, before.bytes);
    EXPECT_EQ(check.ask_one(store, wide, "k", 0, at(kStart)).remaining, left) << static_cast<int>(algorithm);
  }
}

// A state that is full again by a verb is dropped in time, and one that a verb made lasts until then.
TEST(MemoryStore, VerbsKeepTheTimeAtWhichAKeyMayGo) {
  MemoryStore store(100);
  AtOnce check;
  const CountedLimit limit = counted("store.verb_life", token_bucket(1, seconds(1), 1'000));
  ASSERT_TRUE(check.ask_one(store, limit, "k", 900, at(kStart)).allowed);
  ASSERT_EQ(apply(store, limit, Verb::refund(899), check, kStart), Failure::none);
  for (std::int64_t now = kStart; now < kStart + 6 * kSecond; now += kSecond / 4) {
    static_cast<void>(check.ask_one(store, limit, "other", 0, at(now)));
  }
  EXPECT_EQ(store.figures().keys, 0U);
  EXPECT_EQ(store.figures().evicted, 0U);
}

TEST(MemoryStore, VerbsThatAnAlgorithmDoesNotHaveAreRefused) {
  MemoryStore store(100);
  AtOnce check;
  Limit numbers;
  numbers.algorithm = Algorithm::concurrency;
  numbers.rate = 2;
  const CountedLimit leases = counted("store.verb_leases", numbers);
  for (const Verb& verb : {Verb::refund(1), Verb::settle(1, 2), Verb::penalize(1)}) {
    EXPECT_EQ(apply(store, leases, verb, check, kStart), Failure::unsupported);
  }
  const CountedLimit bucket = counted("store.verb_bucket", token_bucket(1, seconds(1), 5));
  EXPECT_EQ(apply(store, bucket, Verb::release(1, 1), check, kStart), Failure::unsupported);
  EXPECT_EQ(apply(store, counted("store.verb_wrong", token_bucket(1, seconds(1), 0)), Verb::reset(), check, kStart),
            Failure::unsupported);
  EXPECT_EQ(store.figures().keys, 0U);
}

TEST(MemoryStore, NoLeaseComesTwice) {
  MemoryStore store(100);
  AtOnce check;
  Limit numbers;
  numbers.algorithm = Algorithm::concurrency;
  numbers.rate = 1;
  const CountedLimit limit = counted("store.leases", numbers);
  const auto take = [&](std::int64_t now) {
    std::uint64_t lease = 0;
    check.leases = {&lease, 1};
    const Decision decision = check.ask_one(store, limit, "k", 1, at(now));
    check.leases = {};
    EXPECT_EQ(decision.allowed, lease != 0);
    return lease;
  };
  const std::uint64_t first = take(kStart);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(take(kStart), 0U);
  ASSERT_EQ(apply(store, limit, Verb::release(first + 1, 1), check, kStart), Failure::none);
  EXPECT_FALSE(check.admitted);
  ASSERT_EQ(apply(store, limit, Verb::release(first, 1), check, kStart), Failure::none);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.answers[0].remaining, 1U);
  ASSERT_EQ(apply(store, limit, Verb::reset(), check, kStart), Failure::none);  // the key is gone, its ids are not
  const std::uint64_t second = take(kStart);
  EXPECT_GT(second, first);
  ASSERT_EQ(apply(store, limit, Verb::release(first, 1), check, kStart), Failure::none);
  EXPECT_FALSE(check.admitted);
}

TEST(MemoryStore, AKeyTakesAboutOneCacheLine) {
  MemoryStore store(1'000'000);
  AtOnce check;
  const CountedLimit limit = counted("store.bytes_per_key", token_bucket(1, hours(1), 10));
  const MemoryStore::Figures empty = store.figures();
  EXPECT_LE(empty.bytes, 100'000U);
  constexpr std::uint64_t kKeys = 400'000;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string number = std::to_string(i);
    const std::string key = "user:" + std::string(15 - number.size(), '0') + number;  // 20 bytes
    static_cast<void>(check.ask_one(store, limit, key, 1, at(kStart)));
  }
  EXPECT_LE((store.figures().bytes - empty.bytes) / kKeys, 64U + 20U + 6U);
}

}  // namespace
}  // namespace sluice::store
