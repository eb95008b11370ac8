// What is said of policy files that are wrong: the texts as a person sees them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy.h"
#include "tests/unit/policy/policy_text.h"

namespace sluice::policy {
namespace {

/// A policy with one limit, of what stands in its braces: they begin at 4:18.
std::string with_limit(const std::string& limit) {
  return "domain: d\ndescriptors:\n  - key: k\n    rate_limit: {" + limit + "}\n";
}

std::string limit_findings(const std::string& limit) { return findings_of(with_limit(limit)); }

TEST(LoadErrors, AreAllToldAtOnce) {
  const Loaded loaded = load_text(R"(domain: shop
descriptors:
  - key: user
    rate_limit:
      unit: fortnight
      requests_per_units: 10
  - value: x
    rate_limt: {}
  - key: user
    shadow_mode: maybe
    descriptors:
      - key: path
        rate_limit: { unit: second, requests_per_unit: -1 }
)");
  EXPECT_EQ(loaded.policy, nullptr);
  EXPECT_EQ(findings_of(loaded),
            R"(p.yaml:5:13: error: `unit` must be one of second, minute, hour, day, week, month, year, found "fortnight"
p.yaml:6:7: error: unknown key "requests_per_units" in `rate_limit`; did you mean `requests_per_unit`?
p.yaml:7:5: error: a descriptor needs a `key`, found none
p.yaml:8:5: error: unknown key "rate_limt" in a descriptor; did you mean `rate_limit`?
p.yaml:9:5: error: the descriptor "user" is already on this level, at line 3
p.yaml:10:18: error: `shadow_mode` must be true or false, found the text "maybe"
p.yaml:13:56: error: `requests_per_unit` must be a whole number from 0 to 4294967295, found -1
)");
}

TEST(LoadErrors, NameTheFieldAndWhatItTakes) {
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: many"),
      "p.yaml:4:48: error: `requests_per_unit` must be a whole number from 0 to 4294967295, found the text \"many\"\n");
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: \"5\""),
      "p.yaml:4:48: error: `requests_per_unit` must be a whole number from 0 to 4294967295, found the quoted text "
      "\"5\"\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 1.5"),
            "p.yaml:4:48: error: `requests_per_unit` must be a whole number from 0 to 4294967295, found 1.5\n");
  EXPECT_EQ(limit_findings("unit: [day], requests_per_unit: 5"),
            "p.yaml:4:24: error: `unit` must be a text, found a list\n");
  EXPECT_EQ(
      limit_findings("requests_per_unit: 5"),
      "p.yaml:4:17: error: expected a `unit` (second, minute, hour, day, week, month, year) or a `period` (such as "
      "10s), found neither\n");
  EXPECT_EQ(limit_findings("unit: day, period: 1d, requests_per_unit: 5"),
            "p.yaml:4:37: error: give `unit` or `period`, found both\n");
  EXPECT_EQ(limit_findings("period: 10, requests_per_unit: 5"),
            "p.yaml:4:26: error: `period`: expected a duration such as 20ms, 1.5s or 1m30s, found '10'\n");
  EXPECT_EQ(limit_findings("period: 367d, requests_per_unit: 5"),
            "p.yaml:4:26: error: `period` must be from 1us to 366d in whole microseconds, found \"367d\"\n");
  EXPECT_EQ(limit_findings("period: 1500ns, requests_per_unit: 5"),
            "p.yaml:4:26: error: `period` must be from 1us to 366d in whole microseconds, found \"1500ns\"\n");
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: 5, algorithm: token_buckt"),
      "p.yaml:4:62: error: `algorithm` must be one of token_bucket, gcra, leaky_bucket, fixed_window, sliding_window, "
      "sliding_log, concurrency, found \"token_buckt\"; did you mean token_bucket?\n");
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: 1000000000001, algorithm: token_bucket"),
      "p.yaml:4:48: error: `requests_per_unit` must be a whole number from 0 to 1000000000000, found 1000000000001\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 0, algorithm: leaky_bucket"),
            "p.yaml:4:48: error: `requests_per_unit` must be a whole number from 1 to 1000000000000, found 0\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, on_store_failure: open"),
            "p.yaml:4:69: error: `on_store_failure` must be one of local, allow, deny, found \"open\"\n");
}

