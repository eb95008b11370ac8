#include "store/redis/redis_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <atomic>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "store/fallback_store.h"
#include "store/memory/memory_store.h"
#include "store/redis/script.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::ask;
using testing::HeldCheck;
using testing::RedisServer;
using testing::run_until;

// The script at one instant: answers are exact whatever the machine is doing. Keys then expire by the server's own
// clock, so they are kept for longer than any test.
Script script_at(std::int64_t microseconds) {
  return make_check_script("local now, shortest_expiry, trusted_lead = " + std::to_string(microseconds) +
                           ", 3600000, 0\n");
}

// 2026-01-01 00:00 UTC.
constexpr std::int64_t kNewYear = 1'767'225'600'000'000;

CountedLimit bucket(std::string identity, std::uint64_t rate, std::uint64_t burst,
                    std::chrono::nanoseconds period = 1s) {
  return {.numbers = {.algorithm = Algorithm::token_bucket, .rate = rate, .period = period, .burst = burst},
          .identity = std::move(identity)};
}

CountedLimit window(std::string identity, std::uint64_t rate, std::chrono::nanoseconds period,
                    Align align = Align::epoch) {
  return {.numbers = {.algorithm = Algorithm::fixed_window, .rate = rate, .period = period, .align = align},
          .identity = std::move(identity)};
}

class RedisStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    server_ = std::make_unique<RedisServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { server_->command({"FLUSHALL"}); }

  // Time-outs of these tests are generous: none of them is about time.
  std::unique_ptr<RedisStore> make_store(const Script* script = nullptr) {
    auto store = RedisStore::create(io_, {.url = server_->url(), .timeout = 5s, .script = script}, metrics_);
    EXPECT_TRUE(store);
    return *std::move(store);
  }

  static inline std::unique_ptr<RedisServer> server_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
};

TEST_F(RedisStoreTest, AnswersAsTheBucketDoes) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit limit = bucket("shop/user;tb", 10, 30);
  for (int i = 0; i < 30; ++i) {
    HeldCheck check({{.limit = &limit, .key = "42"}});
    ask(io_, *store, check);
    ASSERT_EQ(check.failure, Failure::none);
    EXPECT_TRUE(check.admitted);
    EXPECT_EQ(check.decisions[0].remaining, 29U - static_cast<unsigned>(i));
    EXPECT_EQ(check.decisions[0].source, Source::redis);
  }
  HeldCheck last({{.limit = &limit, .key = "42"}});
  ask(io_, *store, last);
  EXPECT_FALSE(last.admitted);
  EXPECT_FALSE(last.decisions[0].allowed);
  EXPECT_EQ(last.decisions[0].limit, 30U);
  EXPECT_EQ(last.decisions[0].retry_after, Wait(100ms));
  EXPECT_EQ(last.decisions[0].reset_after, Wait(3s));

  const Script later = script_at(kNewYear + 100'000);
  const auto other = make_store(&later);
  HeldCheck again({{.limit = &limit, .key = "42"}});
  ask(io_, *other, again);
  EXPECT_TRUE(again.admitted);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_checks), 32U);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), 0U);
}

TEST_F(RedisStoreTest, TheCostThatNeverFitsFitsNoLimit) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit limit = bucket("shop/never;tb", 1, kMaxTokens);
  HeldCheck never({{.limit = &limit, .key = "42", .cost = kNeverFits}});
  ask(io_, *store, never);
  ASSERT_EQ(never.failure, Failure::none);
  EXPECT_FALSE(never.admitted);
  EXPECT_TRUE(never.decisions[0].retry_after.is_never());
  HeldCheck all({{.limit = &limit, .key = "42", .cost = kMaxTokens}});
  ask(io_, *store, all);
  EXPECT_TRUE(all.admitted);
}

