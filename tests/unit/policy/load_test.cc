// What a policy file means once it is loaded.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "policy/metric_path.h"
#include "policy/policy.h"
#include "tests/unit/policy/policy_text.h"

namespace sluice::policy {
namespace {

using namespace std::chrono_literals;

const Rule& only_rule(const std::shared_ptr<const Policy>& policy) {
  static const Rule kNone;
  EXPECT_NE(policy, nullptr);
  if (policy == nullptr || policy->rules().size() != 1) {
    ADD_FAILURE() << "expected one rule";
    return kNone;
  }
  return *policy->rules().front();
}

/// A policy with one limit, of what stands in its braces.
std::string with_limit(const std::string& limit) {
  return "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {" + limit + "}\n";
}

Limit limit_of(const std::string& limit) { return only_rule(policy_of(with_limit(limit))).counted.numbers; }

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
  EXPECT_EQ(rule.counted.on_store_failure, OnStoreFailure::local);
  EXPECT_EQ(rule.domain, "d");
  EXPECT_EQ(rule.label(), "k");
  EXPECT_NE(rule.counted.id, 0U);
  EXPECT_EQ(rule.slot, 0U);
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
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 10, algorithm: token_bucket").burst, 10U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 10, algorithm: gcra").algorithm, Algorithm::token_bucket);
}

TEST(Load, ReadsALeakyBucket) {
  const Limit limit = limit_of("unit: second, requests_per_unit: 10, algorithm: leaky_bucket, queue: 2");
  EXPECT_EQ(limit.algorithm, Algorithm::leaky_bucket);
  EXPECT_EQ(limit.queue, 2U);
}

TEST(Load, ReadsASlidingWindow) {
  EXPECT_EQ(limit_of("unit: minute, requests_per_unit: 10, algorithm: sliding_window").algorithm,
            Algorithm::sliding_window);
}

TEST(Load, ReadsWindowsOfAllKinds) {
  EXPECT_EQ(limit_of("period: 1h30m, requests_per_unit: 10").period, 90min);
  EXPECT_EQ(limit_of("period: 250ms, requests_per_unit: 10").period, 250ms);
  EXPECT_EQ(limit_of("period: 1us, requests_per_unit: 10").period, 1us);
  EXPECT_EQ(limit_of("period: 366d, requests_per_unit: 10").period, kMaxPeriod);
  EXPECT_EQ(limit_of("unit: day, requests_per_unit: 10, align: first_hit").align, Align::first_hit);
  EXPECT_EQ(limit_of("unit: day, requests_per_unit: 10, align: epoch").align, Align::epoch);
  EXPECT_TRUE(limit_of("unit: day, requests_per_unit: 10, count_denied: yes").count_denied);
  const Limit month = limit_of(
      "unit: month, requests_per_unit: 10000, algorithm: fixed_window, calendar: {timezone: Europe/Berlin, anchor_day: "
      "15}");
  EXPECT_EQ(month.align, Align::calendar);
  EXPECT_EQ(month.calendar, (Calendar{Calendar::Unit::month, "Europe/Berlin", 15}));
  EXPECT_EQ(limit_of("unit: week, requests_per_unit: 1, align: calendar").calendar,
            (Calendar{Calendar::Unit::week, "UTC", 1}));
}

TEST(Load, ShowsAPeriodThatIsAUnitAsThatUnit) {
  EXPECT_EQ(only_rule(policy_of(with_limit("period: 60s, requests_per_unit: 1"))).unit, Unit::minute);
  EXPECT_EQ(only_rule(policy_of(with_limit("period: 10s, requests_per_unit: 1"))).unit, Unit::unknown);
}

TEST(Load, AllowsMoreThan32BitsWhenTheAlgorithmIsNamed) {
  const auto policy = policy_of(with_limit("unit: second, requests_per_unit: 1000000000000, algorithm: token_bucket"));
  EXPECT_EQ(only_rule(policy).counted.numbers.rate, kMaxRate);
  EXPECT_EQ(only_rule(policy).requests_per_unit, 4294967295U);
}

TEST(Load, ReadsNumbersAsYaml11Does) {
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 0x1F").rate, 31U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 010").rate, 8U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 0o10").rate, 8U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 0b101").rate, 5U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: 10_000").rate, 10000U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: +7").rate, 7U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: !!int \"7\"").rate, 7U);
  EXPECT_EQ(limit_of("unit: second, requests_per_unit: -0").rate, 0U);
}

