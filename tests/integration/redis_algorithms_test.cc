// What the algorithms leave in Redis, and their verbs, through the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/redis/redis_store.h"
#include "store/redis/script.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::HeldCheck;
using testing::RedisServer;

// 2026-01-01 00:00 UTC.
constexpr std::int64_t kNewYear = 1'767'225'600'000'000;

// The script at one instant; keys then expire by the server's own clock, so they are kept for longer than any test.
Script script_at(std::int64_t microseconds) {
  return make_check_script("local now, shortest_expiry, trusted_lead = " + std::to_string(microseconds) +
                           ", 3600000, 0\n");
}

CountedLimit named(std::string identity, const Limit& numbers) {
  return {.numbers = numbers, .identity = std::move(identity)};
}

class RedisAlgorithmsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    server_ = std::make_unique<RedisServer>();
  }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { server_->command({"FLUSHALL"}); }

  std::unique_ptr<RedisStore> make_store(const Script* script = nullptr, ScriptStyle style = ScriptStyle::fast) {
    auto store = RedisStore::create(
        io_, {.url = server_->url(), .timeout = 5s, .script_style = style, .script = script}, metrics_);
    EXPECT_TRUE(store);
    return *std::move(store);
  }
  struct Answer {
    Failure failure;
    bool admitted;
    Decision decision;
    std::uint64_t lease;
  };
  Answer ask(RedisStore& store, const CountedLimit& limit, std::uint64_t cost = 1) {
    HeldCheck check({{.limit = &limit, .key = "k", .cost = cost}});
    std::array<std::uint64_t, 1> leases{};
    check.leases = leases;
    testing::ask(io_, store, check);
    return {check.failure, check.admitted, check.decisions[0], leases[0]};
  }
  Answer ask_at(std::int64_t at, const CountedLimit& limit, std::uint64_t cost = 1) {
    const Script script = script_at(at);
    return ask(*make_store(&script), limit, cost);
  }
  Answer apply(RedisStore& store, const CountedLimit& limit, const Verb& verb) {
    HeldCheck check({{.limit = &limit, .key = "k"}});
    check.verb = &verb;
    if (store.apply(check, testing::real_time()) == Progress::pending) {
      EXPECT_TRUE(testing::run_until(io_, [&] { return check.done; }));
    }
    return {check.failure, check.admitted, check.decisions[0], 0};
  }
  static std::string key_of(const CountedLimit& limit) { return "sluice:{k}" + limit.identity; }
  long long ttl(const CountedLimit& limit) { return server_->integer({"PTTL", key_of(limit)}); }

  static inline std::unique_ptr<RedisServer> server_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
};

const Limit kLeaky{.algorithm = Algorithm::leaky_bucket, .rate = 10, .queue = 2};
const Limit kSliding{.algorithm = Algorithm::sliding_window, .rate = 10, .period = 2s};
const Limit kSlotted{.algorithm = Algorithm::sliding_window, .rate = 10, .period = 2s, .slots = 10};
const Limit kLog{.algorithm = Algorithm::sliding_log, .rate = 10, .period = 2s};
const Limit kLeases{.algorithm = Algorithm::concurrency, .rate = 10, .ttl = 2s};