// Two daemons, one limit: 31 calls spread over both.
TEST_F(RedisStoreTest, StoresShareALimit) {
  const Script script = script_at(kNewYear);
  const auto one = make_store(&script);
  const auto two = make_store(&script);
  const CountedLimit limit = bucket("shop/ArticleCreate;tb", 10, 30);
  std::deque<HeldCheck> checks;
  for (int i = 0; i < 31; ++i) {
    checks.emplace_back(std::vector<Charge>{{.limit = &limit, .key = "42"}});
    start(i % 2 == 0 ? *one : *two, checks.back());
  }
  ASSERT_TRUE(
      run_until(io_, [&] { return std::all_of(checks.begin(), checks.end(), [](auto& c) { return c.done; }); }));
  EXPECT_EQ(std::count_if(checks.begin(), checks.end(), [](const auto& check) { return check.admitted; }), 30);
}

TEST_F(RedisStoreTest, ARestartKeepsTheState) {
  const Script script = script_at(kNewYear);
  const CountedLimit limit = bucket("shop/user;tb", 1, 2);
  for (int i = 0; i < 3; ++i) {
    const auto store = make_store(&script);
    HeldCheck check({{.limit = &limit, .key = "42"}});
    ask(io_, *store, check);
    EXPECT_EQ(check.admitted, i < 2);
  }
}

TEST_F(RedisStoreTest, AllOrNothing) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit global = bucket("shop/global;tb", 100, 100);
  const CountedLimit user = bucket("shop/user;tb", 1, 1);
  const std::vector<Charge> both = {{.limit = &global, .key = "g"}, {.limit = &user, .key = "42"}};
  HeldCheck first(both);
  ask(io_, *store, first);
  EXPECT_TRUE(first.admitted);
  HeldCheck second(both);
  ask(io_, *store, second);
  EXPECT_FALSE(second.admitted);
  // Its own verdict: it would fit, and nothing was taken.
  EXPECT_TRUE(second.decisions[0].allowed);
  EXPECT_EQ(second.decisions[0].remaining, 99U);
  EXPECT_FALSE(second.decisions[1].allowed);
  EXPECT_EQ(second.decisions[1].which, 1U);
}

TEST_F(RedisStoreTest, WhatIsNotTakenTakesNoLastTokenAndHasNoTurn) {
  const auto store = make_store();
  store::MemoryStore memory;
  CountedLimit empty = bucket("t.none", 1, 1, 1h);
  empty.id = 1;
  CountedLimit ten = window("t.ten", 10, 24h);
  ten.id = 2;
  const CountedLimit queue{.numbers = {.algorithm = Algorithm::leaky_bucket, .rate = 1, .period = 1h, .queue = 20},
                           .identity = "t.queue",
                           .id = 3};
  for (Store* const each : std::initializer_list<Store*>{store.get(), &memory}) {
    HeldCheck first({{.limit = &empty, .key = "k"}, {.limit = &queue, .key = "k", .cost = 2}});
    ask(io_, *each, first);
    ASSERT_TRUE(first.admitted);
    HeldCheck denied(
        {{.limit = &empty, .key = "k"}, {.limit = &ten, .key = "k", .cost = 10}, {.limit = &queue, .key = "k"}});
    ask(io_, *each, denied);
    EXPECT_FALSE(denied.admitted);
    EXPECT_TRUE(denied.decisions[1].allowed);
    EXPECT_EQ(denied.decisions[1].remaining, 10U);
    EXPECT_EQ(denied.decisions[1].mark, Mark::none);
    EXPECT_TRUE(denied.decisions[2].allowed);
    EXPECT_EQ(denied.decisions[2].delay, Wait());
  }
}

TEST_F(RedisStoreTest, ShadowAndQuotaCharges) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit one = bucket("shop/one;tb", 1, 1);
  const CountedLimit two = bucket("shop/two;tb", 1, 2);
  const auto ask_both = [&](Enforcement first, Enforcement second) {
    HeldCheck check(
        {{.limit = &one, .key = "k", .enforcement = first}, {.limit = &two, .key = "k", .enforcement = second}});
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
    return std::vector<bool>{check.admitted, check.decisions[0].allowed, check.decisions[1].allowed};
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(ask_both(Enforcement::quota, Enforcement::quota), ElementsAre(true, true, true));
  EXPECT_THAT(ask_both(Enforcement::quota, Enforcement::quota), ElementsAre(true, false, true));
  EXPECT_THAT(ask_both(Enforcement::quota, Enforcement::quota), ElementsAre(false, false, false));
  EXPECT_THAT(ask_both(Enforcement::shadow, Enforcement::shadow), ElementsAre(true, false, false));
  EXPECT_THAT(ask_both(Enforcement::shadow, Enforcement::enforce), ElementsAre(false, false, false));
}

