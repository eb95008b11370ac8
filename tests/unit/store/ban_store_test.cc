#include "store/ban_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "compat/counting_store.h"
#include "store/memory/memory_store.h"
#include "tests/unit/store/plain_check.h"
#include "tests/unit/store/remote_store.h"
#include "tests/unit/store/store_test_util.h"

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

/// One io thread of a daemon that shares a store with others.
struct Daemon {
  explicit Daemon(MemoryStore& shared) : remote(std::make_shared<RemoteStore>(shared)), store(remote, watch) {}

  std::shared_ptr<RemoteStore> remote;
  BanWatch watch{true};
  BanStore store;
};

class BanStoreTest : public ::testing::Test {
 protected:
  struct Answer {
    bool admitted;
    Mark mark;
    Failure failure;
  };
  Answer ask(Store& store, std::string_view key = "k") {
    PlainCheck check({{.limit = &limit_, .key = key}});
    EXPECT_EQ(store.check(check, now_), Progress::answered);
    return {.admitted = check.admitted, .mark = check.decisions[0].mark, .failure = check.failure};
  }
  bool is_banned(Store& store, std::string_view key = "k") {
    const Answer answer = ask(store, key);
    return !answer.admitted && answer.mark == Mark::banned;
  }
  static void apply(Store& store, const CountedLimit& limit, std::string_view key, Verb verb, Time now) {
    PlainCheck check({{.limit = &limit, .key = key}});
    check.verb = &verb;
    EXPECT_EQ(store.apply(check, now), Progress::answered);
  }
  // As /v1/ban does.
  void ban(Store& store, std::chrono::microseconds time, const CountedLimit& limit) {
    apply(store, ban_limit_of(limit), "k", Verb::reset(), now_);
    apply(store, any_ban_limit_of(limit), kAnyBan, ban_for(time), now_);
    apply(store, ban_limit_of(limit), "k", ban_for(time), now_);
  }
  void ban(Store& store, std::chrono::microseconds time) { ban(store, time, limit_); }
  void advance(std::chrono::nanoseconds by) {
    now_.steady += by.count();
    now_.utc += by.count();
  }

