#include "limiter/verb_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "tests/unit/limiter/asked.h"

namespace sluice::limiter {
namespace {

using Kind = CounterVerb::Kind;

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;  // 2026-01-01 00:00 UTC

/// Carries verbs out on a memory store, fails them, or keeps them until told to answer.
class OtherStore final : public store::Store {
 public:
  store::Progress check(store::Check& check, Time now) override { return memory_.check(check, now); }
  store::Progress apply(store::Check& check, Time now) override {
    if (later) {
      pending.emplace_back(&check, now);
      return store::Progress::pending;
    }
    answer(check, now);
    return store::Progress::answered;
  }
  void cancel(store::Check& check) override {
    std::erase_if(pending, [&](const auto& one) { return one.first == &check; });
  }
  void answer_pending() {
    for (const auto& [check, now] : std::exchange(pending, {})) {
      answer(*check, now);
      check->complete();
    }
  }
  bool later = false;
  store::Failure failure = store::Failure::none;
  std::string fails_at;  ///< only this key
  std::vector<std::pair<store::Check*, Time>> pending;

 private:
  void answer(store::Check& check, Time now) {
    const bool fails = failure != store::Failure::none && (fails_at.empty() || check.charges[0].key == fails_at);
    if (fails) {
      check.failure = failure;
    } else {
      (void)memory_.apply(check, now);
    }
  }
  store::MemoryStore memory_{1'000};
};

class VerbCallTest : public ::testing::Test, protected VerbCall::Owner, protected Call::Owner {
 public:
  void answered(VerbCall& call) override {
    EXPECT_EQ(&call, &verb_call_);
    ++answered_;
  }
  void answered(Call& /*call*/) override {}

 protected:
  const Answer& check(Asked asked, bool peek = false) {
    Request request = asked.request();
    request.peek = peek;
    EXPECT_EQ(call_.start(request, policy_, store_, now_), store::Progress::answered);
    return call_.answer();
  }
  const VerbAnswer& apply(const CounterVerb& verb, Asked asked) {
    progress_ = verb_call_.start(asked.request(), verb, policy_, store_, now_);
    return verb_call_.answer();
  }

  OtherStore store_;
  metrics::Shard shard_;
  // Identities are those of the domain, so each policy of these tests has a domain of its own.
  std::shared_ptr<const policy::Policy> policy_ = policy_of(R"(
domain: verbs
descriptors:
  - key: user
    rate_limit: { name: PerUser, unit: hour, requests_per_unit: 100, algorithm: token_bucket }
  - key: day
    rate_limit: { name: PerDay, unit: day, requests_per_unit: 1000 }
  - key: team
    rate_limit: { unlimited: true, name: Team }
)");
  Call call_{*this, shard_};
  VerbCall verb_call_{*this, shard_};
  Time now_{kStart, kStart};
  store::Progress progress_ = store::Progress::pending;
  int answered_ = 0;
};

Asked both(std::uint64_t cost = 1) { return Asked("verbs", cost).with({{"user", "42"}}).with({{"day", "x"}}); }

TEST_F(VerbCallTest, EachVerbOnEachLimitOfARequest) {
  EXPECT_EQ(check(both(60)).statuses[0].decision.remaining, 40U);
  const auto remaining = [&](const CounterVerb& verb, std::uint64_t cost = 1) {
    const VerbAnswer& answer = apply(verb, both(cost));
    EXPECT_EQ(progress_, store::Progress::answered);
    EXPECT_EQ(answer.problem, Answer::Problem::none);
    EXPECT_TRUE(answer.any_done);
    EXPECT_FALSE(answer.failed);
    std::vector<std::uint64_t> left;
    for (const VerbStatus& status : answer.statuses) {
      EXPECT_TRUE(status.done);
      EXPECT_TRUE(status.decision.allowed);
      left.push_back(status.decision.remaining);
    }
    EXPECT_EQ(answer.statuses[0].rule->label(), "PerUser");
    return left;
  };
  EXPECT_THAT(remaining({.kind = Kind::refund}, 10), ::testing::ElementsAre(50U, 950U));
  EXPECT_THAT(remaining({.kind = Kind::settle, .reserved = 5, .actual = 15}), ::testing::ElementsAre(40U, 940U));
  EXPECT_THAT(remaining({.kind = Kind::settle, .reserved = 15, .actual = 5}), ::testing::ElementsAre(50U, 950U));
  EXPECT_THAT(remaining({.kind = Kind::penalize}, 500), ::testing::ElementsAre(0U, 450U));  // to 100 below 0
  EXPECT_THAT(remaining({.kind = Kind::refund}, 101), ::testing::ElementsAre(1U, 551U));
  // Of yesterday's charge nothing counts any more; a bucket knows no such times.
  EXPECT_THAT(remaining({.kind = Kind::refund, .at = kStart - 1}, 9), ::testing::ElementsAre(10U, 551U));
  EXPECT_THAT(remaining({.kind = Kind::reset}), ::testing::ElementsAre(100U, 1'000U));
  EXPECT_EQ(shard_.value(metrics::Counter::verb_refund), 6U);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_settle), 4U);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_penalize), 2U);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_reset), 2U);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_failures), 0U);
}