TEST(Load, ReadsBooleansAsYaml11Does) {
  const auto enforcement = [](const std::string& word) {
    return only_rule(policy_of("domain: d\ndescriptors: [{key: k, shadow_mode: " + word +
                               ", rate_limit: {unit: day, requests_per_unit: 1}}]"))
        .enforcement;
  };
  for (const std::string word : {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}) {
    EXPECT_EQ(enforcement(word), store::Enforcement::shadow) << word;
  }
  for (const std::string word : {"false", "no", "off", "n", "OFF", "~", "null", ""}) {
    EXPECT_EQ(enforcement(word), store::Enforcement::enforce) << word;
  }
}

TEST(Load, KeepsTextsAsTheyAreWritten) {
  const auto policy = policy_of(R"(
domain: 7
descriptors:
  - { key: 007, value: yes, rate_limit: { unit: day, requests_per_unit: 1, name: 0x10 } }
  - { key: a, value: "null", rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, value: null, rate_limit: { unit: day, requests_per_unit: 1 } }
)");
  EXPECT_EQ(path_of(*policy, "7", {{"007", "yes"}}), "007_yes");
  EXPECT_EQ(policy->rules()[0]->name, "0x10");
  EXPECT_EQ(path_of(*policy, "7", {{"a", "null"}}), "a_null");
  EXPECT_EQ(path_of(*policy, "7", {{"a", ""}}), "-");
  EXPECT_EQ(path_of(*policy, "7", {{"b", "anything"}}), "b");
}

TEST(Load, UnderstandsAnchorsAndMergeKeys) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: a
    rate_limit: &daily { unit: day, requests_per_unit: 1, name: first }
  - key: b
    rate_limit: *daily
  - key: c
    rate_limit:
      <<: *daily
      requests_per_unit: 3
)");
  ASSERT_EQ(policy->rules().size(), 3U);
  EXPECT_EQ(policy->rules()[1]->counted.numbers, policy->rules()[0]->counted.numbers);
  EXPECT_EQ(policy->rules()[2]->counted.numbers.rate, 3U);
  EXPECT_EQ(policy->rules()[2]->unit, Unit::day);
}

TEST(Load, ReadsTheSwitchesOfDescriptors) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - { key: a, quota_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, shadow_mode: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: c
    metadata: { team: shop, tier: 2, ratio: 0.5, tags: [x, "y\"z"], none: ~, on_call: yes, deep: { a: { b: 1 } } }
    rate_limit: { unlimited: true }
  - key: e
    rate_limit: { unit: day, requests_per_unit: 1, name: new, replaces: [ { name: old }, { name: older } ] }
  - { key: f, rate_limit: { unit: day, requests_per_unit: 1, name: old } }
  - { key: g, rate_limit: { unit: day, requests_per_unit: 1, name: older } }
)");
  const auto rules = policy->rules();
  ASSERT_EQ(rules.size(), 6U);
  EXPECT_EQ(rules[0]->enforcement, store::Enforcement::quota);
  EXPECT_EQ(rules[1]->enforcement, store::Enforcement::shadow);
  EXPECT_TRUE(rules[2]->unlimited);
  EXPECT_EQ(
      rules[2]->metadata,
      R"({"team":"shop","tier":2,"ratio":0.5,"tags":["x","y\"z"],"none":null,"on_call":true,"deep":{"a":{"b":1}}})");
  EXPECT_EQ(rules[3]->replaces, (std::vector<std::string>{"old", "older"}));
  for (std::uint32_t slot = 0; slot < rules.size(); ++slot) EXPECT_EQ(rules[slot]->slot, slot);
}

TEST(Load, InheritsOnStoreFailureFromTheDomain) {
  const auto policy = policy_of(R"(
domain: d
on_store_failure: deny
descriptors:
  - { key: a, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, rate_limit: { unit: day, requests_per_unit: 1, on_store_failure: allow } }
)");
  EXPECT_EQ(policy->rules()[0]->counted.on_store_failure, OnStoreFailure::deny);
  EXPECT_EQ(policy->rules()[1]->counted.on_store_failure, OnStoreFailure::allow);
}

TEST(Load, NamesStatisticsAsTheFieldDoes) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: a
    value: x
    descriptors:
      - { key: "b:c|d", value: "1.2.3.4:80", rate_limit: { unit: day, requests_per_unit: 1 } }
      - { key: v, value: "1.2.3", rate_limit: { unit: day, requests_per_unit: 1 } }
)");
  EXPECT_EQ(policy->rules()[0]->metric_path, "a_x.b_c_d_1_2_3_4_80");
  EXPECT_EQ(policy->rules()[1]->metric_path, "a_x.v_1.2.3");
}