TEST(LoadErrors, RefuseWhatTheAlgorithmHasNoUseFor) {
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: 5, burst: 5"),
      "p.yaml:4:51: error: `burst` has no use with algorithm fixed_window (the default); it belongs to token_bucket\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, algorithm: gcra, align: epoch"),
            "p.yaml:4:68: error: `align` has no use with algorithm gcra; it belongs to fixed_window\n");
  EXPECT_EQ(
      limit_findings(
          "unit: day, requests_per_unit: 5, algorithm: token_bucket, queue: 3, slots: 2, ttl: 1s, count_denied: "
          "true, calendar: {}, allow_large_log: true"),
      "p.yaml:4:76: error: `queue` has no use with algorithm token_bucket; it belongs to leaky_bucket\n"
      "p.yaml:4:86: error: `slots` has no use with algorithm token_bucket; it belongs to sliding_window\n"
      "p.yaml:4:96: error: `ttl` has no use with algorithm token_bucket; it belongs to concurrency\n"
      "p.yaml:4:105: error: `count_denied` has no use with algorithm token_bucket; it belongs to fixed_window\n"
      "p.yaml:4:125: error: `calendar` has no use with algorithm token_bucket; it belongs to fixed_window\n"
      "p.yaml:4:139: error: `allow_large_log` has no use with algorithm token_bucket; it belongs to sliding_log\n");
  EXPECT_EQ(limit_findings("unlimited: true, burst: 5"), "p.yaml:4:35: error: `burst` has no use beside `unlimited`\n");
}

TEST(LoadErrors, SayWhatIsNotBuilt) {
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, lease: {max_share: 10%}"),
            "p.yaml:4:51: error: `lease` is not supported by this version\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, timeout: 5ms, local_share: 0.5"),
            "p.yaml:4:51: error: `timeout` is not supported by this version\n"
            "p.yaml:4:65: error: `local_share` is not supported by this version\n");
}

TEST(LoadErrors, CheckCalendars) {
  EXPECT_EQ(limit_findings("unit: hour, requests_per_unit: 5, calendar: {}"),
            "p.yaml:4:24: error: `unit` in a calendar must be one of day, week, month, year, found hour\n");
  EXPECT_EQ(limit_findings("period: 1d, requests_per_unit: 5, align: calendar"),
            "p.yaml:4:26: error: `period` has no use in a calendar; give a `unit` from day to year\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, align: epoch, calendar: {timezon: UTC, anchor_day: 32}"),
            "p.yaml:4:58: error: `align` beside `calendar` must be calendar, found epoch\n"
            "p.yaml:4:76: error: unknown key \"timezon\" in `calendar`; did you mean `timezone`?\n"
            "p.yaml:4:102: error: `anchor_day` must be a whole number from 1 to 31, found 32\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, calendar: {anchor_day: 3}"),
            "p.yaml:4:62: error: `anchor_day` is for months, found unit day\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, calendar: UTC"),
            "p.yaml:4:61: error: `calendar` must be a map with `timezone` and `anchor_day`, found the text \"UTC\"\n");
  const std::string unknown_zone =
      limit_findings("unit: day, requests_per_unit: 5, calendar: {timezone: Europe/Atlantis}");
  EXPECT_TRUE(unknown_zone.starts_with("p.yaml:4:61: error: ")) << unknown_zone;
  EXPECT_NE(unknown_zone.find("Europe/Atlantis"), std::string::npos) << unknown_zone;
}

TEST(LoadErrors, CheckBuckets) {
  EXPECT_EQ(
      limit_findings("unit: day, requests_per_unit: 0, algorithm: token_bucket"),
      "p.yaml:4:48: error: a token bucket needs a `burst` of at least 1, found 0 (from `requests_per_unit`); to deny "
      "every request use algorithm fixed_window\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, algorithm: token_bucket, burst: 0"),
            "p.yaml:4:83: error: `burst` must be a whole number from 1 to 1000000000000000, found 0\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 20000, algorithm: sliding_log").substr(0, 98),
            "p.yaml:4:48: error: a sliding log keeps an entry for each request: above 10000 it needs `allow_lar");
}