TEST_F(RedisStoreTest, ManyChargesInOneRequest) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  std::deque<CountedLimit> limits;
  std::vector<Charge> charges;
  for (int i = 0; i < 100; ++i) {
    limits.push_back(bucket("shop/" + std::to_string(i) + ";tb", 1, 2));
    charges.push_back({.limit = &limits.back(), .key = "42|x"});
  }
  for (const bool admitted : {true, true, false}) {
    HeldCheck check(charges);
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_EQ(check.admitted, admitted);
  }
}

TEST_F(RedisStoreTest, QuotaOfOneAndOfNone) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  for (const Align align : {Align::epoch, Align::first_hit}) {
    const CountedLimit one = window("shop/one/" + std::to_string(static_cast<int>(align)), 1, 60s, align);
    HeldCheck first({{.limit = &one, .key = "k"}});
    ask(io_, *store, first);
    EXPECT_TRUE(first.admitted);
    EXPECT_EQ(first.decisions[0].mark, Mark::quota_hit);
    HeldCheck second({{.limit = &one, .key = "k"}});
    ask(io_, *store, second);
    EXPECT_FALSE(second.admitted);
    EXPECT_EQ(second.decisions[0].mark, Mark::over_quota);
    const CountedLimit none = window("shop/none/" + std::to_string(static_cast<int>(align)), 0, 60s, align);
    HeldCheck third({{.limit = &none, .key = "k"}});
    ask(io_, *store, third);
    EXPECT_FALSE(third.admitted);
    EXPECT_TRUE(third.decisions[0].retry_after.is_never());
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), 2);
}

TEST_F(RedisStoreTest, CalendarWindows) {
  const Script script = script_at(kNewYear - 1);
  const auto store = make_store(&script);
  CountedLimit limit = window("shop/plan;fw", 2, 1s, Align::calendar);
  limit.numbers.calendar = {.unit = Calendar::Unit::month, .timezone = "UTC"};
  const auto ask_at = [&](std::int64_t caller) {
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, *store, check, Time{.steady = 0, .utc = caller * 1'000});
    return std::pair(check.failure, check.decisions[0]);
  };
  // The caller's clock may be in the next month already.
  for (const std::int64_t caller : {kNewYear - 1, kNewYear + 5'000'000}) {
    const auto [failure, decision] = ask_at(caller);
    EXPECT_EQ(failure, Failure::none);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.reset_after, Wait(1us));
  }
  EXPECT_FALSE(ask_at(kNewYear).second.allowed);
  EXPECT_EQ(ask_at(kNewYear + 200LL * 86'400'000'000).first, Failure::clock_apart);
}

// -- keys -----------------------------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, AForeignValueInOneOfThreeKeysChangesNothing) {
  const auto store = make_store();
  const CountedLimit one = bucket("shop/one;tb", 1, 5);
  const CountedLimit two = bucket("shop/two;tb", 1, 5);
  const CountedLimit three = window("shop/three;fw", 5, 3600s);
  const std::vector<Charge> charges = {
      {.limit = &one, .key = "k"}, {.limit = &two, .key = "k"}, {.limit = &three, .key = "k"}};
  HeldCheck healthy(charges);
  ask(io_, *store, healthy);
  ASSERT_TRUE(healthy.admitted);
  const auto value_of = [&](const std::string& key) {
    return std::string(text_of(*server_->command({"GET", "sluice:{k}shop/" + key})));
  };
  const std::string first = value_of("one;tb");
  const std::string third = value_of("three;fw");
  ASSERT_EQ(first.size(), 47U);
  ASSERT_EQ(third.size(), 31U);

  const std::string wrong = "sluice:{k}shop/two;tb";
  // More parts than a token has, more missing than may be, and a time past 2^53.
  const std::string good = value_of("two;tb");
  const std::string parts = good.substr(0, 27) + std::string(6, '\xfe') + good.substr(33);
  const std::string missing = good.substr(0, 20) + std::string(7, '\xfe') + good.substr(27);
  const std::string late = good.substr(0, 33) + std::string(7, '\xfe') + good.substr(40);
  const std::vector<std::pair<std::vector<std::string>, Failure>> cases = {
      {{"SET", wrong, "hello"}, Failure::foreign_value},
      {{"SET", wrong, ""}, Failure::foreign_value},
      {{"SET", wrong, third}, Failure::foreign_value},
      {{"SET", wrong, std::string(47, '\x01')}, Failure::foreign_value},
      {{"SET", wrong, good.substr(0, 40)}, Failure::foreign_value},
      {{"SET", wrong, parts}, Failure::foreign_value},
      {{"SET", wrong, missing}, Failure::foreign_value},
      {{"SET", wrong, late}, Failure::foreign_value},
      {{"RPUSH", wrong, "x"}, Failure::wrong_type},
      {{"HSET", wrong, "a", "b"}, Failure::wrong_type},
  };
  for (const auto& [command, failure] : cases) {
    server_->command({"DEL", wrong});
    server_->command(command);
    HeldCheck check(charges);
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, failure) << command[0] << ' ' << command[2];
    EXPECT_EQ(value_of("one;tb"), first);
    EXPECT_EQ(value_of("three;fw"), third);
  }
  // One wrong key is no reason to give up the server.
  EXPECT_TRUE(store->ready());
  server_->command({"DEL", wrong});
  HeldCheck mended(charges);
  ask(io_, *store, mended);
  EXPECT_EQ(mended.failure, Failure::none);
}

