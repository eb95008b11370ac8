#include "store/fallback_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>

#include "base/log.h"
#include "store/memory/memory_store.h"
#include "tests/unit/store/plain_check.h"

namespace sluice::store {
namespace {

using namespace std::chrono_literals;

// Answers or fails as a test says, at once or later.
class FakeStore final : public Store {
 public:
  Progress check(Check& check, Time /*now*/) override {
    if (later) {
      pending.push_back(&check);
      return Progress::pending;
    }
    answer(check);
    return Progress::answered;
  }
  Progress apply(Check& check, Time now) override { return this->check(check, now); }
  void cancel(Check& check) override { std::erase(pending, &check); }
  [[nodiscard]] bool ready() const override { return failure == Failure::none; }

  void answer(Check& check) const {
    check.failure = failure;
    check.admitted = admitted;
    for (Decision& decision : check.decisions) decision = {.allowed = admitted, .source = Source::redis, .limit = 9};
  }
  void answer_pending() {
    for (Check* check : std::exchange(pending, {})) {
      answer(*check);
      check->complete();
    }
  }

  Failure failure = Failure::none;
  bool admitted = true;
  bool later = false;
  std::deque<Check*> pending;
};

class FallbackStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  FallbackStoreTest() {
    auto primary = std::make_unique<FakeStore>();
    primary_ = primary.get();
    store_ = std::make_unique<FallbackStore>(std::move(primary), memory_, readiness_, metrics_);
  }
  CountedLimit limit(std::uint32_t id, OnStoreFailure word, std::uint64_t burst = 1) {
    return {.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 3600s, .burst = burst},
            .identity = "shop/" + std::to_string(id),
            .id = id,
            .on_store_failure = word};
  }
  MemoryStore memory_{1'000};
  metrics::Shard metrics_;
  FakeStore* primary_ = nullptr;
  Readiness readiness_;
  std::unique_ptr<FallbackStore> store_;
  const Time now_{.steady = 5'000'000'000, .utc = 5'000'000'000};
  const CountedLimit local_ = limit(1, OnStoreFailure::local);
  const CountedLimit allow_ = limit(2, OnStoreFailure::allow);
  const CountedLimit deny_ = limit(3, OnStoreFailure::deny);
};

TEST_F(FallbackStoreTest, AnAnswerIsHandedOn) {
  for (const bool admitted : {true, false}) {
    primary_->admitted = admitted;
    PlainCheck check({{.limit = &local_, .key = "k"}});
    ASSERT_EQ(store_->check(check, now_), Progress::answered);
    EXPECT_EQ(check.admitted, admitted);
    EXPECT_EQ(check.decisions[0].source, Source::redis);
    EXPECT_EQ(check.decisions[0].limit, 9U);
  }
  EXPECT_EQ(memory_.figures().keys, 0U);
}

TEST_F(FallbackStoreTest, EachWord) {
  primary_->failure = Failure::timeout;
  EXPECT_FALSE(store_->ready());
  for (const bool admitted : {true, false}) {
    PlainCheck check({{.limit = &local_, .key = "k"}});
    ASSERT_EQ(store_->check(check, now_), Progress::answered);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_EQ(check.admitted, admitted);
    EXPECT_EQ(check.decisions[0].allowed, admitted);
    EXPECT_EQ(check.decisions[0].source, Source::fallback_local);
    EXPECT_EQ(check.decisions[0].limit, 1U);
  }
  for (int i = 0; i < 3; ++i) {
    PlainCheck allowed({{.limit = &allow_, .key = "k"}});
    ASSERT_EQ(store_->check(allowed, now_), Progress::answered);
    EXPECT_TRUE(allowed.admitted);
    EXPECT_TRUE(allowed.decisions[0].allowed);
    EXPECT_EQ(allowed.decisions[0].source, Source::fallback_allow);
    EXPECT_EQ(allowed.decisions[0].limit, 0U);
    PlainCheck denied({{.limit = &deny_, .key = "k"}});
    ASSERT_EQ(store_->check(denied, now_), Progress::answered);
    EXPECT_FALSE(denied.admitted);
    EXPECT_FALSE(denied.decisions[0].allowed);
    EXPECT_EQ(denied.decisions[0].source, Source::fallback_deny);
  }
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_local), 2U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_allow), 3U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_deny), 3U);
}

