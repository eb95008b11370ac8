// What a policy file means once it is loaded.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "policy/policy.h"
#include "tests/unit/policy/policy_text.h"

namespace sluice::policy {
namespace {

using namespace std::chrono_literals;

const Rule& only_rule(const std::shared_ptr<const Policy>& policy) {
  static const Rule none;
  EXPECT_NE(policy, nullptr);
  if (policy == nullptr || policy->rules().size() != 1) {
    ADD_FAILURE() << "expected one rule";
    return none;
  }
  return *policy->rules().front();
}

/// A policy with one limit, of what stands in its braces.
std::string with_limit(const std::string& limit) {
  return "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {" + limit + "}\n";
}

TEST(Load, ReadsAPlainFileAsFixedWindowsAlignedToTheEpoch) {
  const auto policy = policy_of(with_limit("unit: minute, requests_per_unit: 5"));
  const Rule& rule = only_rule(policy);
  EXPECT_EQ(rule.counted.numbers.algorithm, Algorithm::fixed_window);
  EXPECT_EQ(rule.counted.numbers.align, Align::epoch);
  EXPECT_EQ(rule.counted.numbers.rate, 5U);
  EXPECT_EQ(rule.counted.numbers.period, 60s);
  EXPECT_FALSE(rule.counted.numbers.count_denied);
  EXPECT_EQ(rule.unit, Unit::minute);
  EXPECT_EQ(rule.requests_per_unit, 5U);
  EXPECT_EQ(rule.enforcement, store::Enforcement::enforce);
  EXPECT_EQ(rule.domain, "d");
  EXPECT_EQ(rule.label(), "k");
  EXPECT_NE(rule.counted.id, 0U);
}

TEST(Load, ReadsATokenBucket) {
  const auto policy =
      policy_of(with_limit("unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30, name: N"));
  const Rule& rule = only_rule(policy);
  EXPECT_EQ(rule.counted.numbers.algorithm, Algorithm::token_bucket);
  EXPECT_EQ(rule.counted.numbers.rate, 10U);
  EXPECT_EQ(rule.counted.numbers.period, 1s);
  EXPECT_EQ(rule.counted.numbers.burst, 30U);
  EXPECT_EQ(rule.label(), "N");
}

TEST(Load, ReadsTheExamples) {
  const std::vector<std::filesystem::path> paths{std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/policies"};
  const Loaded loaded = load(paths);
  ASSERT_NE(loaded.policy, nullptr) << findings_of(loaded);
  EXPECT_EQ(findings_of(loaded), "");
  const Matched matched = match(*loaded.policy, "shop", {{"user", "42"}});
  ASSERT_NE(matched.rule, nullptr);
  EXPECT_EQ(matched.rule->name, "ArticleCreate");
  EXPECT_EQ(matched.key, "42");
}

}  // namespace
}  // namespace sluice::policy
