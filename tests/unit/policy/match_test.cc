// Which rule a descriptor finds, and under which key it is counted.
#include <gtest/gtest.h>

#include <string>

#include "policy/key_encoding.h"
#include "policy/policy.h"
#include "tests/unit/policy/policy_text.h"

namespace sluice::policy {
namespace {

TEST(Match, TakesTheExactValueThenWildcardsInFileOrderThenTheBareKey) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - { key: path, rate_limit: { unit: second, requests_per_unit: 1 } }
  - { key: path, value: /a*, rate_limit: { unit: second, requests_per_unit: 2 } }
  - { key: path, value: /ab*, rate_limit: { unit: second, requests_per_unit: 3 } }
  - { key: path, value: /abc, rate_limit: { unit: second, requests_per_unit: 4 } }
)");
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/abc"}}), "path_/abc");
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/abcd"}}), "path_/a*");
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/x"}}), "path");
  EXPECT_EQ(path_of(*policy, "d", {{"path", ""}}), "path");
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/ab*"}}), "path_/ab*");
  EXPECT_EQ(path_of(*policy, "d", {{"other", "/abc"}}), "-");
  EXPECT_EQ(path_of(*policy, "d", {}), "-");
  EXPECT_EQ(policy->find_domain("e"), nullptr);
}

TEST(Match, CountsOnlyAtTheLastEntry) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: a
    rate_limit: { unit: second, requests_per_unit: 1 }
    descriptors:
      - key: b
        descriptors:
          - { key: c, rate_limit: { unit: second, requests_per_unit: 1 } }
)");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "1"}}), "a");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "1"}, {"b", "2"}}), "-");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "1"}, {"b", "2"}, {"c", "3"}}), "a.b.c");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}), "-");
  EXPECT_EQ(path_of(*policy, "d", {{"b", "2"}, {"a", "1"}}), "-");
}

TEST(Match, DoesNotTurnBackFromAnExactBranch) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: a
    value: x
    descriptors:
      - { key: b, value: y, rate_limit: { unit: second, requests_per_unit: 1 } }
  - key: a
    descriptors:
      - { key: b, rate_limit: { unit: second, requests_per_unit: 1 } }
)");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "x"}, {"b", "y"}}), "a_x.b_y");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "x"}, {"b", "z"}}), "-");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "w"}, {"b", "z"}}), "a.b");
}

TEST(Match, AllowsAWildcardInTheKey) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - { key: "x-*", rate_limit: { unit: second, requests_per_unit: 1 } }
)");
  const Matched one = match(*policy, "d", {{"x-a", "1"}});
  const Matched two = match(*policy, "d", {{"x-b", "1"}});
  ASSERT_NE(one.rule, nullptr);
  EXPECT_EQ(one.rule, two.rule);
  EXPECT_NE(one.key, two.key);
  EXPECT_EQ(path_of(*policy, "d", {{"y-a", "1"}}), "-");
}

TEST(Match, SharesOneCounterWhenAsked) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: files
    value: f/*
    share_threshold: true
    rate_limit: { unit: second, requests_per_unit: 1 }
    descriptors:
      - { key: user, rate_limit: { unit: second, requests_per_unit: 1 } }
)");
  const Matched a = match(*policy, "d", {{"files", "f/a"}});
  const Matched b = match(*policy, "d", {{"files", "f/b"}});
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.key, "f/*");
  const Matched ann = match(*policy, "d", {{"files", "f/a"}, {"user", "ann"}});
  const Matched ann_too = match(*policy, "d", {{"files", "f/b"}, {"user", "ann"}});
  const Matched bob = match(*policy, "d", {{"files", "f/a"}, {"user", "bob"}});
  EXPECT_EQ(ann.key, ann_too.key);
  EXPECT_NE(ann.key, bob.key);
}

TEST(Match, ASharedThresholdSharesValuesNotKeys) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: "tenant_*"
    value: "v*"
    share_threshold: true
    rate_limit: { unit: day, requests_per_unit: 3 }
)");
  const Matched one = match(*policy, "d", {{"tenant_a", "v1"}});
  EXPECT_EQ(one.key, match(*policy, "d", {{"tenant_a", "v2"}}).key);
  EXPECT_NE(one.key, match(*policy, "d", {{"tenant_b", "v1"}}).key);
}

TEST(Match, AppendsToTheKeyAndLeavesItAloneWithoutARule) {
  const auto policy = policy_of("{domain: d, descriptors: [{key: u, rate_limit: {unit: day, requests_per_unit: 1}}]}");
  std::string keys = "before";
  const std::vector<Entry> known{{"u", "7"}};
  const std::vector<Entry> unknown{{"v", "7"}};
  ASSERT_NE(policy->match(*policy->find_domain("d"), known, keys), nullptr);
  EXPECT_EQ(keys, "before7");
  EXPECT_EQ(policy->match(*policy->find_domain("d"), unknown, keys), nullptr);
  EXPECT_EQ(keys, "before7");
}

// A rule for the key `type_example` has nothing to do with the entry (type, example): pairs are compared, not joined
// text.
TEST(Match, public_report_41) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - { key: type_example, rate_limit: { unit: day, requests_per_unit: 1 } }
)");
  EXPECT_EQ(path_of(*policy, "d", {{"type", "example"}}), "-");
  EXPECT_EQ(path_of(*policy, "d", {{"type_example", ""}}), "type_example");
}

TEST(Match, public_report_68) {
  const auto policy = policy_of("{domain: d, descriptors: []}");
  EXPECT_EQ(policy->find_domain("unknown"), nullptr);
  EXPECT_NE(policy->find_domain("d"), nullptr);
}

TEST(Match, public_report_72) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: path
    value: /api/*
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: path
    value: /api/exact
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: path
    rate_limit: { unit: second, requests_per_unit: 1 }
  - key: tenant
    descriptors:
      - key: path
        value: /api/*
        rate_limit: { unit: second, requests_per_unit: 1 }
)");
  const Matched feed = match(*policy, "d", {{"path", "/api/feed"}});
  const Matched x = match(*policy, "d", {{"path", "/api/x"}});
  ASSERT_NE(feed.rule, nullptr);
  EXPECT_EQ(feed.rule->metric_path, "path_/api/*");
  EXPECT_EQ(feed.rule, x.rule);
  EXPECT_NE(feed.key, x.key);
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/ap"}}), "path");
  EXPECT_EQ(path_of(*policy, "d", {{"path", "/api/exact"}}), "path_/api/exact");
  EXPECT_EQ(path_of(*policy, "d", {{"tenant", "t"}, {"path", "/api/feed"}}), "tenant.path_/api/*");
  EXPECT_EQ(path_of(*policy, "d", {{"tenant", "t"}, {"path", "/ap"}}), "-");
}

}  // namespace
}  // namespace sluice::policy