TEST_F(FallbackStoreTest, ALeaseOfAnOutageIsGivenBackWhereItWasTaken) {
  const auto semaphore = [&](std::uint32_t id, OnStoreFailure word) {
    CountedLimit made = limit(id, word);
    made.numbers = {.algorithm = Algorithm::concurrency, .rate = 1};
    return made;
  };
  const CountedLimit leases = semaphore(4, OnStoreFailure::local);
  const CountedLimit open = semaphore(5, OnStoreFailure::allow);
  primary_->failure = Failure::timeout;
  std::array<std::uint64_t, 3> given{};
  PlainCheck acquired({{.limit = &open, .key = "k"}, {.limit = &leases, .key = "k"}, {.limit = &local_, .key = "k"}});
  acquired.leases = given;
  ASSERT_EQ(store_->check(acquired, now_), Progress::answered);
  EXPECT_TRUE(acquired.admitted);
  EXPECT_TRUE(is_stand_in_lease(given[1]));
  EXPECT_EQ(given[0] | given[2], 0U);

  primary_->failure = Failure::none;  // it is back, and has not heard of that
  for (const bool held : {true, false}) {
    const Verb verb = Verb::release(given[1], 1);
    PlainCheck released({{.limit = &leases, .key = "k"}});
    released.verb = &verb;
    ASSERT_EQ(store_->apply(released, now_), Progress::answered);
    EXPECT_EQ(released.admitted, held);
    EXPECT_EQ(released.failure, Failure::none);
    EXPECT_EQ(released.decisions[0].source, Source::fallback_local);
  }
  // Of what others have given, it is the primary that knows.
  const Verb verb = Verb::release(given[1] & ~kStandInLease, 1);
  PlainCheck released({{.limit = &leases, .key = "k"}});
  released.verb = &verb;
  ASSERT_EQ(store_->apply(released, now_), Progress::answered);
  EXPECT_EQ(released.decisions[0].source, Source::redis);
}

// What is done to the local counters is not done to the shared ones: a verb is never pretended.
TEST_F(FallbackStoreTest, AVerbThatFailsIsToldAndTouchesNothingLocal) {
  primary_->failure = Failure::timeout;
  PlainCheck charge({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(charge, now_), Progress::answered);
  for (const Verb& verb : {Verb::refund(1), Verb::reset(), Verb::peek()}) {
    for (const CountedLimit* limit : {&local_, &allow_, &deny_}) {
      PlainCheck check({{.limit = limit, .key = "k"}});
      check.verb = &verb;
      ASSERT_EQ(store_->apply(check, now_), Progress::answered);
      EXPECT_EQ(check.failure, Failure::timeout);
    }
  }
  EXPECT_EQ(memory_.judge({.limit = &local_, .key = "k"}, now_).remaining, 0U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_local), 1U);
  primary_->failure = Failure::none;
  const Verb verb = Verb::refund(1);
  PlainCheck check({{.limit = &local_, .key = "k"}});
  check.verb = &verb;
  ASSERT_EQ(store_->apply(check, now_), Progress::answered);
  EXPECT_EQ(check.decisions[0].source, Source::redis);
}