  MemoryStore shared_{1'000};
  Daemon one_{shared_};
  Daemon two_{shared_};
  CountedLimit limit_ = testing::counted("shop/banned", testing::token_bucket(1'000, 1s, 1'000));
  Time now_{.steady = 5'000'000'000, .utc = testing::kStart};
};

TEST_F(BanStoreTest, OneThatHasJustStartedKnowsBeforeItsFirstCheck) {
  ban(one_.store, 1h);
  EXPECT_TRUE(is_banned(two_.store));
  EXPECT_FALSE(is_banned(two_.store, "other"));
}

TEST_F(BanStoreTest, TheFirstChecksWaitForTheAnswerTogether) {
  ban(one_.store, 1h);
  two_.remote->later = true;
  PlainCheck banned({{.limit = &limit_, .key = "k"}});
  PlainCheck other({{.limit = &limit_, .key = "other"}});
  PlainCheck withdrawn({{.limit = &limit_, .key = "k"}});
  for (PlainCheck* check : {&banned, &withdrawn, &other}) {
    EXPECT_EQ(two_.store.check(*check, now_), Progress::pending);
  }
  EXPECT_EQ(two_.remote->applied, 1);
  EXPECT_EQ(two_.remote->asked, 0);
  two_.store.cancel(withdrawn);
  two_.remote->answer_pending();
  EXPECT_EQ(two_.remote->asked, 2);
  two_.remote->answer_pending();
  EXPECT_EQ(banned.completed, 1);
  EXPECT_EQ(banned.decisions[0].mark, Mark::banned);
  EXPECT_EQ(other.completed, 1);
  EXPECT_TRUE(other.admitted);
  EXPECT_EQ(withdrawn.completed, 0);
}

TEST_F(BanStoreTest, ABanOfAnotherHoldsAfterASecondAtTheLatest) {
  EXPECT_TRUE(ask(two_.store).admitted);
  EXPECT_EQ(two_.remote->applied, 1);
  ban(one_.store, 1h);
  advance(BanWatch::kKnownFor - 1ns);
  EXPECT_TRUE(ask(two_.store).admitted);
  EXPECT_EQ(two_.remote->applied, 1);
  advance(1ns);
  EXPECT_TRUE(is_banned(two_.store));
}

TEST_F(BanStoreTest, WhoIsTendedNeverWaits) {
  for (int turn = 0; turn < 5; ++turn) {
    two_.store.tend(now_);
    advance(BanWatch::kAskEvery);
    two_.remote->later = true;
    PlainCheck check({{.limit = &limit_, .key = "k"}});
    EXPECT_EQ(two_.store.check(check, now_), Progress::pending);
    EXPECT_EQ(std::exchange(two_.remote->asked, 0), 1);
    two_.remote->answer_pending();
    EXPECT_EQ(check.completed, 1);
    two_.remote->later = false;
  }
}

TEST_F(BanStoreTest, ABanSetHereIsNotForgottenForAnOlderAnswer) {
  one_.remote->later = true;
  one_.store.tend(now_);  // the store has answered: none
  one_.remote->later = false;
  ban(one_.store, 1h);
  one_.remote->answer_pending();
  EXPECT_TRUE(is_banned(one_.store));
}

TEST_F(BanStoreTest, BansAreAskedForWhileThereAreAny) {
  ban(one_.store, 2s);
  EXPECT_TRUE(is_banned(one_.store));
  EXPECT_EQ(shared_.figures().keys, 2U);  // the ban, and that there is any
  advance(2s);
  EXPECT_TRUE(ask(one_.store).admitted);
  advance(2s);
  EXPECT_TRUE(ask(two_.store).admitted);
  EXPECT_FALSE(two_.watch.may_be(now_));
  advance(BanWatch::kKnownFor);
  EXPECT_TRUE(ask(one_.store).admitted);
  EXPECT_FALSE(one_.watch.may_be(now_));
}

TEST_F(BanStoreTest, AQuestionThatFailsIsTheFailureOfTheChecks) {
  two_.remote->failure = Failure::unreachable;
  two_.remote->is_ready = false;
  EXPECT_EQ(ask(two_.store).failure, Failure::unreachable);
  EXPECT_EQ(two_.remote->asked, 0);  // it is not asked and counted twice
  two_.remote->later = true;
  PlainCheck waiting({{.limit = &limit_, .key = "k"}});
  EXPECT_EQ(two_.store.check(waiting, now_), Progress::pending);
  two_.remote->answer_pending();
  EXPECT_EQ(waiting.completed, 1);
  EXPECT_EQ(waiting.failure, Failure::unreachable);

  two_.remote->failure = Failure::none;
  two_.remote->later = false;
  ban(one_.store, 1h);
  EXPECT_TRUE(is_banned(two_.store));
}

// The store fails for the counter that tells of all bans, and no other.
class PartlyAway final : public Store {
 public:
  explicit PartlyAway(MemoryStore& shared) : shared_(shared) {}
  Progress check(Check& check, Time now) override {
    check.failure = Failure::none;
    return shared_.check(check, now);
  }
  Progress apply(Check& check, Time now) override {
    if (check.charges.front().key != kAnyBan) return shared_.apply(check, now);
    check.failure = Failure::circuit_open;
    return Progress::answered;
  }
  void cancel(Check& /*check*/) override {}

 private:
  MemoryStore& shared_;
};

TEST_F(BanStoreTest, WhereOthersAreServedEachCheckAsksForItsOwnBans) {
  ban(one_.store, 1h);
  BanWatch watch{true};
  BanStore store(std::make_shared<PartlyAway>(shared_), watch);
  EXPECT_TRUE(is_banned(store));
  EXPECT_TRUE(ask(store, "other").admitted);
}

// envoyproxy/ratelimit's second Redis: what lies there has its bans there, and limits that only count are banned, too.
TEST_F(BanStoreTest, LimitsPerSecondHaveTheirBansInTheirOwnStore) {
  MemoryStore seconds(1'000);
  BanWatch watch{true};
  BanWatch watch_of_seconds{true};
  compat::CountingStore store(
      {.main = std::make_shared<BanStore>(std::make_shared<RemoteStore>(shared_), watch),
       .per_second = std::make_shared<BanStore>(std::make_shared<RemoteStore>(seconds), watch_of_seconds)},
      true);
  CountedLimit minute = testing::counted("shop/minute", testing::fixed_window(kMaxRate, 1min));
  CountedLimit second = testing::counted("shop/second", testing::fixed_window(kMaxRate, 1s));
  minute.threshold = second.threshold = 3;
  for (const CountedLimit* limit : {&second, &minute}) {
    ban(store, 1h, *limit);
    PlainCheck check({{.limit = limit, .key = "k"}});
    EXPECT_EQ(store.check(check, now_), Progress::answered);
    EXPECT_FALSE(check.admitted);
    EXPECT_EQ(check.decisions[0].mark, Mark::banned);
    EXPECT_EQ(check.decisions[0].retry_after, Wait(1h));
    EXPECT_EQ(check.decisions[0].remaining, 3U);
    EXPECT_EQ(seconds.figures().keys, 2U);
    EXPECT_EQ(shared_.figures().keys, limit == &second ? 0U : 2U);
  }
}

}  // namespace
}  // namespace sluice::store
