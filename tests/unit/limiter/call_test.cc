#include "limiter/call.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "tests/unit/limiter/asked.h"

namespace sluice::limiter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'767'225'600 * kSecond;  // 2026-01-01 00:00 UTC

class CallTest : public ::testing::Test, protected Call::Owner {
 public:
  void answered(Call& call) override {
    EXPECT_EQ(&call, &call_);
    ++answered_;
  }

 protected:
  const Answer& ask(Asked asked, store::Store* at = nullptr) {
    progress_ = call_.start(asked.request(), policy_, at != nullptr ? *at : store_, now_);
    return call_.answer();
  }
  void advance(std::chrono::nanoseconds time) {
    now_.steady += time.count();
    now_.utc += time.count();
  }
  [[nodiscard]] std::uint64_t counted(const policy::Rule& rule, metrics::Verdict verdict) const {
    return shard_.value(rule.counted.id, verdict);
  }

  store::MemoryStore store_{10'000};
  metrics::Registry registry_;
  metrics::Shard& shard_ = registry_.add_shard();
  std::shared_ptr<const policy::Policy> policy_;
  Call call_{*this, shard_};
  Time now_{kStart, kStart};
  store::Progress progress_ = store::Progress::pending;
  int answered_ = 0;
};

/// Keeps checks until told to answer them.
class SlowStore final : public store::Store {
 public:
  store::Progress check(store::Check& check, Time /*now*/) override {
    pending = &check;
    return store::Progress::pending;
  }
  void cancel(store::Check& check) override {
    EXPECT_EQ(pending, &check);
    pending = nullptr;
    ++cancelled;
  }
  void answer(const std::vector<Decision>& with, bool admitted) {
    store::Check& check = *std::exchange(pending, nullptr);
    ASSERT_EQ(check.decisions.size(), with.size());
    std::ranges::copy(with, check.decisions.begin());
    check.admitted = admitted;
    check.complete();
  }
  store::Check* pending = nullptr;
  int cancelled = 0;
};

TEST_F(CallTest, ArticleCreateAtTenASecondWithABurstOfThirty) {
  policy_ = policy_of(R"(
domain: call_article
descriptors:
  - key: user
    rate_limit: { name: ArticleCreate, unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
)");
  for (int i = 0; i < 30; ++i) {
    const Answer& answer = ask(Asked("call_article").with({{"user", "42"}}));
    ASSERT_EQ(progress_, store::Progress::answered);
    ASSERT_TRUE(answer.allowed) << i;
    EXPECT_EQ(answer.decision.remaining, static_cast<std::uint64_t>(29 - i));
  }
  const Answer& denied = ask(Asked("call_article").with({{"user", "42"}}));
  EXPECT_FALSE(denied.allowed);
  ASSERT_NE(denied.deciding, nullptr);
  EXPECT_EQ(denied.deciding->name, "ArticleCreate");
  EXPECT_EQ(denied.decision.limit, 30U);
  EXPECT_EQ(denied.decision.retry_after, Wait(milliseconds(100)));
  EXPECT_EQ(denied.decision.reset_after, Wait(seconds(3)));
  EXPECT_TRUE(denied.has_figures);
  ASSERT_EQ(denied.statuses.size(), 1U);
  EXPECT_TRUE(denied.statuses[0].over_limit);
  EXPECT_TRUE(ask(Asked("call_article").with({{"user", "43"}})).allowed);
  advance(milliseconds(100));
  EXPECT_TRUE(ask(Asked("call_article").with({{"user", "42"}})).allowed);
  EXPECT_EQ(counted(*policy_->rules()[0], metrics::Verdict::allowed), 32U);
  EXPECT_EQ(counted(*policy_->rules()[0], metrics::Verdict::denied), 1U);
}

TEST_F(CallTest, RequestsThatCannotBeJudged) {
  EXPECT_EQ(ask(Asked("call_none").with({{"a", "b"}})).problem, Answer::Problem::no_policy);
  policy_ = policy_of("domain: call_none\ndescriptors: []\n");
  EXPECT_EQ(ask(Asked("").with({{"a", "b"}})).problem, Answer::Problem::empty_domain);
  EXPECT_EQ(ask(Asked("call_none")).problem, Answer::Problem::no_descriptors);
  EXPECT_EQ(ask(Asked("call_none", kMaxTokens + 1).with({{"a", "b"}})).problem, Answer::Problem::cost_out_of_range);
  EXPECT_EQ(ask(Asked("call_none").with({{"a", "b"}}, kMaxTokens + 1)).problem, Answer::Problem::cost_out_of_range);
  EXPECT_EQ(ask(Asked("call_none", kMaxTokens + 1).with({{"a", "b"}}, kMaxTokens)).problem, Answer::Problem::none);
  EXPECT_EQ(ask(Asked("call_none").with({{"a", "b"}})).problem, Answer::Problem::none);
}

TEST_F(CallTest, CostsOfOneKeyThatAddUpBeyondTheLargestCostNeverFit) {
  policy_ = policy_of(R"(
domain: call_sum
descriptors:
  - key: user
    rate_limit: { algorithm: token_bucket, unit: second, requests_per_unit: 1, burst: 1000000000000000 }
  - key: counted
    rate_limit: { unit: second, requests_per_unit: 10, count_denied: true }
)");
  Asked many("call_sum", kMaxTokens);  // their sum is above 2^64
  for (int i = 0; i < 20'000; ++i) many.with({{"user", "1"}});
  for (const Asked& asked : {Asked("call_sum", kMaxTokens).with({{"user", "1"}}).with({{"user", "1"}}, 1), many}) {
    const Answer& denied = ask(asked);
    EXPECT_EQ(denied.problem, Answer::Problem::none);
    EXPECT_FALSE(denied.allowed);
    EXPECT_TRUE(denied.decision.retry_after.is_never());
    EXPECT_EQ(denied.decision.remaining, kMaxTokens);
    EXPECT_TRUE(denied.statuses[0].over_limit);
    EXPECT_TRUE(denied.statuses[1].over_limit);
    EXPECT_EQ(store_.figures().keys, 0U);
  }
  EXPECT_TRUE(ask(Asked("call_sum", kMaxTokens - 1).with({{"user", "1"}}).with({{"user", "1"}}, 1)).allowed);

  const Answer& counted = ask(Asked("call_sum", kMaxTokens).with({{"counted", "1"}}).with({{"counted", "1"}}));
  EXPECT_TRUE(counted.decision.retry_after.is_never());
  EXPECT_EQ(counted.decision.remaining, 0U);
  EXPECT_FALSE(ask(Asked("call_sum").with({{"counted", "1"}})).allowed);  // what was denied counts
}

TEST_F(CallTest, public_report_68_UnknownDomainIsAllowedWithoutLimit) {
  policy_ = policy_of("domain: call_known\ndescriptors: []\n");
  const Answer& answer = ask(Asked("call_unknown").with({{"a", "b"}}).with({{"c", "d"}}));
  EXPECT_EQ(answer.problem, Answer::Problem::none);
  EXPECT_TRUE(answer.allowed);
  EXPECT_FALSE(answer.known_domain);
  ASSERT_EQ(answer.statuses.size(), 2U);
  for (const Status& status : answer.statuses) {
    EXPECT_FALSE(status.over_limit);
    EXPECT_EQ(status.rule, nullptr);
  }
  EXPECT_EQ(answer.deciding, nullptr);
  EXPECT_EQ(shard_.value(metrics::Counter::unknown_domain), 1U);
}

TEST_F(CallTest, UnmatchedDescriptorsAreNotLimited) {
  policy_ = policy_of(R"(
domain: call_unmatched
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1 }
)");
  const Answer& answer = ask(Asked("call_unmatched").with({{"tenant", "x"}}).with({{"user", "1"}}));
  ASSERT_EQ(answer.statuses.size(), 2U);
  EXPECT_EQ(answer.statuses[0].rule, nullptr);
  EXPECT_NE(answer.statuses[1].rule, nullptr);
  EXPECT_EQ(answer.decision.which, 1U);  // the descriptor's index, not the charge's
  EXPECT_FALSE(ask(Asked("call_unmatched").with({{"tenant", "x"}}).with({{"user", "1"}})).allowed);
  EXPECT_TRUE(ask(Asked("call_unmatched").with({{"tenant", "x"}})).allowed);
}

TEST_F(CallTest, public_report_67_CostZeroOfADescriptorLooksOnly) {
  policy_ = policy_of(R"(
domain: call_look
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
)");
  for (std::uint64_t left = 5; left-- > 0;) {
    const Answer& answer = ask(Asked("call_look").with({{"user", "1"}}));
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.statuses[0].decision.remaining, left);
  }
  for (int i = 0; i < 3; ++i) {
    const Answer& look = ask(Asked("call_look").with({{"user", "1"}}, 0));
    EXPECT_TRUE(look.allowed);
    EXPECT_FALSE(look.statuses[0].over_limit);
    EXPECT_EQ(look.statuses[0].decision.remaining, 0U);
  }
  EXPECT_FALSE(ask(Asked("call_look").with({{"user", "1"}})).allowed);
}

TEST_F(CallTest, AllOrNothingAndEachDescriptorsOwnVerdict) {
  policy_ = policy_of(R"(
domain: call_all
descriptors:
  - key: global
    rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: address
    rate_limit: { unit: minute, requests_per_unit: 1 }
)");
  const auto both = [] { return Asked("call_all").with({{"global", "g"}}).with({{"address", "a"}}); };
  EXPECT_TRUE(ask(both()).allowed);
  for (int i = 0; i < 5; ++i) {
    const Answer& answer = ask(both());
    EXPECT_FALSE(answer.allowed);
    EXPECT_FALSE(answer.statuses[0].over_limit);
    EXPECT_EQ(answer.statuses[0].decision.remaining, 9U);  // uncharged
    EXPECT_TRUE(answer.statuses[1].over_limit);
    EXPECT_EQ(answer.decision.which, 1U);
    EXPECT_EQ(answer.deciding, answer.statuses[1].rule);
  }
  EXPECT_EQ(ask(Asked("call_all").with({{"global", "g"}})).decision.remaining, 8U);
}

TEST_F(CallTest, TheSameKeyTwiceIsOneChargeOfTheSum) {
  policy_ = policy_of(R"(
domain: call_twice
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 5 }
)");
  const Answer& three = ask(Asked("call_twice").with({{"user", "1"}}).with({{"user", "2"}}).with({{"user", "1"}}, 2));
  EXPECT_TRUE(three.allowed);
  EXPECT_EQ(three.statuses[0].decision.remaining, 2U);
  EXPECT_EQ(three.statuses[1].decision.remaining, 4U);
  EXPECT_EQ(three.statuses[2].decision.remaining, 2U);
  EXPECT_EQ(three.decision.which, 0U);
  const Answer& denied = ask(Asked("call_twice").with({{"user", "1"}}, 2).with({{"user", "1"}}));
  EXPECT_FALSE(denied.allowed);  // 3 of 2, though either alone would fit
  EXPECT_TRUE(denied.statuses[0].over_limit);
  EXPECT_TRUE(denied.statuses[1].over_limit);
}