TEST_F(VerbCallTest, DescriptorsThatShareACounterDoItOnceWithTheSum) {
  const auto twice = [](std::uint64_t cost) {
    return Asked("verbs", cost).with({{"user", "42"}}).with({{"user", "42"}}, std::optional<std::uint64_t>(3));
  };
  EXPECT_EQ(check(twice(10)).decision.remaining, 87U);
  EXPECT_EQ(apply({.kind = Kind::refund}, twice(4)).statuses[1].decision.remaining, 94U);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_refund), 1U);
  const Asked plain = Asked("verbs").with({{"user", "42"}}).with({{"user", "42"}});
  EXPECT_EQ(apply({.kind = Kind::settle, .reserved = 1, .actual = 3}, plain).statuses[0].decision.remaining, 90U);
  EXPECT_EQ(apply({.kind = Kind::settle, .reserved = 0, .actual = kMaxTokens}, plain).statuses[0].decision.remaining,
            0U);
}

TEST_F(VerbCallTest, WhereThereIsNoCounter) {
  const VerbAnswer& answer = apply({.kind = Kind::reset}, Asked("verbs").with({{"nobody", "1"}}).with({{"team", "1"}}));
  EXPECT_FALSE(answer.any_done);
  EXPECT_FALSE(answer.failed);
  EXPECT_EQ(answer.statuses[0].rule, nullptr);
  EXPECT_EQ(answer.statuses[1].rule->label(), "Team");
  EXPECT_FALSE(answer.statuses[1].done);
  EXPECT_FALSE(apply({.kind = Kind::reset}, Asked("no such").with({{"user", "1"}})).known_domain);
}

TEST_F(VerbCallTest, WrongRequestsAreRefused) {
  const auto problem = [&](const CounterVerb& verb, Asked asked) { return apply(verb, std::move(asked)).problem; };
  EXPECT_EQ(problem({}, Asked("").with({{"user", "1"}})), Answer::Problem::empty_domain);
  EXPECT_EQ(problem({}, Asked("verbs")), Answer::Problem::no_descriptors);
  EXPECT_EQ(problem({.kind = Kind::refund}, both(kMaxTokens + 1)), Answer::Problem::cost_out_of_range);
  EXPECT_EQ(problem({.kind = Kind::settle, .actual = kMaxTokens + 1}, both()), Answer::Problem::cost_out_of_range);
  policy_ = nullptr;
  EXPECT_EQ(problem({}, both()), Answer::Problem::no_policy);
}

TEST_F(VerbCallTest, AFailureIsToldOfTheCounterThatItIsOf) {
  store_.failure = store::Failure::timeout;
  store_.fails_at = "x";
  const VerbAnswer& answer = apply({.kind = Kind::penalize}, both());
  EXPECT_TRUE(answer.failed);
  EXPECT_TRUE(answer.any_done);
  EXPECT_TRUE(answer.statuses[0].done);
  EXPECT_FALSE(answer.statuses[1].done);
  EXPECT_EQ(answer.statuses[1].failure, store::Failure::timeout);
  EXPECT_EQ(shard_.value(metrics::Counter::verb_failures), 1U);
}

TEST_F(VerbCallTest, WaitsForAllOfItsCounters) {
  store_.later = true;
  (void)apply({.kind = Kind::penalize}, both(7));
  ASSERT_EQ(progress_, store::Progress::pending);
  ASSERT_EQ(store_.pending.size(), 2U);
  store_.answer_pending();
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(verb_call_.answer().statuses[1].decision.remaining, 993U);
  (void)apply({.kind = Kind::reset}, both());
  verb_call_.cancel();
  EXPECT_TRUE(store_.pending.empty());
  EXPECT_EQ(answered_, 1);
}

TEST_F(VerbCallTest, APeekTellsWhatACheckWouldAndTakesAndCountsNothing) {
  for (int i = 0; i < 3; ++i) {
    const Answer& answer = check(both(60), true);
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.decision.remaining, 40U);
    EXPECT_EQ(answer.statuses[1].decision.remaining, 940U);
  }
  const policy::Rule& rule = *call_.answer().statuses[0].rule;
  EXPECT_EQ(shard_.value(rule.counted.id, metrics::Verdict::allowed), 0U);
  ASSERT_TRUE(check(both(60)).allowed);
  const Answer denied = check(both(60), true);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.deciding->label(), "PerUser");
  EXPECT_TRUE(denied.statuses[1].decision.allowed);
  EXPECT_EQ(denied.statuses[1].decision.remaining, 940U);
  const Answer same = check(both(60));
  EXPECT_EQ(same.decision, denied.decision);
  EXPECT_EQ(same.statuses[1].decision, denied.statuses[1].decision);
  store_.failure = store::Failure::unreachable;
  EXPECT_EQ(check(both(), true).failure, store::Failure::unreachable);
  EXPECT_EQ(check(both()).failure, store::Failure::none);
}

}  // namespace
}  // namespace sluice::limiter