// 10/s, queue 2, four requests at once: delays 0, 100, 200 ms, then denied for 100 ms.
TEST_F(RedisAlgorithmsTest, LeakyBucketTellsDelays) {
  const CountedLimit limit = named("shop/l;lb", kLeaky);
  for (const auto delay : {0ms, 100ms, 200ms}) {
    const Answer answer = ask_at(kNewYear, limit);
    EXPECT_TRUE(answer.admitted);
    EXPECT_EQ(answer.decision.delay, Wait(delay));
  }
  const Answer denied = ask_at(kNewYear, limit);
  EXPECT_FALSE(denied.admitted);
  EXPECT_EQ(denied.decision.retry_after, Wait(100ms));
  EXPECT_FALSE(ask_at(kNewYear + 99'999, limit).admitted);
  EXPECT_TRUE(ask_at(kNewYear + 100'000, limit).admitted);
}

TEST_F(RedisAlgorithmsTest, AQuotaOfOneAndOfNone) {
  const auto store = make_store();
  for (const Limit& numbers : {kSliding, kSlotted, kLog, kLeases}) {
    Limit one = numbers;
    one.rate = 1;
    one.period = 1h;
    one.ttl = 1h;
    const std::string name = std::to_string(static_cast<int>(numbers.algorithm)) + std::to_string(numbers.slots);
    const CountedLimit single = named("shop/one" + name, one);
    EXPECT_TRUE(ask(*store, single).admitted);
    EXPECT_FALSE(ask(*store, single).admitted);
    one.rate = 0;
    const CountedLimit none = named("shop/none" + name, one);
    const Answer denied = ask(*store, none);
    EXPECT_EQ(denied.failure, Failure::none);
    EXPECT_FALSE(denied.admitted);
    EXPECT_TRUE(denied.decision.retry_after.is_never());
    EXPECT_EQ(server_->integer({"EXISTS", key_of(none)}), 0);
  }
}

// -- expiry -------------------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, EveryKeyExpiresWhenItEqualsAFreshOne) {
  const auto store = make_store();
  struct Case {
    Limit numbers;
    std::uint64_t cost;
    long long least, most;  // ms
  };
  const std::vector<Case> cases = {
      {{.algorithm = Algorithm::leaky_bucket, .rate = 1, .period = 10s, .queue = 5}, 3, 29'000, 30'900},
      {{.algorithm = Algorithm::sliding_window, .rate = 9, .period = 60s}, 1, 60'000, 120'000},
      {{.algorithm = Algorithm::sliding_window, .rate = 9, .period = 60s, .slots = 60}, 1, 60'000, 61'000},
      {{.algorithm = Algorithm::sliding_log, .rate = 9, .period = 60s}, 2, 59'000, 60'000},
      {{.algorithm = Algorithm::concurrency, .rate = 9, .ttl = 60s}, 1, 59'000, 60'000},
  };
  for (const Case& one : cases) {
    const CountedLimit limit =
        named("shop/" + std::to_string(static_cast<int>(one.numbers.algorithm)) + std::to_string(one.numbers.slots),
              one.numbers);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(ask(*store, limit, one.cost).admitted);
    const long long before = ttl(limit);
    // At least so much of it may be gone on a busy machine.
    const auto passed = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_GE(before + passed, one.least) << limit.identity;
    EXPECT_LE(before, one.most) << limit.identity;
    // Neither looking nor being denied moves it.
    EXPECT_TRUE(ask(*store, limit, 0).admitted);
    EXPECT_FALSE(ask(*store, limit, 9).admitted);
    EXPECT_LE(ttl(limit), before);
  }
}

TEST_F(RedisAlgorithmsTest, AKeyIsGoneOnceItIsFresh) {
  const auto store = make_store();
  Limit log = kLog;
  Limit leases = kLeases;
  Limit slotted = kSlotted;
  log.period = slotted.period = leases.ttl = 200ms;
  for (const Limit& numbers : {kLeaky, slotted, log, leases}) {
    EXPECT_TRUE(ask(*store, named("shop/" + std::to_string(static_cast<int>(numbers.algorithm)), numbers)).admitted);
  }
  EXPECT_TRUE(testing::run_until(io_, [&] { return server_->integer({"DBSIZE"}) == 0; }));
}

TEST_F(RedisAlgorithmsTest, ASetNeverStandsWithoutAnExpiry) {
  const auto store = make_store();
  const CountedLimit log = named("shop/g;sl", kLog);
  const CountedLimit leases = named("shop/c;cc", kLeases);
  for (int i = 0; i < 12; ++i) {
    const Answer taken = ask(*store, leases);
    ask(*store, log, 1);
    if (taken.lease != 0 && i % 3 == 0) {
      EXPECT_TRUE(apply(*store, leases, Verb::release(taken.lease, 1)).admitted);
    }
    if (i % 4 == 0) apply(*store, log, Verb::refund(2));
    for (const CountedLimit* limit : {&log, &leases}) EXPECT_NE(ttl(*limit), -1) << limit->identity << i;
  }
}

// -- what the log keeps ---------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, TheLogKeepsOneMemberAnInstant) {
  const CountedLimit limit = named("shop/g;sl", kLog);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask_at(kNewYear, limit).admitted);
  EXPECT_EQ(server_->integer({"ZCARD", key_of(limit)}), 2);
  EXPECT_EQ(ask_at(kNewYear, limit, 0).decision.remaining, 5U);
  EXPECT_TRUE(ask_at(kNewYear + 1, limit).admitted);
  EXPECT_EQ(server_->integer({"ZCARD", key_of(limit)}), 3);
}

// Hits that were all made within a period count, however long ago the log began.
TEST_F(RedisAlgorithmsTest, TheLogIsExact) {
  const CountedLimit limit = named("shop/g;sl", kLog);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask_at(kNewYear + i * 100'000, limit).admitted);
  const Answer denied = ask_at(kNewYear + 1'900'000, limit, 3);
  EXPECT_FALSE(denied.admitted);
  // Three of them leave with the third.
  EXPECT_EQ(denied.decision.retry_after, Wait(300ms));
  EXPECT_FALSE(ask_at(kNewYear + 2'199'999, limit, 3).admitted);
  EXPECT_TRUE(ask_at(kNewYear + 2'200'000, limit, 3).admitted);
}

TEST_F(RedisAlgorithmsTest, ACallTrimsAtMost256Members) {
  Limit numbers = kLog;
  numbers.rate = 1'000;
  const CountedLimit limit = named("shop/g;sl", numbers);
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(ask_at(kNewYear + i, limit).admitted);
  ASSERT_EQ(server_->integer({"ZCARD", key_of(limit)}), 1'001);
  // All but the member that holds the numbers have left.
  const std::int64_t later = kNewYear + 10'000'000;
  EXPECT_EQ(ask_at(later, limit, 0).decision.remaining, 1'000U);
  EXPECT_EQ(server_->integer({"ZCARD", key_of(limit)}), 1'001);
  for (const long long members : {746, 491, 236, 5}) {
    EXPECT_TRUE(ask_at(later + 1'000 - members, limit).admitted);
    EXPECT_EQ(server_->integer({"ZCARD", key_of(limit)}), members);
  }
  EXPECT_EQ(ask_at(later + 1'000, limit, 0).decision.remaining, 996U);
}

// Totals run round at 2^52.
TEST_F(RedisAlgorithmsTest, TheLogCountsPastTheEndOfItsTotals) {
  Limit numbers = kLog;
  numbers.rate = kMaxRate;
  const CountedLimit limit = named("shop/g;sl", numbers);
  const Script start = script_at(kNewYear);
  const auto store = make_store(&start);
  EXPECT_TRUE(ask(*store, limit, 1).admitted);
  // Debts are the quickest way there.
  for (int i = 1; i < 12; ++i) {
    const Script script = script_at(kNewYear + i * 2'000'000LL);
    const auto later = make_store(&script);
    EXPECT_EQ(apply(*later, limit, Verb::settle(0, kMaxTokens)).decision.remaining, 0U);
    const Answer denied = ask(*later, limit);
    EXPECT_FALSE(denied.admitted);
    EXPECT_EQ(denied.decision.retry_after, Wait(2s));
  }
  EXPECT_TRUE(ask_at(kNewYear + 24'000'000, limit, kMaxRate).admitted);
}

// -- leases ---------------------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, LeasesAreReleasedOnce) {
  const auto store = make_store();
  Limit numbers = kLeases;
  numbers.rate = 3;
  numbers.ttl = 1h;
  const CountedLimit limit = named("shop/c;cc", numbers);
  const Answer first = ask(*store, limit);
  const Answer heavy = ask(*store, limit, 2);
  EXPECT_NE(first.lease, 0U);
  EXPECT_GT(heavy.lease, first.lease);
  const Answer denied = ask(*store, limit);
  EXPECT_FALSE(denied.admitted);
  EXPECT_EQ(denied.lease, 0U);
  // Neither another's cost nor an unknown id frees anything.
  EXPECT_FALSE(apply(*store, limit, Verb::release(heavy.lease, 1)).admitted);
  EXPECT_FALSE(apply(*store, limit, Verb::release(1, 1)).admitted);
  EXPECT_EQ(ask(*store, limit, 0).decision.remaining, 0U);
  const Answer released = apply(*store, limit, Verb::release(heavy.lease, 2));
  EXPECT_TRUE(released.admitted);
  EXPECT_EQ(released.decision.remaining, 2U);
  EXPECT_FALSE(apply(*store, limit, Verb::release(heavy.lease, 2)).admitted);
  EXPECT_TRUE(apply(*store, limit, Verb::release(first.lease, 1)).admitted);
  // The key goes; ids do not come again.
  EXPECT_TRUE(testing::run_until(io_, [&] { return server_->integer({"DBSIZE"}) == 0; }));
  EXPECT_GT(ask(*store, limit).lease, heavy.lease);
}

TEST_F(RedisAlgorithmsTest, ALeaseEndsByItself) {
  Limit numbers = kLeases;
  numbers.rate = 1;
  const CountedLimit limit = named("shop/c;cc", numbers);
  const Answer held = ask_at(kNewYear, limit);
  EXPECT_TRUE(held.admitted);
  EXPECT_EQ(ask_at(kNewYear + 500'000, limit).decision.retry_after, Wait(1500ms));
  EXPECT_FALSE(ask_at(kNewYear + 1'999'999, limit).admitted);
  EXPECT_TRUE(ask_at(kNewYear + 2'000'000, limit).admitted);
  const Script later = script_at(kNewYear + 2'000'000);
  EXPECT_FALSE(apply(*make_store(&later), limit, Verb::release(held.lease, 1)).admitted);
}

// -- verbs ----------------------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, Verbs) {
  const Limit bucket{.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1h, .burst = 10};
  const Limit window{.algorithm = Algorithm::fixed_window, .rate = 10, .period = 2s};
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  for (const Limit& numbers : {bucket, window, kSliding, kSlotted, kLog}) {
    SCOPED_TRACE(static_cast<int>(numbers.algorithm));
    const CountedLimit limit =
        named("shop/" + std::to_string(static_cast<int>(numbers.algorithm)) + std::to_string(numbers.slots), numbers);
    const auto remaining = [&](const Verb& verb) {
      const Answer answer = apply(*store, limit, verb);
      EXPECT_EQ(answer.failure, Failure::none);
      EXPECT_TRUE(answer.admitted);
      EXPECT_EQ(answer.decision.source, Source::redis);
      EXPECT_EQ(answer.decision, ask(*store, limit, 0).decision);
      return answer.decision.remaining;
    };
    EXPECT_EQ(remaining(Verb::refund(3)), 10U);
    EXPECT_EQ(server_->integer({"EXISTS", key_of(limit)}), 0);
    EXPECT_TRUE(ask(*store, limit, 6).admitted);
    EXPECT_EQ(remaining(Verb::refund(2)), 6U);
    EXPECT_EQ(remaining(Verb::settle(5, 3)), 8U);
    EXPECT_EQ(remaining(Verb::settle(3, 5)), 6U);
    EXPECT_EQ(remaining(Verb::settle(4, 4)), 6U);
    EXPECT_EQ(remaining(Verb::penalize(1'000)), 0U);  // and 10 more
    EXPECT_FALSE(ask(*store, limit).admitted);
    EXPECT_EQ(remaining(Verb::refund(13)), 3U);
    EXPECT_EQ(remaining(Verb::settle(0, 10)), 0U);
    EXPECT_EQ(remaining(Verb::refund(8, kNewYear * 1'000)), 1U);
    if (numbers.algorithm != Algorithm::token_bucket) {
      EXPECT_EQ(remaining(Verb::refund(8, (kNewYear - 10'000'000) * 1'000)), 1U);  // of what no longer counts
    }
    EXPECT_EQ(remaining(Verb::refund(kMaxTokens)), 10U);
    EXPECT_TRUE(ask(*store, limit, 10).admitted);
    EXPECT_EQ(remaining(Verb::reset()), 10U);
    EXPECT_EQ(server_->integer({"EXISTS", key_of(limit)}), 0);
  }
}

// What is given back of a window that has ended changes nothing of the next, which lets in what it may and expires.
TEST_F(RedisAlgorithmsTest, public_report_63) {
  const CountedLimit limit = named("shop/late", {.algorithm = Algorithm::fixed_window, .rate = 3, .period = 2s});
  ASSERT_TRUE(ask_at(kNewYear, limit, 3).admitted);
  const Script script = script_at(kNewYear + 2'000'000);
  const auto next = make_store(&script);
  EXPECT_EQ(apply(*next, limit, Verb::refund(1, kNewYear * 1'000)).decision.remaining, 3U);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ask(*next, limit).admitted) << i;
  EXPECT_EQ(apply(*next, limit, Verb::refund(1, kNewYear * 1'000)).decision.remaining, 0U);
  EXPECT_FALSE(ask(*next, limit).admitted);
  EXPECT_GT(server_->integer({"PTTL", key_of(limit)}), 0);
}

TEST_F(RedisAlgorithmsTest, ASlotOfALeakyBucketIsNotGivenBack) {
  const Script script = script_at(kNewYear);
  const auto store = make_store(&script);
  const CountedLimit limit = named("shop/l;lb", kLeaky);
  EXPECT_TRUE(ask(*store, limit, 2).admitted);
  EXPECT_EQ(apply(*store, limit, Verb::refund(2)).decision.remaining, 1U);
  EXPECT_EQ(apply(*store, limit, Verb::settle(0, 5)).decision.delay, Wait(700ms));
  EXPECT_EQ(apply(*store, limit, Verb::reset()).decision.delay, Wait());
}

TEST_F(RedisAlgorithmsTest, VerbsThatAnAlgorithmDoesNotHaveAreRefused) {
  const auto store = make_store();
  const CountedLimit leases = named("shop/c;cc", kLeases);
  const CountedLimit log = named("shop/g;sl", kLog);
  for (const Verb& verb : {Verb::refund(1), Verb::settle(1, 2), Verb::penalize(1)}) {
    EXPECT_EQ(apply(*store, leases, verb).failure, Failure::unsupported);
  }
  EXPECT_EQ(apply(*store, log, Verb::release(1, 1)).failure, Failure::unsupported);
  EXPECT_EQ(server_->integer({"DBSIZE"}), 0);
}

// Of a key that holds something else only reset makes a fresh one.
TEST_F(RedisAlgorithmsTest, VerbsOnAForeignValue) {
  const auto store = make_store();
  for (const Limit& numbers : {kLeaky, kSliding, kLog}) {
    const CountedLimit limit = named("shop/" + std::to_string(static_cast<int>(numbers.algorithm)), numbers);
    server_->command({"SET", key_of(limit), "hello"});
    EXPECT_NE(apply(*store, limit, Verb::penalize(1)).failure, Failure::none);
    EXPECT_EQ(text_of(*server_->command({"GET", key_of(limit)})), "hello");
    EXPECT_EQ(apply(*store, limit, Verb::reset()).failure, Failure::none);
    EXPECT_EQ(server_->integer({"EXISTS", key_of(limit)}), 0);
  }
  EXPECT_TRUE(store->ready());
}

// -- other numbers --------------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, WhatHasLeftALogDoesNotComeBack) {
  Limit shorter = kLog;
  shorter.period = 1s;
  const CountedLimit limit = named("shop/g;sl", kLog);
  const CountedLimit other = named("shop/g;sl", shorter);
  EXPECT_TRUE(ask_at(kNewYear, limit, 4).admitted);
  EXPECT_TRUE(ask_at(kNewYear + 700'000, limit, 3).admitted);
  EXPECT_EQ(ask_at(kNewYear + 1'000'000, limit, 0).decision.remaining, 3U);
  EXPECT_EQ(ask_at(kNewYear + 1'000'000, other, 0).decision.remaining, 7U);
  EXPECT_EQ(ask_at(kNewYear + 1'000'000, limit, 0).decision.remaining, 7U);
  EXPECT_EQ(ask_at(kNewYear + 2'699'999, limit, 0).decision.remaining, 7U);
  EXPECT_EQ(ask_at(kNewYear + 2'700'000, limit, 0).decision.remaining, 10U);
}

// Nodes with old and new numbers alternate: the greater bound holds.
TEST_F(RedisAlgorithmsTest, NodesWithOldAndNewNumbersAlternate) {
  constexpr int rounds = 600;
  constexpr std::int64_t step = 10'007;
  for (const Limit& numbers : {kLeaky, kSliding, kSlotted, kLog}) {
    Limit more = numbers;
    more.rate = 15;
    more.queue = 4;
    const std::string name =
        "shop/" + std::to_string(static_cast<int>(numbers.algorithm)) + std::to_string(numbers.slots);
    const CountedLimit before = named(name, numbers);
    const CountedLimit after = named(name, more);
    std::deque<std::int64_t> passed;
    for (int i = 0; i < rounds; ++i) {
      const std::int64_t now = kNewYear + i * step;
      const Answer answer = ask_at(now, i % 2 == 0 ? before : after);
      ASSERT_EQ(answer.failure, Failure::none);
      if (answer.admitted) passed.push_back(now);
    }
    const bool is_leaky = numbers.algorithm == Algorithm::leaky_bucket;
    const double periods = static_cast<double>(rounds * step) / (is_leaky ? 1e6 : 2e6);
    EXPECT_LE(static_cast<double>(passed.size()), (is_leaky ? 5 : 15) + 15 * periods) << name;
    EXPECT_GE(static_cast<double>(passed.size()), 10 * (periods - 1)) << name;
    if (numbers.algorithm == Algorithm::sliding_log) {
      for (std::size_t i = 15; i < passed.size(); ++i) EXPECT_GE(passed[i] - passed[i - 15], 2'000'000);
    }
  }
}

// -- a clock that is off --------------------------------------------------------------------------------------------

// A stored time far ahead is cut to one period (of a leaky bucket: the time to drain) from the first call on, even if
// that is denied or only looks; real time runs from there.
TEST_F(RedisAlgorithmsTest, AStoredTimeFarAheadIsCut) {
  struct Case {
    Limit numbers;
    std::uint64_t burst;
    std::int64_t wait;  // µs: until one token is there again
  };
  const std::vector<Case> cases = {
      {kLeaky, 3, 299'999 + 99'999},     {kSliding, 10, 2'000'000 + 2'000'000}, {kSlotted, 10, 2'000'000 + 2'000'000},
      {kLog, 10, 2'000'000 + 2'000'000}, {kLeases, 10, 2'000'000 + 2'000'000},
  };
  for (const Case& one : cases) {
    const CountedLimit limit =
        named("shop/" + std::to_string(static_cast<int>(one.numbers.algorithm)) + std::to_string(one.numbers.slots),
              one.numbers);
    for (const std::uint64_t first_cost : {0U, 1U}) {
      SCOPED_TRACE(limit.identity + " " + std::to_string(first_cost));
      server_->command({"FLUSHALL"});
      // Several instants, so that there is more than one entry.
      EXPECT_TRUE(ask_at(kNewYear + 3'599'999'999, limit, 1).admitted);
      EXPECT_TRUE(ask_at(kNewYear + 3'600'000'000, limit, one.burst - 1).admitted);
      EXPECT_EQ(ask_at(kNewYear, limit, first_cost).decision.remaining, 0U);
      EXPECT_GT(ttl(limit), 0);
      for (const std::int64_t passed : {std::int64_t{100'000}, one.wait / 2, one.wait - 2}) {
        const Answer denied = ask_at(kNewYear + passed, limit);
        EXPECT_EQ(denied.failure, Failure::none);
        EXPECT_FALSE(denied.admitted);
        // The first entry was a tick before the last.
        EXPECT_GE(denied.decision.retry_after, Wait(std::chrono::microseconds(one.wait - passed - 1)));
        EXPECT_LE(denied.decision.retry_after, Wait(std::chrono::microseconds(one.wait - passed)));
      }
      EXPECT_TRUE(ask_at(kNewYear + one.wait, limit).admitted);
    }
  }
}

// -- reported of others ---------------------------------------------------------------------------------------------

TEST_F(RedisAlgorithmsTest, public_report_12) {
  const CountedLimit limit = named("shop/g;sl", {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1min});
  EXPECT_TRUE(ask_at(kNewYear, limit, 11).decision.retry_after.is_never());
  EXPECT_EQ(server_->integer({"DBSIZE"}), 0);
  EXPECT_TRUE(ask_at(kNewYear, limit, 10).admitted);
}

TEST_F(RedisAlgorithmsTest, public_report_13) {
  const CountedLimit limit = named("shop/g;sl", {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1min});
  EXPECT_TRUE(ask_at(kNewYear, limit, 8).admitted);
  EXPECT_FALSE(ask_at(kNewYear, limit, 3).admitted);
  EXPECT_TRUE(ask_at(kNewYear, limit, 2).admitted);
}

TEST_F(RedisAlgorithmsTest, public_report_19) {
  const CountedLimit limit =
      named("shop/l;lb", {.algorithm = Algorithm::leaky_bucket, .rate = 10, .period = 1min, .queue = 9});
  EXPECT_TRUE(ask_at(kNewYear, limit, 10).admitted);
  EXPECT_EQ(ask_at(kNewYear + 30'000'000, limit, 0).decision.remaining, 5U);
}

TEST_F(RedisAlgorithmsTest, public_report_25) {
  const CountedLimit limit = named("shop/s;sw", {.algorithm = Algorithm::sliding_window, .rate = 1, .period = 10s});
  EXPECT_TRUE(ask_at(kNewYear, limit).admitted);
  EXPECT_FALSE(ask_at(kNewYear, limit).admitted);
}

TEST_F(RedisAlgorithmsTest, public_report_26) {
  const CountedLimit limit = named("shop/s;sw", {.algorithm = Algorithm::sliding_window, .rate = 100, .period = 10s});
  EXPECT_TRUE(ask_at(kNewYear, limit, 50).admitted);
  EXPECT_TRUE(ask_at(kNewYear + 11'000'000, limit, 10).admitted);
  EXPECT_EQ(ask_at(kNewYear + 11'000'000, limit, 0).decision.remaining, 45U);
}

TEST_F(RedisAlgorithmsTest, public_report_30) {
  const CountedLimit limit = named("shop/g;sl", {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1min});
  int admitted = 0;
  for (int i = 0; i < 20; ++i) admitted += ask_at(kNewYear + 40 * i, limit).admitted ? 1 : 0;  // all in one ms
  EXPECT_EQ(admitted, 10);
  EXPECT_EQ(server_->integer({"ZCARD", key_of(limit)}), 11);
}

TEST_F(RedisAlgorithmsTest, public_report_33) {
  const CountedLimit limit = named("shop/g;sl", {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1min});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask_at(kNewYear + 2'000'000 * i, limit).admitted);
  EXPECT_EQ(ask_at(kNewYear + 20'000'000, limit).decision.retry_after, Wait(40s));
}

TEST_F(RedisAlgorithmsTest, public_report_34) {
  const CountedLimit limit = named("shop/g;sl", {.algorithm = Algorithm::sliding_log, .rate = 2, .period = 1min});
  for (const std::int64_t at : {0, 10'000'000}) EXPECT_TRUE(ask_at(kNewYear + at, limit).admitted);
  EXPECT_EQ(ask_at(kNewYear + 20'000'000, limit).decision.retry_after, Wait(40s));
}

// -- literal --------------------------------------------------------------------------------------------------------

// A call has so many keys at most; a request with more takes several, and is all or nothing all the same.
TEST_F(RedisAlgorithmsTest, ARequestOfMoreKeysThanTheLiteralStyleHas) {
  const auto store = make_store(nullptr, ScriptStyle::literal);
  std::deque<CountedLimit> limits;
  std::vector<Charge> charges;
  constexpr std::size_t count = 2 * kMostLiteralKeys + 1;
  Limit numbers = kLog;
  numbers.period = 1h;
  for (std::size_t i = 0; i < count; ++i) {
    limits.push_back(named("shop/" + std::to_string(i), numbers));
    charges.push_back({.limit = &limits.back(), .key = "k"});
  }
  for (std::uint64_t left = numbers.rate; left > 0; --left) {
    HeldCheck check(charges);
    testing::ask(io_, *store, check);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_TRUE(check.admitted);
    for (const Decision& decision : check.decisions) EXPECT_EQ(decision.remaining, left - 1);
    if (left == 2) charges.pop_back();  // the last one has a token more than the others
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), static_cast<long long>(count));
  charges.push_back({.limit = &limits.back(), .key = "k"});
  HeldCheck refused(charges);
  testing::ask(io_, *store, refused);
  EXPECT_FALSE(refused.admitted);
  EXPECT_FALSE(refused.decisions.front().allowed);
  EXPECT_TRUE(refused.decisions.back().allowed);
  HeldCheck last({charges.back()});
  testing::ask(io_, *store, last);
  EXPECT_TRUE(last.admitted);
}

}  // namespace
}  // namespace sluice::store::redis