// What the algorithm floor cannot run is told at the place of the field that it names.
TEST(LoadErrors, PassOnWhatTheAlgorithmsSay) {
  EXPECT_EQ(
      limit_findings("requests_per_unit: 5, algorithm: concurrency"),
      "p.yaml:4:17: error: algorithm concurrency gives leases, which Envoy's RateLimitService, /json and forward "
      "auth cannot give back; expected `leases: true` beside `domain`, which closes the domain's leases to them, and "
      "callers that acquire and release\n");
  EXPECT_EQ(findings_of("domain: d\nleases: true\ndescriptors:\n  - key: k\n    rate_limit: { requests_per_unit: 5, "
                        "algorithm: concurrency, ttl: 10s }\n"),
            "");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 5, algorithm: sliding_log"), "");
  EXPECT_EQ(limit_findings("period: 10s, requests_per_unit: 5, algorithm: sliding_window, slots: 2"), "");
  const std::string slots = limit_findings("period: 10s, requests_per_unit: 5, algorithm: sliding_window, slots: 3");
  EXPECT_TRUE(slots.starts_with("p.yaml:4:87: error: `slots` must split the period into whole µs")) << slots;
}

TEST(LoadErrors, NameBothPlacesOfADomain) {
  const std::vector<SourceText> texts{{"a.yaml", "domain: shop"}, {"b.yaml", "\ndescriptors: []\ndomain: shop"}};
  const Loaded loaded = load_texts(texts);
  EXPECT_EQ(loaded.policy, nullptr);
  EXPECT_EQ(findings_of(loaded),
            "b.yaml:3:9: error: the domain \"shop\" is already that of a.yaml:1:9; a domain is one file\n");
}

TEST(LoadErrors, PointAtTheFormOfTheFile) {
  EXPECT_EQ(findings_of(""), "p.yaml: error: the file is empty; expected a `domain` and its `descriptors`\n");
  EXPECT_EQ(findings_of("# nothing\n---\n"),
            "p.yaml: error: the file is empty; expected a `domain` and its `descriptors`\n");
  EXPECT_EQ(findings_of("- a\n"),
            "p.yaml:1:1: error: expected a map with a `domain` and its `descriptors`, found a list\n");
  EXPECT_EQ(findings_of("domain: a\n---\ndomain: b\n"),
            "p.yaml:3:1: error: expected one YAML document, found 2; give each domain a file of its own\n");
  EXPECT_EQ(findings_of("---\ndomain: a\n---\n"),
            "p.yaml:2:9: warning: the domain \"a\" has no limits: nothing is denied\n");
  EXPECT_EQ(
      findings_of("apiVersion: v1\nkind: ConfigMap\ndata: {}\n"),
      "p.yaml:1:1: error: this is a Kubernetes object; expected the policy itself. Mount the ConfigMap and give its "
      "directory, or save each entry of its `data` as a file\n");
  EXPECT_EQ(findings_of("domain: d\ndescriptors: [a, {key: k}, null]\n"),
            "p.yaml:2:15: error: each item of `descriptors` must be a map, found the text \"a\"\n"
            "p.yaml:2:28: error: each item of `descriptors` must be a map, found nothing\n");
  EXPECT_EQ(
      findings_of("domain: d\n? [a]\n: b\n7: c\n"),
      "p.yaml:2:3: error: a key must be a name, found a list\np.yaml:4:1: error: a key must be a name, found 7\n");
  for (const std::string text : {"domain: d\ndescriptors:\n\t- key: k\n", "domain: d\ndescriptors:\n\tkey: k\n",
                                 "domain: d\nkey:\n\t{a: 1,\nb", "a: b\nx:\n\tc: d\ne: f"}) {
    EXPECT_EQ(findings_of(text), "p.yaml:3:1: error: a tab in the indentation: YAML takes spaces only\n") << text;
  }
}