TEST(Load, PutsValuesOfTheRequestIntoTheStatisticsWhenAsked) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - key: route
    value_to_metric: true
    descriptors:
      - { key: user, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: a
    descriptors:
      - { key: b, value: "x*", detailed_metric: true, rate_limit: { unit: day, requests_per_unit: 1 } }
  - key: s
    value: "s*"
    share_threshold: true
    detailed_metric: true
    rate_limit: { unit: day, requests_per_unit: 1 }
)");
  const auto metric = [&](std::vector<Entry> entries) {
    std::string key;
    const Rule* rule = policy->match(*policy->find_domain("d"), entries, key);
    return rule == nullptr ? "-" : metric_path_for(*rule, entries);
  };
  EXPECT_EQ(metric({{"route", "home"}, {"user", "ann"}}), "route_home.user");
  EXPECT_EQ(metric({{"route", ""}, {"user", "ann"}}), "route.user");
  EXPECT_EQ(metric({{"a", "1"}, {"b", "x|2"}}), "a_1.b_x_2");
  EXPECT_EQ(metric({{"s", "s1"}}), "s_s*");
}

TEST(Load, GivesLimitsIdentitiesThatOutliveNewNumbers) {
  const auto before = policy_of(
      "domain: d\ndescriptors: [{key: a, value: x, descriptors: [{key: b, rate_limit: {unit: day, requests_per_unit: "
      "1}}]}]");
  const auto after = policy_of(
      "domain: d\ndescriptors: [{key: a, value: x, descriptors: [{key: b, rate_limit: {unit: hour, requests_per_unit: "
      "2}}]}]");
  EXPECT_EQ(only_rule(before).counted.identity, "d/a=x/b;fw");
  EXPECT_EQ(only_rule(after).counted.identity, only_rule(before).counted.identity);
  EXPECT_EQ(only_rule(after).counted.id, only_rule(before).counted.id);
}

TEST(Load, GivesNoTwoLimitsOneIdentity) {
  const auto policy = policy_of(R"(
domain: "d/a"
descriptors:
  - { key: "b=c", rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: "b", value: "c d{}|", rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: "b/c", rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: b, descriptors: [ { key: c, rate_limit: { unit: day, requests_per_unit: 1 } } ] }
)");
  std::vector<std::string> identities;
  for (const Rule* rule : policy->rules()) identities.push_back(rule->counted.identity);
  EXPECT_EQ(identities, (std::vector<std::string>{"d%2Fa/b%3Dc;fw", "d%2Fa/b=c%20d%7B%7D%7C;fw", "d%2Fa/b%2Fc;fw",
                                                  "d%2Fa/b/c;fw"}));
}