TEST_F(RedisStoreTest, public_report_65) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit one = bucket("shop/t;tb", 1, 1);
  const CountedLimit two = bucket("shop/ts;tb", 1, 1);
  // As policy/key_encoding writes `{}`, `a}b`, `{x` and the empty value.
  for (const std::string_view key : {"%7B%7D", "a%7Db", "%7Bx", "%"}) {
    HeldCheck check({{.limit = &one, .key = key}, {.limit = &two, .key = key}});
    ask(io_, *store, check);
    EXPECT_TRUE(check.admitted) << key;
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), 8);
}

TEST_F(RedisStoreTest, public_report_66) {
  MemoryStore memory(1'000);
  const Script script = script_at(kNewYear);
  Readiness readiness;
  FallbackStore store(make_store(&script), memory, readiness, metrics_);
  const CountedLimit limit = bucket("shop/points;tb", 2, 2);
  HeldCheck three({{.limit = &limit, .key = "k", .cost = 3}});
  ask(io_, store, three);
  EXPECT_FALSE(three.admitted);
  EXPECT_EQ(three.decisions[0].source, Source::redis);
  EXPECT_EQ(three.decisions[0].remaining, 2U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_local), 0U);
}

// -- expiry ---------------------------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, EveryKeyExpiresWhenItEqualsAFreshOne) {
  const auto store = make_store();
  struct Case {
    CountedLimit limit;
    std::uint64_t cost;
    std::int64_t least, most;  // ms
  };
  constexpr std::int64_t never = 36'600LL * 86'400'000;
  const std::vector<Case> cases = {
      {window("public_report_51", 10, 60s, Align::first_hit), 1, 59'000, 60'000},
      {window("epoch", 10, 60s), 1, 0, 60'000},
      {window("public_report_53", 10, 60s, Align::first_hit), 5, 59'000, 60'000},
      // Buckets up to 0.9 s later, so that what follows need not set the expiry again.
      {bucket("public_report_55", 1, 1, 10s), 1, 9'000, 10'900},
      {bucket("public_report_56", 0, 5), 1, never - 1'000, never},
      {bucket("fine", 1'000, 1'001, 60s), 1, 0, 960},
      {bucket("tick", 1'000'000'000, 1), 1, 0, 901},
      {bucket("slow", 1, 1'000'000'000'000'000, 366 * 24h), 1'000'000'000'000'000, never - 1'000, never},
  };
  for (const Case& one : cases) {
    HeldCheck check({{.limit = &one.limit, .key = "k", .cost = one.cost}});
    const auto begin = std::chrono::steady_clock::now();
    ask(io_, *store, check);
    EXPECT_TRUE(check.admitted);
    const long long ttl = server_->integer({"PTTL", "sluice:{k}" + one.limit.identity});
    // At least so much of it may be gone on a busy machine. -2: all, as it should be for the shortest.
    const auto passed = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_TRUE(ttl + passed >= one.least || (one.least == 0 && ttl == -2)) << one.limit.identity << ' ' << ttl;
    EXPECT_LE(ttl, one.most) << one.limit.identity;
  }
}

// A change that is over before the key's expiry overwrites the state and leaves the expiry; another one sets it, too.
TEST_F(RedisStoreTest, TheExpiryOfABucketIsSetWhenItMustBe) {
  const Script script =
      make_check_script("local now, shortest_expiry, trusted_lead = " + std::to_string(kNewYear) + ", 1, 0\n");
  const auto store = make_store(&script);
  const CountedLimit limit = bucket("shop/user;tb", 10, 1'000);
  const auto take = [&](std::uint64_t cost) {
    for (const std::string key : {"a", "b", "c"}) {
      HeldCheck check({{.limit = &limit, .key = key, .cost = cost}});
      ask(io_, *store, check);
      EXPECT_TRUE(check.admitted);
    }
  };
  const auto calls_of = [&](const std::string& command) {
    const auto reply = server_->command({"INFO", "commandstats"});
    const std::string text(text_of(*reply));
    const std::string mark = "cmdstat_" + command + ":calls=";
    const std::size_t at = text.find(mark);
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + mark.size()));
  };
  take(200);
  const long long sets = calls_of("set");
  const long long ranges = calls_of("setrange");
  for (int i = 0; i < 5; ++i) take(1);
  EXPECT_EQ(calls_of("setrange"), ranges + 15);
  EXPECT_EQ(calls_of("set"), sets);
  EXPECT_LE(server_->integer({"PTTL", "sluice:{a}shop/user;tb"}), 20'900);
  take(20);
  EXPECT_EQ(calls_of("set"), sets + 3);
  EXPECT_GT(server_->integer({"PTTL", "sluice:{a}shop/user;tb"}), 20'900);
  HeldCheck check({{.limit = &limit, .key = "a", .cost = 0}});
  ask(io_, *store, check);
  EXPECT_EQ(check.decisions[0].remaining, 775U);
}

TEST_F(RedisStoreTest, AKeyIsGoneOnceItIsFresh) {
  const auto store = make_store();
  const CountedLimit limit = bucket("shop/user;tb", 10, 10);
  HeldCheck check({{.limit = &limit, .key = "k"}});
  ask(io_, *store, check);
  ASSERT_EQ(server_->integer({"EXISTS", "sluice:{k}shop/user;tb"}), 1);
  EXPECT_TRUE(run_until(io_, [&] { return server_->integer({"EXISTS", "sluice:{k}shop/user;tb"}) == 0; }));
}

// Looking and being denied write nothing: no key comes to be, no expiry is renewed.
TEST_F(RedisStoreTest, LookingWritesNothing) {
  const auto store = make_store();
  const CountedLimit limit = bucket("shop/user;tb", 10, 10);
  const CountedLimit other = window("shop/w;fw", 10, 60s);
  for (const std::uint64_t cost : {0U, 11U}) {
    HeldCheck check({{.limit = &limit, .key = "k", .cost = cost}, {.limit = &other, .key = "k", .cost = cost}});
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), 0);
}

// 16 callers race on the first hit of new keys.
TEST_F(RedisStoreTest, public_report_52) {
  constexpr int callers = 16;
  constexpr int keys = 625;
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  std::atomic<int> admitted = 0;
  const CountedLimit limit = bucket("shop/race;tb", 1, 3, 3600s);
  const CountedLimit other = window("shop/race;fw", 3, 3600s, Align::first_hit);
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&] {
      boost::asio::io_context io;
      metrics::Shard metrics;
      auto store = RedisStore::create(io, {.url = server_->url(), .timeout = 30s}, metrics);
      for (int k = 0; k < keys; ++k) {
        const std::string key = std::to_string(k);
        HeldCheck check({{.limit = &limit, .key = key}, {.limit = &other, .key = key}});
        ask(io, **store, check);
        failures += check.failure != Failure::none ? 1 : 0;
        admitted += check.admitted ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(admitted, 3 * keys);
  const auto without_expiry = server_->command({"EVAL",
                                                "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if "
                                                "redis.call('PTTL', k) == -1 then n = n + 1 end end return n",
                                                "0"});
  EXPECT_EQ(without_expiry->integer, 0);
  EXPECT_EQ(server_->integer({"DBSIZE"}), 2 * keys);
}

// -- a clock that is off
// ------------------------------------------------------------------------------------------------

// Four at once, one by a clock that is behind, four more. A step back of up to the time to full gives nothing; a longer
// one is cut, which is for good, so the way forward again is a jump: it gives a burst, and no more.
TEST_F(RedisStoreTest, public_report_62) {
  const CountedLimit limit = bucket("shop/user;tb", 2, 4);
  const auto admitted_of_nine = [&](std::int64_t behind) {
    server_->command({"FLUSHALL"});
    const Script now = script_at(kNewYear);
    const Script before = script_at(kNewYear - behind);
    const auto present = make_store(&now);
    const auto past = make_store(&before);
    int admitted = 0;
    for (int i = 0; i < 9; ++i) {
      HeldCheck check({{.limit = &limit, .key = "k"}});
      ask(io_, i == 4 ? *past : *present, check);
      EXPECT_EQ(check.failure, Failure::none);
      admitted += check.admitted ? 1 : 0;
    }
    return admitted;
  };
  EXPECT_EQ(admitted_of_nine(10'000), 4);
  EXPECT_EQ(admitted_of_nine(2'000'000), 4);
  EXPECT_EQ(admitted_of_nine(10'000'000), 8);
  EXPECT_EQ(admitted_of_nine(3'600'000'000), 8);
}

// A stored time an hour ahead is believed up to the time to full, so nobody is shut out for an hour.
TEST_F(RedisStoreTest, AStoredTimeFarAheadIsCut) {
  const Script ahead = script_at(kNewYear + 3'600'000'000);
  const auto fast = make_store(&ahead);
  const CountedLimit limit = bucket("shop/user;tb", 2, 4);
  const CountedLimit windowed = window("shop/w;fw", 4, 10s, Align::first_hit);
  const CountedLimit aligned = window("shop/a;fw", 4, 10s);
  const std::vector<Charge> all = {{.limit = &limit, .key = "k", .cost = 4},
                                   {.limit = &windowed, .key = "k", .cost = 4},
                                   {.limit = &aligned, .key = "k", .cost = 4}};
  HeldCheck spent(all);
  ask(io_, *fast, spent);
  ASSERT_TRUE(spent.admitted);

  std::vector<Charge> looks = all;
  for (Charge& charge : looks) charge.cost = 1;
  const auto look_at = [&](std::int64_t at) {
    const Script script = script_at(at);
    const auto store = make_store(&script);
    // Each apart, so that each is charged by its own verdict.
    std::vector<Decision> decisions;
    for (const Charge& charge : looks) {
      HeldCheck check({charge});
      ask(io_, *store, check);
      EXPECT_EQ(check.failure, Failure::none);
      decisions.push_back(check.decisions[0]);
    }
    return decisions;
  };
  const auto denied = look_at(kNewYear);
  for (const Decision& decision : denied) EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(denied[0].retry_after, Wait(2500ms));
  EXPECT_EQ(denied[0].reset_after, Wait(4s));
  EXPECT_EQ(denied[1].retry_after, Wait(20s));
  EXPECT_EQ(denied[2].retry_after, Wait(20s));
}

// The cut holds from the first call that makes it, though that one is denied or only looks: real time runs from there.
TEST_F(RedisStoreTest, ACutTimeIsKeptSoThatTheWaitEnds) {
  struct Case {
    CountedLimit limit;
    std::uint64_t burst;
    std::int64_t lead, wait;  // µs; wait: until one token is there again
  };
  const std::vector<Case> cases = {
      {bucket("shop/user;tb", 10, 10), 10, 30'000'000, 1'100'000},
      {window("shop/epoch;fw", 3, 2s), 3, 12'000'000, 4'000'000},
      {window("shop/first;fw", 3, 2s, Align::first_hit), 3, 12'000'000, 4'000'000},
  };
  for (const Case& one : cases) {
    for (const std::uint64_t first_cost : {0U, 1U}) {
      server_->command({"FLUSHALL"});
      const auto ask_at = [&](std::int64_t at, std::uint64_t cost) {
        const Script script = script_at(at);
        const auto store = make_store(&script);
        HeldCheck check({{.limit = &one.limit, .key = "k", .cost = cost}});
        ask(io_, *store, check);
        EXPECT_EQ(check.failure, Failure::none);
        return check.decisions[0];
      };
      ASSERT_TRUE(ask_at(kNewYear + one.lead, one.burst).allowed);
      const Decision first = ask_at(kNewYear, first_cost);
      EXPECT_EQ(first.remaining, 0U) << one.limit.identity;
      EXPECT_GT(server_->integer({"PTTL", "sluice:{k}" + one.limit.identity}), 0);
      // Each call has the same end in sight, whenever it comes.
      for (const std::int64_t passed : {std::int64_t{100'000}, one.wait / 2, one.wait - 1}) {
        const Decision denied = ask_at(kNewYear + passed, 1);
        EXPECT_FALSE(denied.allowed) << one.limit.identity << ' ' << passed;
        EXPECT_EQ(denied.retry_after, Wait(std::chrono::microseconds(one.wait - passed))) << one.limit.identity;
      }
      EXPECT_TRUE(ask_at(kNewYear + one.wait, 1).allowed) << one.limit.identity;
    }
  }
}

// A lead within what is believed is not written by those who only look.
TEST_F(RedisStoreTest, ABelievedTimeAheadIsLeftAlone) {
  const CountedLimit limit = bucket("shop/user;tb", 10, 10);
  const Script ahead = script_at(kNewYear + 500'000);
  const auto fast = make_store(&ahead);
  HeldCheck spent({{.limit = &limit, .key = "k", .cost = 10}});
  ask(io_, *fast, spent);
  const std::string before(text_of(*server_->command({"GET", "sluice:{k}shop/user;tb"})));
  const Script now = script_at(kNewYear);
  const auto store = make_store(&now);
  HeldCheck denied({{.limit = &limit, .key = "k"}});
  ask(io_, *store, denied);
  EXPECT_FALSE(denied.admitted);
  EXPECT_EQ(denied.decisions[0].retry_after, Wait(600ms));
  EXPECT_EQ(denied.decisions[0].reset_after, Wait(1500ms));
  EXPECT_EQ(text_of(*server_->command({"GET", "sluice:{k}shop/user;tb"})), before);
}

// What an open breaker never sent is no check of the store.
TEST_F(RedisStoreTest, ChecksThatAreNotAskedAreNotCounted) {
  auto made = RedisStore::create(io_, {.url = "redis://127.0.0.1:1", .timeout = 5s, .failures = 1}, metrics_);
  ASSERT_TRUE(made);
  const CountedLimit limit = bucket("shop/user;tb", 1, 1);
  std::vector<Failure> failures;
  while (failures.empty() || failures.back() != Failure::circuit_open || failures.size() < 10) {
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, **made, check);
    failures.push_back(check.failure);
    ASSERT_LT(failures.size(), 1'000U);
  }
  // The first ones waited for the connection, or found none.
  EXPECT_LT(metrics_.value(metrics::Counter::store_checks), 10U);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_checks), metrics_.value(metrics::Counter::store_failures));
}

// -- scripts
// ------------------------------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, public_report_58) {
  const auto store = make_store();
  const CountedLimit limit = window("shop/user;fw", 3, 3600s, Align::first_hit);
  for (int i = 0; i < 4; ++i) {
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_EQ(check.admitted, i < 3);
    if (i == 0) server_->command({"SCRIPT", "FLUSH"});
  }
}

TEST_F(RedisStoreTest, ScriptFlushUnderLoadLosesAndDoublesNothing) {
  const auto store = make_store();
  const CountedLimit limit = window("shop/user;fw", 2'000, 3600s, Align::first_hit);
  std::deque<HeldCheck> checks;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 100; ++i) {
      checks.emplace_back(std::vector<Charge>{{.limit = &limit, .key = "k"}});
      start(*store, checks.back());
    }
    server_->command({"SCRIPT", "FLUSH"});
    ASSERT_TRUE(run_until(io_, [&] { return checks.back().done; }));
  }
  ASSERT_TRUE(
      run_until(io_, [&] { return std::all_of(checks.begin(), checks.end(), [](auto& c) { return c.done; }); }));
  for (const HeldCheck& check : checks) ASSERT_EQ(check.failure, Failure::none);
  EXPECT_EQ(std::count_if(checks.begin(), checks.end(), [](const auto& check) { return check.admitted; }), 2'000);
}

// Expiry is of the window, not of the last hit.
TEST_F(RedisStoreTest, public_report_57) {
  const CountedLimit limit = window("shop/user;fw", 60, 60s);
  int admitted = 0;
  for (int i = 0; i < 180; ++i) {
    const Script script = script_at(kNewYear + 20'000'000LL * i);
    const auto store = make_store(&script);
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, *store, check);
    admitted += check.admitted ? 1 : 0;
  }
  EXPECT_EQ(admitted, 180);
}

TEST_F(RedisStoreTest, public_report_55) {
  const CountedLimit limit = bucket("shop/user;tb", 1, 1, 10s);
  std::vector<bool> admitted;
  for (int second = 0; second <= 10; second += 2) {
    const Script script = script_at(kNewYear + second * 1'000'000LL);
    const auto store = make_store(&script);
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, *store, check);
    admitted.push_back(check.admitted);
  }
  EXPECT_THAT(admitted, ::testing::ElementsAre(true, false, false, false, false, true));
}

TEST_F(RedisStoreTest, public_report_56) {
  const auto store = make_store();
  const CountedLimit limit = bucket("shop/user;tb", 0, 5);
  for (int i = 0; i < 6; ++i) {
    HeldCheck check({{.limit = &limit, .key = "k"}});
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_EQ(check.admitted, i < 5);
    EXPECT_EQ(check.decisions[0].retry_after.is_never(), i == 5);
  }
}

// A second that begins anew is whole again, at the edge too.
TEST_F(RedisStoreTest, public_report_54) {
  const CountedLimit limit = window("shop/user;fw", 3'000, 1s);
  for (int second = 0; second < 60; ++second) {
    for (const std::int64_t into : {0, 999'999}) {
      const Script script = script_at(kNewYear + second * 1'000'000LL + into);
      const auto store = make_store(&script);
      HeldCheck check({{.limit = &limit, .key = "k", .cost = 250}});
      ask(io_, *store, check);
      ASSERT_TRUE(check.admitted);
      EXPECT_EQ(check.decisions[0].remaining, into == 0 ? 2'750U : 2'500U);
    }
  }
}

// -- nodes with old and new numbers
// --------------------------------------------------------------------------------------

TEST_F(RedisStoreTest, NodesWithOldAndNewNumbersAlternate) {
  const CountedLimit old_limit = bucket("shop/user;tb", 7, 20, 60s);
  const CountedLimit new_limit = bucket("shop/user;tb", 11, 30, 60s);
  std::int64_t now = kNewYear;
  std::uint64_t admitted = 0;
  constexpr int rounds = 300;
  constexpr std::int64_t step = 100'003;
  for (int i = 0; i < rounds; ++i) {
    const Script script = script_at(now);
    const auto store = make_store(&script);
    HeldCheck check({{.limit = i % 2 == 0 ? &old_limit : &new_limit, .key = "k"}});
    ask(io_, *store, check);
    ASSERT_EQ(check.failure, Failure::none);
    admitted += check.admitted ? 1 : 0;
    now += step;
  }
  const std::uint64_t elapsed = static_cast<std::uint64_t>(rounds) * step;
  EXPECT_LE(admitted, 30 + 11 * elapsed / 60'000'000);
  EXPECT_GE(admitted, 20 + 7 * elapsed / 60'000'000 - 1);
}

}  // namespace
}  // namespace sluice::store::redis