TEST(LoadErrors, WarnOfKeysThatDoNothing) {
  EXPECT_EQ(findings_of(R"(domain: d
name: x
descriptors:
  - key: a
    unit: day
    shadow_mode: true
    quota_mode: true
    detailed_metric: true
    metadata: {}
  - key: b
    shadow_mode: true
    quota_mode: true
    detailed_metric: true
    value_to_metric: true
    rate_limit:
      unlimited: true
      unit: whatever
      requests_per_unit: 4
      replaces: [ { name: nobody } ]
)"),
            R"(p.yaml:2:1: warning: `name` does nothing at the top of the file; it belongs in `rate_limit`
p.yaml:5:5: warning: `unit` does nothing in a descriptor; it belongs in `rate_limit`
p.yaml:6:5: warning: `shadow_mode` does nothing without a `rate_limit` beside it
p.yaml:7:5: warning: `quota_mode` does nothing without a `rate_limit` beside it
p.yaml:8:5: warning: `detailed_metric` does nothing without a `rate_limit` beside it
p.yaml:9:5: warning: `metadata` does nothing without a `rate_limit` beside it
p.yaml:12:5: warning: `quota_mode` does nothing beside `shadow_mode`
p.yaml:14:5: warning: `value_to_metric` does nothing beside `detailed_metric`
p.yaml:16:7: warning: `replaces` names "nobody", but no limit of this domain is named so
p.yaml:17:13: warning: `unit` does nothing beside `unlimited`
p.yaml:18:26: warning: `requests_per_unit` does nothing beside `unlimited`
)");
}

TEST(LoadErrors, WarnOfSmallBursts) {
  EXPECT_EQ(
      limit_findings("unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 20"),
      "p.yaml:4:88: warning: a burst of 20 is less than what comes back in one second (100): requests that come in "
      "bunches are denied at rates well below the limit\n");
  EXPECT_EQ(limit_findings("unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 100"), "");
  EXPECT_EQ(limit_findings("unit: minute, requests_per_unit: 600, algorithm: token_bucket, burst: 10"), "");
}

TEST(LoadErrors, WarnOfNamesGivenTwice) {
  const Loaded loaded = load_text(with_limit("unit: day, unit: hour, requests_per_unit: 1"));
  ASSERT_NE(loaded.policy, nullptr);
  EXPECT_EQ(loaded.policy->rules()[0]->unit, Unit::hour);
  EXPECT_EQ(findings_of(loaded), "p.yaml:4:29: warning: `unit` is given twice here; the last one counts\n");
}

TEST(LoadErrors, RefuseSwitchesOfSluiceInOtherPlaces) {
  EXPECT_EQ(findings_of("domain: d\nburst: 5\ndescriptors: [{key: k, algorithm: gcra}]\n"),
            "p.yaml:2:1: error: `burst` does not belong at the top of the file, but in `rate_limit`\n"
            "p.yaml:3:24: error: `algorithm` does not belong in a descriptor, but in `rate_limit`\n");
}

// A key source that does not exist is refused, never ignored.
TEST(LoadErrors, public_report_50) {
  EXPECT_EQ(findings_of("domain: d\ndescriptors: [{key: k, source: user}]\n"),
            "p.yaml:2:24: error: unknown key \"source\" in a descriptor\n");
}

TEST(LoadErrors, public_report_69) {
  const std::vector<SourceText> texts{
      {"good.yaml", "domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1}}]"},
      {"again.yaml", "domain: d"}};
  const Loaded loaded = load_texts(texts);
  EXPECT_EQ(loaded.policy, nullptr);
  EXPECT_EQ(findings_of(loaded),
            "again.yaml:1:9: error: the domain \"d\" is already that of good.yaml:1:9; a domain is one file\n");
}