TEST(Load, BoundsTheLengthOfIdentities) {
  const std::string long_key(1'000, 'k');
  const auto policy = policy_of("domain: d\ndescriptors:\n  - {key: " + long_key +
                                "a, rate_limit: {unit: day, requests_per_unit: 1}}\n  - {key: " + long_key +
                                "b, rate_limit: {unit: day, requests_per_unit: 1}}\n");
  EXPECT_LE(policy->rules()[0]->counted.identity.size(), 160U);
  EXPECT_NE(policy->rules()[0]->counted.identity, policy->rules()[1]->counted.identity);
}

TEST(Load, MakesRulesForLimitsThatRequestsBring) {
  const std::vector<Entry> entries{{"a", "x y"}, {"b", ""}};
  std::string key;
  const Rule rule = make_override_rule("d", entries, {.requests_per_unit = 7, .unit = Unit::hour}, key);
  EXPECT_EQ(key, "a=x%20y|b=%");
  EXPECT_EQ(rule.counted.identity, "d//hour");
  EXPECT_NE(rule.counted.id, 0U);
  EXPECT_EQ(rule.counted.numbers.algorithm, Algorithm::fixed_window);
  EXPECT_EQ(rule.counted.numbers.rate, 7U);
  EXPECT_EQ(rule.counted.numbers.period, 1h);
  EXPECT_EQ(rule.requests_per_unit, 7U);
  EXPECT_EQ(rule.unit, Unit::hour);
  EXPECT_EQ(rule.label(), "override_hour");
  EXPECT_EQ(rule.enforcement, store::Enforcement::enforce);
  std::string other_key;
  const std::vector<Entry> swapped{{"a=x", "y"}, {"b", ""}};
  EXPECT_EQ(make_override_rule("d", swapped, {.requests_per_unit = 9, .unit = Unit::hour}, other_key).counted.id,
            rule.counted.id);
  EXPECT_NE(other_key, key);
}

TEST(Load, ReadsFilesWithAMarkAndForeignLineEnds) {
  const auto policy = policy_of(
      "\xEF\xBB\xBF"
      "domain: d\r\ndescriptors:\r\n  - key: k\r\n    rate_limit:\r\n      unit: day\r\n      requests_per_unit: "
      "1\r\n");
  EXPECT_EQ(only_rule(policy).unit, Unit::day);
  EXPECT_EQ(findings_of("\xEF\xBB\xBF"
                        "domain: d\r\nx: 1\r\n"),
            "p.yaml:2:1: error: unknown key \"x\" at the top of the file\n");
}

TEST(Load, AsksTheStoreWhetherItCanKeepALimit) {
  const std::vector<SourceText> texts{{"p.yaml", with_limit("unit: day, requests_per_unit: 5")}};
  LoadOptions options;
  options.refuse_limit = [](const Limit& limit) -> std::optional<std::string> {
    if (limit.rate < 5) return std::nullopt;
    return "too many";
  };
  const Loaded loaded = load_texts(texts, options);
  EXPECT_EQ(loaded.policy, nullptr);
  EXPECT_EQ(findings_of(loaded), "p.yaml:4:17: error: too many\n");
}

TEST(Load, ReadsTheExamples) {
  const std::vector<std::filesystem::path> paths{std::filesystem::path(SLUICE_SOURCE_DIR) / "examples/policies"};
  const Loaded loaded = load(paths);
  ASSERT_NE(loaded.policy, nullptr) << findings_of(loaded);
  EXPECT_EQ(findings_of(loaded), "");
  const Matched matched = match(*loaded.policy, "shop", {{"user", "42"}});
  ASSERT_NE(matched.rule, nullptr);
  EXPECT_EQ(matched.rule->name, "ArticleCreate");
  EXPECT_EQ(matched.rule->counted.numbers.burst, 30U);
  EXPECT_EQ(matched.key, "42");
}

TEST(Load, public_report_71) {
  const auto policy = policy_of(R"(
domain: d
descriptors:
  - { key: A, rate_limit: { unlimited: true } }
  - { key: B, rate_limit: { unit: second, requests_per_unit: 5 } }
)");
  EXPECT_TRUE(match(*policy, "d", {{"A", ""}}).rule->unlimited);
  EXPECT_FALSE(match(*policy, "d", {{"B", ""}}).rule->unlimited);
}

// The loader's part: the length of the windows.
TEST(Load, public_report_73) {
  const auto period = [](const std::string& unit) { return limit_of("requests_per_unit: 5, unit: " + unit).period; };
  EXPECT_EQ(period("second"), 1s);
  EXPECT_EQ(period("minute"), 60s);
  EXPECT_EQ(period("hour"), 3600s);
  EXPECT_EQ(period("day"), 86400s);
  EXPECT_EQ(period("week"), 7 * 86400s);
  EXPECT_EQ(period("month"), 30 * 86400s);
  EXPECT_EQ(period("year"), 365 * 86400s);
  EXPECT_EQ(limit_of("unit: month, requests_per_unit: 5").align, Align::epoch);
}

TEST(Load, public_report_75) {
  const auto policy = policy_of(R"(
name: envoy-gateway
domain: d
descriptors:
  - key: a
    rate_limit: null
    descriptors: []
  - key: b
    rate_limit: { unit: MONTH, requests_per_unit: 4294967295 }
    descriptors:
)");
  EXPECT_EQ(path_of(*policy, "d", {{"a", "x"}}), "-");
  const Rule* rule = match(*policy, "d", {{"b", "x"}}).rule;
  ASSERT_NE(rule, nullptr);
  EXPECT_EQ(rule->unit, Unit::month);
  EXPECT_EQ(rule->requests_per_unit, 4294967295U);
  EXPECT_EQ(findings_of(with_limit("unit: month, requests_per_unit: 4294967296")),
            "p.yaml:4:50: error: `requests_per_unit` must be a whole number from 0 to 4294967295, found 4294967296\n");
}

}  // namespace
}  // namespace sluice::policy
