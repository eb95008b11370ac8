#include "limiter/verb_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "limiter/hold.h"
#include "limiter/hold_request.h"
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

TEST_F(VerbCallTest, ASettlementCountsDescriptorsWhateverCostsTheyBring) {
  for (const std::uint64_t cost : {std::uint64_t{0}, std::uint64_t{5}, kMaxTokens}) {
    EXPECT_TRUE(apply({.kind = Kind::reset}, both()).any_done);
    EXPECT_EQ(check(both(50)).statuses[0].decision.remaining, 50U);
    const Asked one = Asked("verbs", cost).with({{"user", "42"}}, cost);
    EXPECT_EQ(apply({.kind = Kind::settle, .reserved = 0, .actual = 0}, one).statuses[0].decision.remaining, 50U);
    EXPECT_EQ(apply({.kind = Kind::settle, .reserved = 1, .actual = 3}, one).statuses[0].decision.remaining, 48U);
    const Asked two = Asked("verbs").with({{"user", "42"}}, cost).with({{"user", "42"}}, cost);
    EXPECT_EQ(apply({.kind = Kind::settle, .reserved = 3, .actual = 1}, two).statuses[1].decision.remaining, 52U);
  }
}

TEST_F(VerbCallTest, ACostOfNothingChangesNothing) {
  EXPECT_EQ(check(both(50)).statuses[0].decision.remaining, 50U);
  const Asked one = Asked("verbs", 0).with({{"user", "42"}}, std::optional<std::uint64_t>(0));
  EXPECT_EQ(apply({.kind = Kind::refund}, one).statuses[0].decision.remaining, 50U);
  EXPECT_EQ(apply({.kind = Kind::penalize}, one).statuses[0].decision.remaining, 50U);
}

// The lease of a reservation lies where the policy of that time had its first counter.
TEST_F(VerbCallTest, AReservationEndsWhateverBecameOfItsFirstLimit) {
  const std::string day = "  - { key: day, rate_limit: { name: Days, unit: day, requests_per_unit: 1000 } }\n";
  const std::string user = "  - { key: user, rate_limit: { name: Users, unit: day, requests_per_unit: 1000 } }\n";
  const std::string free = "  - { key: user, rate_limit: { name: Users, unlimited: true } }\n";
  const std::string head = "domain: ends\ndescriptors:\n";
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {user + day, day}, {user + day, free + day}, {day, user + day}}) {
    const std::string value = std::to_string(now_.utc);  // a counter of its own
    const auto asked = [&](std::uint64_t cost) {
      return Asked("ends", cost).with({{"user", value}}).with({{"day", value}});
    };
    policy_ = policy_of(head + before);
    Asked wanted = asked(70);
    Request request = wanted.request();
    request.reserve = std::chrono::minutes(1);
    ASSERT_EQ(call_.start(request, policy_, store_, now_), store::Progress::answered);
    ASSERT_TRUE(call_.answer().hold);
    Hold hold;
    ASSERT_TRUE(from_text(to_text(*call_.answer().hold), hold));
    const HoldRequest held(std::move(hold));
    policy_ = policy_of(head + after);
    for (const bool first : {true, false}) {
      ASSERT_EQ(verb_call_.start(held.request(), held.commit(20), policy_, store_, now_), store::Progress::answered);
      EXPECT_EQ(verb_call_.answer().held, first);
      EXPECT_EQ(verb_call_.answer().any_done, first);
      EXPECT_EQ(check(asked(0)).statuses[1].decision.remaining, 980U);
    }
    now_.utc += 1;
  }
}

TEST_F(VerbCallTest, AReservationGivesNothingToACounterOfAnotherKey) {
  const auto policy = [](const std::string& word) {
    return policy_of("domain: shares\ndescriptors:\n  - key: user\n    value: u*\n" + word +
                     "    rate_limit: { name: Users, unit: day, requests_per_unit: 1000 }\n");
  };
  policy_ = policy("");
  Asked asked = Asked("shares", 70).with({{"user", "u1"}});
  Request request = asked.request();
  request.reserve = std::chrono::minutes(1);
  ASSERT_EQ(call_.start(request, policy_, store_, now_), store::Progress::answered);
  ASSERT_TRUE(call_.answer().hold);
  const HoldRequest held(*call_.answer().hold);
  policy_ = policy("    share_threshold: true\n");
  EXPECT_EQ(check(Asked("shares", 50).with({{"user", "u1"}})).decision.remaining, 950U);
  ASSERT_EQ(verb_call_.start(held.request(), held.commit(0), policy_, store_, now_), store::Progress::answered);
  EXPECT_EQ(verb_call_.answer().statuses[0].other, VerbStatus::Other::counter);
  EXPECT_EQ(check(Asked("shares", 0).with({{"user", "u1"}})).decision.remaining, 950U);
}

TEST(HoldText, IsNeverLongerThanPortsTakeIt) {
  for (const std::size_t entries : {1U, 10U, 1'000U}) {
    for (const std::size_t descriptors : {1U, 7U, 100U}) {
      // As much as is taken: sizes grow until it is refused.
      std::size_t longest = 0;
      for (std::size_t size = 1; size < 60'000; size += 1 + size / 16) {
        std::vector<std::pair<std::string, std::string>> some(entries, {"key", std::string(size, 'v')});
        Hold hold;
        hold.domain = "shop";
        std::vector<Entry> views;
        for (const auto& [key, value] : some) views.push_back({.key = key, .value = value});
        std::vector<Descriptor> all(descriptors);
        for (Descriptor& one : all) one.entries = views;
        const Request request{.domain = "shop", .descriptors = all};
        if (has_too_long_text(request)) break;
        hold.descriptors.assign(descriptors,
                                {.entries = some, .cost = kMaxTokens, .lease = UINT64_MAX, .mark = UINT32_MAX});
        hold.cost = kMaxTokens;
        hold.lease = UINT64_MAX;
        hold.place = std::string(200, 'p');
        hold.charged_at = hold.expires_at = INT64_MAX;
        for (const auto kind : {Hold::Kind::reservation, Hold::Kind::lease}) {
          hold.kind = kind;
          const std::string text = to_text(hold);
          ASSERT_LE(text.size(), kLongestHold);
          longest = std::max(longest, text.size());
          Hold again;
          ASSERT_TRUE(from_text(text, again));
        }
      }
      if (entries * descriptors == 1) {
        EXPECT_GT(longest, kLongestHold * 3 / 4);
      }
    }
  }
  const std::vector<Descriptor> many(101);
  EXPECT_TRUE(has_too_long_text({.domain = "shop", .descriptors = many}));
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