TEST(LoadErrors, public_report_70) {
  EXPECT_EQ(findings_of(R"(domain: d
descriptors:
  - { key: messaging, value: foo }
  - { key: messaging, value: foo, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: a_b }
  - { key: a, value: b }
)"),
            "p.yaml:4:5: error: the descriptor \"messaging_foo\" is already on this level, at line 3\n"
            "p.yaml:6:5: error: the descriptor \"a_b\" is already on this level, at line 5\n");
}

TEST(LoadErrors, public_report_74) {
  EXPECT_EQ(limit_findings("unit: foo, requests_per_unit: 1"),
            "p.yaml:4:24: error: `unit` must be one of second, minute, hour, day, week, month, year, found \"foo\"\n");
  EXPECT_EQ(
      limit_findings("unit: unknown, requests_per_unit: 1"),
      "p.yaml:4:24: error: `unit` must be one of second, minute, hour, day, week, month, year, found \"unknown\"\n");
  EXPECT_EQ(limit_findings("unlimited: true, unit: day"),
            "p.yaml:4:41: error: an unlimited limit has no `unit`, found \"day\"; remove one of the two\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 1, name: me, replaces: [{name: me}, {name: \"\"}, {}]"),
            "p.yaml:4:72: error: a limit cannot replace itself: \"me\" is its own name\n"
            "p.yaml:4:84: error: an item of `replaces` needs the `name` of another limit, found none\n"
            "p.yaml:4:96: error: an item of `replaces` needs the `name` of another limit, found none\n");
  EXPECT_EQ(limit_findings("unit: day, requests_per_unit: 1, foo: 1"),
            "p.yaml:4:51: error: unknown key \"foo\" in `rate_limit`\n");
  EXPECT_EQ(findings_of("domain: d\ndescriptors: [{key: k, value: 1.5}]"),
            "p.yaml:2:31: error: `value` must be a text, found the number 1.5; put it in quotes\n");
  EXPECT_EQ(findings_of("domain: d\ndescriptors: [{key: \"\"}]"),
            "p.yaml:2:21: error: a descriptor needs a `key`, found none\n");
  EXPECT_EQ(findings_of("domain: \"\"\n"), "p.yaml:1:9: error: `domain` must be a name, found none\n");
  EXPECT_EQ(findings_of("descriptors: []\n"), "p.yaml:1:1: error: `domain` must be a name, found none\n");
  for (const std::string unit : {"SECOND", "second", "Second", "sEcOnD"}) {
    EXPECT_EQ(limit_findings("requests_per_unit: 1, unit: " + unit), "");
  }
  EXPECT_EQ(
      findings_of("domain: d\ndescriptors: [{key: k, value: v, share_threshold: true}]"),
      "p.yaml:2:34: error: `share_threshold` is for patterns: expected a `*` in the key or value, found \"k_v\"\n");
}

TEST(LoadErrors, ABodyThatIsSentAsJsonIsJsonOnceFilledIn) {
  const auto said = [](const std::string& body, const std::string& more = {}) {
    return limit_findings("unit: day, requests_per_unit: 5, body: '" + body + "'" + more);
  };
  for (const char* const good : {
           R"({"name":"{{name}}","limit":{{limit}},"retry":{{retry_after}},"reset":[{{reset_after}}]})",
           R"({"text":"{{retry_after}} of {{limit}}"})",
           "plain, {{retry_after}} s",
       }) {
    EXPECT_EQ(said(good), "") << good;
  }
  const std::string warning =
      "p.yaml:4:57: warning: `body` is sent as \"application/json\", but is no JSON once its figures are filled in (a "
      "time may be null, and {{name}} stands within quotes)\n";
  for (const char* const bad : {
           R"({"name":{{name}}})",
           R"({"limit":{{limit}},})",
           R"({"limit":{{limit}})",
           R"({"wait":1{{retry_after}}})",
           R"({"wait":{{retry_after}}s})",
           R"([{{limit}}] x)",
       }) {
    EXPECT_EQ(said(bad), warning) << bad;
  }
  EXPECT_EQ(said("wait", ", content_type: application/json"), warning);
  EXPECT_EQ(said("wait", ", content_type: text/plain"), "");
}

}  // namespace
}  // namespace sluice::policy
