// What is said about `requests:` that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/request/mapping.h"

namespace sluice::request {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kGood = "  trusted_proxies: []\n  rate_limits: [ { actions: [ remote_address ] } ]\n";

std::string findings(std::string_view requests) { return KeyFolder().findings(requests); }
/// One action.
std::string of_action(std::string_view action) {
  return findings("  trusted_proxies: []\n  rate_limits:\n    - actions:\n        - " + std::string(action) + "\n");
}

TEST(RequestsReader, what_is_right_has_no_findings) { EXPECT_EQ(findings(kGood), ""); }

TEST(RequestsReader, names_that_nobody_knows) {
  EXPECT_EQ(findings(std::string(kGood) + "  trusted_proxys: []\n"),
            "p.yaml:5:3: error: unknown key \"trusted_proxys\" in `requests`; did you mean `trusted_proxies`?\n");
  EXPECT_EQ(of_action("remote_adress: {}"),
            "p.yaml:6:11: error: unknown action \"remote_adress\"; did you mean `remote_address`?\n");
  EXPECT_EQ(of_action("request_headers: { header: x, descriptor_key: y }"),
            "p.yaml:6:11: error: `request_headers` needs a `header_name`, found none\n"
            "p.yaml:6:30: error: unknown key \"header\" in `request_headers`\n");
  EXPECT_THAT(of_action("source_cluster: {}"),
              HasSubstr("p.yaml:6:11: error: the action `source_cluster` needs what only Envoy knows"));
  EXPECT_THAT(of_action("{ a: {}, b: {} }"), HasSubstr("p.yaml:6:11: error: an action is a map of one key, found 2"));
}

TEST(RequestsReader, addresses) {
  EXPECT_EQ(findings("  trusted_proxies: [10.0.0.1/8, proxy]\n  client_address: x-client\n  rate_limits: [ { actions: "
                     "[ method ] } ]\n"),
            "p.yaml:3:21: error: `trusted_proxies`: '10.0.0.1/8' has bits beyond its prefix; did you mean 10.0.0.0/8?\n"
            "p.yaml:3:33: error: `trusted_proxies`: expected a network such as 10.0.0.0/8, 2001:db8::/32 or one "
            "address, found 'proxy'\n"
            "p.yaml:4:19: error: `client_address` must be one of x-forwarded-for, forwarded, x-real-ip, found "
            "\"x-client\"\n");
  EXPECT_EQ(findings("  trusted_proxies: [unix, 'unix:']\n  rate_limits: [ { actions: [ remote_address ] } ]\n"), "");
  EXPECT_THAT(findings("  trusted_proxies: [unix:/s]\n  rate_limits: [ { actions: [ remote_address ] } ]\n"),
              HasSubstr("found 'unix:/s'; peers on Unix sockets, all of them, are `unix`"));
  EXPECT_THAT(findings("  rate_limits: [ { actions: [ remote_address ] } ]\n"),
              HasSubstr("p.yaml:3:31: warning: without `trusted_proxies` the client is whoever is connected"));
  EXPECT_THAT(of_action("remote_address: { v6_prefix: 129 }"),
              HasSubstr("`v6_prefix` must be a whole number from 0 to 128, found 129"));
}

TEST(RequestsReader, what_would_switch_limits_off_is_told) {
  const std::string limits = "  rate_limits: [ { actions: [ remote_address ] } ]\n";
  EXPECT_EQ(
      findings("  trusted_proxies: [0.0.0.0/0, '::/0', '::ffff:0:0/96', 10.0.0.0/8]\n" + limits),
      "p.yaml:3:21: warning: `trusted_proxies`: 0.0.0.0/0 trusts everybody, so every client can write the address "
      "that it is counted by\n"
      "p.yaml:3:32: warning: `trusted_proxies`: ::/0 trusts everybody, so every client can write the address that "
      "it is counted by\n"
      "p.yaml:3:40: warning: `trusted_proxies`: ::ffff:0:0/96 trusts everybody, so every client can write the "
      "address that it is counted by\n");
  const std::string_view free = "warning: a cost of 0 takes nothing: such requests use up no limit\n";
  EXPECT_EQ(findings("  trusted_proxies: []\n  cost: 0\n" + limits), "p.yaml:4:9: " + std::string(free));
  EXPECT_THAT(of_action("remote_address\n        - cost: 0"), HasSubstr(free));
  EXPECT_THAT(of_action("remote_address\n      hits_addend: { number: 0 }"), HasSubstr(free));
  EXPECT_EQ(of_action("remote_address\n      cost: 1"), "");
}

TEST(RequestsReader, tokens) {
  const auto of_jwt = [](std::string_view jwt) {
    return findings("  jwt: " + std::string(jwt) +
                    "\n  rate_limits: [ { actions: [ { jwt_claim: { claim: sub } } ] } ]\n");
  };
  EXPECT_EQ(of_jwt("{ algorithms: [HS256], secret_file: secret }"), "");
  EXPECT_EQ(of_jwt("{ algorithms: [none], secret_file: secret }"),
            "p.yaml:3:23: error: `none` is never accepted: anybody could write such a token\n");
  EXPECT_THAT(of_jwt("{ algorithms: [RS265], secret_file: secret }"), HasSubstr("did you mean RS256?"));
  EXPECT_THAT(of_jwt("{ secret_file: secret }"), HasSubstr("`jwt` needs the `algorithms` that are accepted"));
  EXPECT_THAT(of_jwt("{ algorithms: [], secret_file: secret }"),
              HasSubstr("`jwt` needs the `algorithms` that are accepted"));
  EXPECT_EQ(of_jwt("{ algorithms: [HS256] }"),
            "p.yaml:3:8: error: `jwt` needs keys: a public_key_file (PEM), a jwks_file or a secret_file\n");
  EXPECT_EQ(of_jwt("{ algorithms: [HS256, RS256], secret_file: secret }"),
            "p.yaml:3:22: error: no key fits the algorithm RS256\n");
  EXPECT_EQ(of_jwt("{ algorithms: [RS256], public_key_file: absent.pem }"),
            "p.yaml:3:48: error: `public_key_file`: absent.pem: cannot be read: No such file or directory\n");
  EXPECT_EQ(of_jwt("{ algorithms: [RS256], jwks_file: keys }").substr(0, 57),
            "p.yaml:3:42: error: `jwks_file`: keys: this is no JSON: s");
  EXPECT_EQ(of_jwt("{ algorithms: [HS256], secret_file: keys, leeway: 2h }"),
            "p.yaml:3:58: error: `leeway` must be from 0s to 1h, found \"2h\"\n");
  for (const std::string_view party : {"issuer", "audience"}) {
    EXPECT_THAT(of_jwt("{ algorithms: [HS256], secret_file: secret, " + std::string(party) + ": [] }"),
                HasSubstr("`" + std::string(party) + "` names nobody: leave it out to accept tokens of any"));
  }
  EXPECT_EQ(findings("  rate_limits: [ { actions: [ { jwt_claim: { claim: sub } } ] } ]\n"),
            "p.yaml:3:33: error: `jwt_claim` needs `jwt` in `requests`: how tokens are verified\n");
  const KeyFolder folder;
  folder.write("short", "short\n");
  EXPECT_THAT(folder.findings("  jwt: { algorithms: [HS256], secret_file: short }\n  rate_limits: [ { actions: [ { "
                              "jwt_claim: { claim: sub } } ] } ]\n"),
              HasSubstr("warning: the secret has 5 bytes, but HS256 wants 32 at least"));
}

TEST(RequestsReader, a_mapping_that_leads_to_no_limit_is_told) {
  constexpr std::string_view limits =
      "descriptors:\n"
      "  - key: user\n    rate_limit: { unit: day, requests_per_unit: 5 }\n"
      "  - key: area\n    value: shop\n    descriptors: [ { key: \"route*\", rate_limit: { unlimited: true } } ]\n";
  const auto of = [&](std::string_view actions) {
    return findings("  api_keys: { file: keys }\n  trusted_proxies: []\n  rate_limits: [ { actions: [ " +
                    std::string(actions) + " ] } ]\n" + std::string(limits));
  };
  const std::string key = "api_key: { header_name: x, descriptor_key: user, on_missing: ";
  EXPECT_EQ(of("{ " + key + "deny } }"), "");
  EXPECT_THAT(
      of("{ " + key + "remote_address } }"),
      HasSubstr("p.yaml:2:1: warning: `requests` makes a descriptor of \"remote_address\", for which the domain "
                "\"shop\" has no limit"));
  EXPECT_THAT(
      of("{ generic_key: { descriptor_key: area, descriptor_value: shop } }, { path: { descriptor_key: routes } }"),
      Not(HasSubstr("has no limit")));
  EXPECT_THAT(
      of("{ generic_key: { descriptor_key: area, descriptor_value: ship } }, { path: { descriptor_key: routes } }"),
      HasSubstr("\"area=ship, routes\""));
  EXPECT_THAT(of("{ generic_key: { descriptor_key: area, descriptor_value: shop } }"), HasSubstr("\"area=shop\""));
}

TEST(RequestsReader, what_stands_in_for_an_identity_is_the_requests_own) {
  const auto on_missing = [](std::string_view what) {
    return findings(
        "  api_keys: { file: keys }\n  trusted_proxies: []\n  rate_limits:\n    - actions:\n        - api_key: { "
        "header_name: x, on_missing: " +
        std::string(what) + " }\n");
  };
  EXPECT_EQ(on_missing("deny"), "");
  EXPECT_EQ(on_missing("{ cookie: { name: c } }"), "");
  EXPECT_THAT(on_missing("{ generic_key: { descriptor_value: anonymous } }"),
              HasSubstr("p.yaml:7:52: error: `on_missing` counts by something of the request's own"));
  EXPECT_THAT(on_missing("denied"), HasSubstr("`on_missing` must be deny, skip, or an action"));
}

TEST(RequestsReader, statuses_and_domains) {
  EXPECT_EQ(findings(std::string(kGood) + "  allow_status: 201\n  deny_status: 500\n"),
            "p.yaml:5:17: error: `allow_status` must be 200 or 204, found 201\n"
            "p.yaml:6:16: error: `deny_status` must be 429 or 403, found 500\n");
  EXPECT_EQ(findings("  domain: other\n" + std::string(kGood)),
            "p.yaml:2:1: error: `requests` is for the domain \"other\", but no policy file has it\n");
  const std::vector<policy::SourceText> texts{{"a.yaml", "domain: a\n"},
                                              {"r.yaml", "requests:\n  domain: a\n" + std::string(kGood)},
                                              {"s.yaml", "requests:\n  domain: a\n" + std::string(kGood)}};
  const policy::Loaded loaded = policy::load_texts(texts);
  ASSERT_EQ(loaded.findings.size(), 1U);
  EXPECT_EQ(loaded.findings[0].to_string(), "s.yaml:1:1: error: the domain \"a\" has `requests` already at r.yaml:1:1");
}

TEST(RequestsReader, regular_expressions_are_refused) {
  EXPECT_THAT(
      of_action(
          "header_value_match: { descriptor_value: v, headers: [ { name: a, safe_regex_match: { regex: a } } ] }"),
      HasSubstr("regular expressions are not supported"));
}

TEST(DenialText, is_a_template_of_the_limit) {
  const auto of = [](std::string_view keys) {
    const std::vector<policy::SourceText> texts{
        {"p.yaml", "domain: d\ndescriptors: [ { key: k, rate_limit: { unit: day, requests_per_unit: 1, " +
                       std::string(keys) + " } } ]\n"}};
    return policy::load_texts(texts);
  };
  EXPECT_THAT(of("body: 'a {{retry}} b'").findings.at(0).to_string(),
              HasSubstr("`body`: behind {{ expected name, limit, remaining, retry_after or reset_after"));
  EXPECT_THAT(of("message: a, body: b").findings.at(0).to_string(), HasSubstr("give `message` or `body`, found both"));
  EXPECT_THAT(of("content_type: text/plain").findings.at(0).to_string(), HasSubstr("which is absent"));
  const policy::Loaded loaded =
      of(R"(name: "N \"1\"", body: '{"msg":"请求过于频繁 {{name}}","in":{{retry_after}},"of":{{limit}}}')");
  ASSERT_NE(loaded.policy, nullptr) << loaded.findings.at(0).to_string();
  const policy::Denial& denial = loaded.policy->rules()[0]->denial;
  EXPECT_EQ(denial.content_type, "application/json");
  std::string text;
  denial.body.render({.name = "N \"1\"", .limit = 9, .remaining = 0, .retry_after = 5, .reset_after = {}}, true, text);
  EXPECT_EQ(text, R"({"msg":"请求过于频繁 N \"1\"","in":5,"of":9})");
}

}  // namespace
}  // namespace sluice::request