TEST_F(CallTest, public_report_71_UnlimitedDoesNotLiftTheOther) {
  policy_ = policy_of(R"(
domain: call_unlimited
descriptors:
  - key: a
    rate_limit: { unlimited: true }
  - key: b
    rate_limit: { unit: second, requests_per_unit: 5 }
)");
  for (int i = 0; i < 6; ++i) {
    const Answer& answer = ask(Asked("call_unlimited").with({{"a", "x"}}).with({{"b", "x"}}));
    ASSERT_NE(answer.statuses[0].rule, nullptr);
    EXPECT_TRUE(answer.statuses[0].rule->unlimited);
    EXPECT_FALSE(answer.statuses[0].over_limit);
    EXPECT_EQ(answer.statuses[1].over_limit, i == 5);
    EXPECT_EQ(answer.allowed, i != 5);
  }
  SlowStore untouched;
  const Answer& alone = ask(Asked("call_unlimited").with({{"a", "x"}}), &untouched);
  EXPECT_EQ(progress_, store::Progress::answered);
  EXPECT_EQ(untouched.pending, nullptr);  // never reaches the store
  EXPECT_TRUE(alone.allowed);
  EXPECT_EQ(alone.deciding, alone.statuses[0].rule);
  EXPECT_EQ(counted(*alone.statuses[0].rule, metrics::Verdict::allowed), 7U);
  const Answer& second = ask(Asked("call_unlimited").with({{"other", "x"}}).with({{"a", "x"}}));
  EXPECT_EQ(second.decision.which, 1U);
  EXPECT_EQ(second.deciding, second.statuses[1].rule);
  EXPECT_EQ(ask(Asked("call_unlimited").with({{"other", "x"}})).deciding, nullptr);
}