TEST_F(FallbackStoreTest, ADenialByWordChargesNothingLocally) {
  primary_->failure = Failure::timeout;
  PlainCheck mixed({{.limit = &local_, .key = "k"}, {.limit = &deny_, .key = "k"}, {.limit = &allow_, .key = "k"}});
  ASSERT_EQ(store_->check(mixed, now_), Progress::answered);
  EXPECT_FALSE(mixed.admitted);
  EXPECT_TRUE(mixed.decisions[0].allowed);
  EXPECT_EQ(mixed.decisions[0].remaining, 1U);
  EXPECT_EQ(mixed.decisions[0].source, Source::fallback_local);
  EXPECT_FALSE(mixed.decisions[1].allowed);
  EXPECT_EQ(mixed.decisions[1].which, 1U);
  EXPECT_TRUE(mixed.decisions[2].allowed);
  PlainCheck alone({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(alone, now_), Progress::answered);
  EXPECT_TRUE(alone.admitted);
}

// What is denied by word still tells exactly when it would fit.
TEST_F(FallbackStoreTest, ADenialByWordTellsTheLocalWait) {
  primary_->failure = Failure::timeout;
  CountedLimit ten = limit(5, OnStoreFailure::local, 10);
  ten.numbers.rate = 10;
  ten.numbers.period = 1s;
  PlainCheck spent({{.limit = &ten, .key = "k", .cost = 9}});
  ASSERT_EQ(store_->check(spent, now_), Progress::answered);
  ASSERT_TRUE(spent.admitted);
  const auto judged = [&](std::uint64_t cost) {
    PlainCheck check({{.limit = &ten, .key = "k", .cost = cost}, {.limit = &deny_, .key = "k"}});
    EXPECT_EQ(store_->check(check, now_), Progress::answered);
    EXPECT_FALSE(check.admitted);
    EXPECT_EQ(check.decisions[0].source, Source::fallback_local);
    EXPECT_EQ(check.decisions[0].remaining, 1U);
    EXPECT_EQ(check.decisions[0].reset_after, Wait(900ms));
    return check.decisions[0];
  };
  EXPECT_TRUE(judged(1).allowed);
  EXPECT_EQ(judged(1).retry_after, Wait(0ms));
  EXPECT_FALSE(judged(2).allowed);
  EXPECT_EQ(judged(2).retry_after, Wait(100ms));
  EXPECT_TRUE(judged(11).retry_after.is_never());
}

TEST_F(FallbackStoreTest, OneWrongKeyIsAnsweredByTheWordToo) {
  for (const Failure failure :
       {Failure::wrong_type, Failure::foreign_value, Failure::clock_apart, Failure::unsupported}) {
    primary_->failure = failure;
    PlainCheck check({{.limit = &allow_, .key = "k"}});
    EXPECT_EQ(store_->check(check, now_), Progress::answered);
    EXPECT_EQ(check.decisions[0].source, Source::fallback_allow);
  }
}

TEST_F(FallbackStoreTest, AShadowChargeNeverDenies) {
  primary_->failure = Failure::lost;
  PlainCheck check({{.limit = &deny_, .key = "k", .enforcement = Enforcement::shadow}, {.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(check, now_), Progress::answered);
  EXPECT_TRUE(check.admitted);
  EXPECT_FALSE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[1].source, Source::fallback_local);
}

TEST_F(FallbackStoreTest, QuotaChargesDenyTogether) {
  primary_->failure = Failure::lost;
  const auto admitted = [&](const CountedLimit& first, const CountedLimit& second) {
    PlainCheck check({{.limit = &first, .key = "q", .enforcement = Enforcement::quota},
                      {.limit = &second, .key = "q", .enforcement = Enforcement::quota}});
    EXPECT_EQ(store_->check(check, now_), Progress::answered);
    return check.admitted;
  };
  EXPECT_TRUE(admitted(local_, deny_));
  EXPECT_FALSE(admitted(local_, deny_));  // the local one is used up
  EXPECT_TRUE(admitted(local_, allow_));
  EXPECT_TRUE(admitted(deny_, allow_));
  const CountedLimit other = limit(4, OnStoreFailure::deny);
  EXPECT_FALSE(admitted(deny_, other));
}

TEST_F(FallbackStoreTest, PendingChecks) {
  primary_->later = true;
  PlainCheck answered({{.limit = &local_, .key = "k"}});
  PlainCheck cancelled({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(answered, now_), Progress::pending);
  ASSERT_EQ(store_->check(cancelled, now_), Progress::pending);
  store_->cancel(cancelled);
  primary_->answer_pending();
  EXPECT_EQ(answered.completed, 1);
  EXPECT_EQ(answered.decisions[0].source, Source::redis);
  EXPECT_EQ(cancelled.completed, 0);

  PlainCheck failed({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(failed, now_), Progress::pending);
  primary_->failure = Failure::timeout;
  primary_->answer_pending();
  EXPECT_EQ(failed.completed, 1);
  EXPECT_EQ(failed.failure, Failure::none);
  EXPECT_TRUE(failed.admitted);
  EXPECT_EQ(failed.decisions[0].source, Source::fallback_local);
}

TEST_F(FallbackStoreTest, TheSharedStateRulesAgainAtOnce) {
  primary_->failure = Failure::timeout;
  PlainCheck local({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(local, now_), Progress::answered);
  primary_->failure = Failure::none;
  PlainCheck shared({{.limit = &local_, .key = "k"}});
  ASSERT_EQ(store_->check(shared, now_), Progress::answered);
  EXPECT_EQ(shared.decisions[0].source, Source::redis);
}

TEST_F(FallbackStoreTest, OnceReachedItStaysReady) {
  primary_->failure = Failure::timeout;
  EXPECT_FALSE(store_->ready());
  primary_->failure = Failure::none;
  EXPECT_TRUE(store_->ready());
  primary_->failure = Failure::timeout;
  EXPECT_TRUE(store_->ready());
}

}  // namespace
}  // namespace sluice::store