TEST_F(CallTest, ReplacesDropsEveryLimitOfThatNameInTheRequest) {
  policy_ = policy_of(R"(
domain: call_replaces
descriptors:
  - key: user
    rate_limit: { name: usual, unit: minute, requests_per_unit: 1 }
  - key: address
    rate_limit: { name: usual, unit: minute, requests_per_unit: 1 }
  - key: partner
    rate_limit: { name: partner, unit: minute, requests_per_unit: 100, replaces: [ { name: usual } ] }
  - key: vip
    rate_limit: { unlimited: true, replaces: [ { name: partner } ] }
)");
  for (int i = 0; i < 3; ++i) {
    const Answer& answer =
        ask(Asked("call_replaces").with({{"user", "1"}}).with({{"partner", "p"}}).with({{"address", "a"}}));
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.statuses[0].rule, nullptr);
    EXPECT_EQ(answer.statuses[2].rule, nullptr);
    EXPECT_EQ(answer.decision.which, 1U);
  }
  // Nothing was charged to what was dropped, and a limit that is itself dropped still drops others.
  EXPECT_TRUE(ask(Asked("call_replaces").with({{"user", "1"}})).allowed);
  const Answer& chain = ask(Asked("call_replaces").with({{"user", "1"}}).with({{"partner", "p"}}).with({{"vip", "v"}}));
  EXPECT_TRUE(chain.allowed);
  EXPECT_EQ(chain.statuses[0].rule, nullptr);
  EXPECT_EQ(chain.statuses[1].rule, nullptr);
  EXPECT_FALSE(ask(Asked("call_replaces").with({{"user", "1"}})).allowed);
}

TEST_F(CallTest, public_report_76_ShadowDoesNotEndTheEvaluation) {
  policy_ = policy_of(R"(
domain: call_shadow
descriptors:
  - key: trial
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 0 }
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 1 }
)");
  const auto both = [] { return Asked("call_shadow").with({{"trial", "t"}}).with({{"user", "1"}}); };
  const Answer& first = ask(both());
  EXPECT_TRUE(first.allowed);
  EXPECT_FALSE(first.statuses[0].over_limit);
  EXPECT_EQ(first.decision.which, 1U);
  const policy::Rule& trial = *first.statuses[0].rule;
  const Answer& second = ask(both());
  EXPECT_FALSE(second.allowed);
  EXPECT_FALSE(second.statuses[0].over_limit);
  EXPECT_TRUE(second.statuses[1].over_limit);
  EXPECT_EQ(second.decision.which, 1U);
  EXPECT_EQ(counted(trial, metrics::Verdict::shadow_denied), 2U);
  EXPECT_EQ(counted(trial, metrics::Verdict::denied), 0U);
  const Answer& alone = ask(Asked("call_shadow").with({{"trial", "t"}}));
  EXPECT_TRUE(alone.allowed);
  EXPECT_EQ(alone.decision.retry_after, Wait());
}

TEST_F(CallTest, QuotaModeDeniesWhenEveryQuotaIsOver) {
  policy_ = policy_of(R"(
domain: call_quota
descriptors:
  - key: a
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: b
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
)");
  const auto both = [] { return Asked("call_quota").with({{"a", "x"}}).with({{"b", "x"}}); };
  EXPECT_TRUE(ask(both()).allowed);
  const Answer& one_over = ask(both());
  EXPECT_TRUE(one_over.allowed);
  EXPECT_TRUE(one_over.statuses[0].over_limit);
  EXPECT_FALSE(one_over.statuses[1].over_limit);
  EXPECT_EQ(one_over.decision.which, 1U);
  const Answer& all_over = ask(both());
  EXPECT_FALSE(all_over.allowed);
  EXPECT_TRUE(all_over.statuses[0].over_limit);
  EXPECT_TRUE(all_over.statuses[1].over_limit);
}

TEST_F(CallTest, ALimitOfTheRequestGoesBeforeThePolicys) {
  policy_ = policy_of(R"(
domain: call_override
descriptors:
  - key: user
    rate_limit: { unit: minute, requests_per_unit: 100 }
)");
  const auto two_an_hour = [](std::string user) {
    return Asked("call_override").with({{"user", std::move(user)}}, {}, LimitOverride{2, Unit::hour});
  };
  EXPECT_EQ(ask(two_an_hour("1")).decision.limit, 2U);
  EXPECT_TRUE(ask(two_an_hour("1")).allowed);
  const Answer& denied = ask(two_an_hour("1"));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.statuses[0].rule->unit, Unit::hour);
  EXPECT_EQ(denied.statuses[0].rule->requests_per_unit, 2U);
  EXPECT_TRUE(ask(two_an_hour("2")).allowed);
  EXPECT_EQ(ask(Asked("call_override").with({{"user", "1"}})).decision.remaining, 99U);  // its own counter
  EXPECT_EQ(shard_.value(metrics::Counter::override_allowed), 3U);
  EXPECT_EQ(shard_.value(metrics::Counter::override_denied), 1U);
  const Answer& unknown = ask(Asked("call_nowhere").with({{"user", "1"}}, {}, LimitOverride{0, Unit::hour}));
  EXPECT_TRUE(unknown.allowed);  // the domain must exist
}

TEST_F(CallTest, AReloadKeepsCountersAndOldAnswersLive) {
  const auto with_rate = [](int rate) {
    return policy_of(
        "domain: call_reload\ndescriptors:\n  - key: user\n    rate_limit: { unit: minute, requests_per_unit: " +
        std::to_string(rate) + " }\n");
  };
  policy_ = with_rate(2);
  EXPECT_TRUE(ask(Asked("call_reload").with({{"user", "1"}})).allowed);
  EXPECT_TRUE(ask(Asked("call_reload").with({{"user", "1"}})).allowed);
  const Answer& denied = ask(Asked("call_reload").with({{"user", "1"}}));
  EXPECT_FALSE(denied.allowed);
  const std::weak_ptr<const policy::Policy> old = policy_;
  policy_ = with_rate(3);
  EXPECT_FALSE(old.expired());
  EXPECT_EQ(denied.deciding->requests_per_unit, 2U);  // still there to be shown
  const Answer& next = ask(Asked("call_reload").with({{"user", "1"}}));
  EXPECT_TRUE(next.allowed);
  EXPECT_EQ(next.decision.remaining, 0U);
  EXPECT_TRUE(old.expired());
  EXPECT_EQ(counted(*policy_->rules()[0], metrics::Verdict::allowed), 3U);
}

constexpr const char* kTwoLimits = R"(
domain: call_slow
descriptors:
  - key: a
    rate_limit: { unit: minute, requests_per_unit: 10 }
  - key: b
    rate_limit: { unit: minute, requests_per_unit: 10 }
)";

TEST_F(CallTest, APendingCallIsAnsweredLater) {
  policy_ = policy_of(kTwoLimits);
  SlowStore slow;
  {
    Asked asked = Asked("call_slow").with({{"a", "x"}}).with({{"b", "y"}});
    EXPECT_EQ(call_.start(asked.request(), policy_, slow, now_), store::Progress::pending);
  }  // the request's texts are gone
  policy_ = nullptr;
  ASSERT_NE(slow.pending, nullptr);
  EXPECT_EQ(slow.pending->charges[1].key, "y");
  EXPECT_EQ(answered_, 0);
  Decision allowed;
  allowed.limit = 10;
  allowed.remaining = 4;
  Decision denied = allowed;
  denied.allowed = false;
  denied.remaining = 0;
  denied.retry_after = Wait(seconds(9));
  slow.answer({allowed, denied}, false);
  EXPECT_EQ(answered_, 1);
  EXPECT_FALSE(call_.answer().allowed);
  EXPECT_EQ(call_.answer().decision.which, 1U);
  EXPECT_EQ(call_.answer().deciding->metric_path, "b");
  EXPECT_EQ(call_.answer().decision.retry_after, Wait(seconds(9)));
}

TEST_F(CallTest, ACancelledCallHearsNothingMore) {
  policy_ = policy_of(kTwoLimits);
  SlowStore slow;
  ask(Asked("call_slow").with({{"a", "x"}}), &slow);
  EXPECT_EQ(progress_, store::Progress::pending);
  call_.cancel();
  EXPECT_EQ(slow.cancelled, 1);
  call_.cancel();
  EXPECT_EQ(slow.cancelled, 1);
  EXPECT_EQ(answered_, 0);
  EXPECT_TRUE(ask(Asked("call_slow").with({{"a", "x"}})).allowed);  // and can be used again
}

TEST_F(CallTest, ADestroyedCallIsCancelled) {
  policy_ = policy_of(kTwoLimits);
  SlowStore slow;
  {
    Call call(*this, shard_);
    Asked asked = Asked("call_slow").with({{"a", "x"}});
    EXPECT_EQ(call.start(asked.request(), policy_, slow, now_), store::Progress::pending);
  }
  EXPECT_EQ(slow.cancelled, 1);
}

TEST_F(CallTest, AnAnswerInPlaceOfAFailedStoreHasNoFigures) {
  policy_ = policy_of(kTwoLimits);
  SlowStore slow;
  Decision deny;
  deny.allowed = false;
  deny.source = Source::fallback_deny;
  Decision allow;
  allow.source = Source::fallback_allow;
  Decision local;
  local.source = Source::fallback_local;
  local.limit = 10;
  local.remaining = 3;
  const auto both = [] { return Asked("call_slow").with({{"a", "x"}}).with({{"b", "y"}}); };

  ask(both(), &slow);
  slow.answer({deny, allow}, false);
  EXPECT_FALSE(call_.answer().allowed);
  EXPECT_FALSE(call_.answer().has_figures);
  EXPECT_EQ(call_.answer().decision.source, Source::fallback_deny);

  ask(both(), &slow);
  slow.answer({allow, allow}, true);
  EXPECT_TRUE(call_.answer().allowed);
  EXPECT_FALSE(call_.answer().has_figures);

  ask(both(), &slow);
  slow.answer({allow, local}, true);
  EXPECT_TRUE(call_.answer().has_figures);
  EXPECT_EQ(call_.answer().decision.which, 1U);
}

}  // namespace
}  // namespace sluice::limiter
