// /v1/authorize and /v1/ext_authz by bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::string_view kPolicy = R"(
domain: edge
descriptors:
  - key: user
    rate_limit: { name: PerUser, unit: day, requests_per_unit: 1, body: '{"code":429,"message":"请求过于频繁"}' }
  - key: path
    rate_limit: { name: PerPath, unit: day, requests_per_unit: 1 }
  - key: slow
    rate_limit: { unit: second, requests_per_unit: 10, algorithm: leaky_bucket, queue: 200, delay: hold }
requests:
  rate_limits:
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
    - actions: [ { request_headers: { header_name: x-slow, descriptor_key: slow } } ]
    - actions: [ path ]
)";

std::string ask(std::string_view target, std::string_view fields = "", std::string_view method = "GET") {
  return std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: sluice\r\n" + std::string(fields) +
         "\r\n";
}

class Authorize : public testing::Test {
 protected:
  Authorize() { wire_.load(kPolicy); }
  Response answer(std::string_view target, std::string_view fields = "", std::string_view method = "GET") {
    return parse_response(wire_.talk(ask(target, fields, method)));
  }
  Wire wire_;
};

TEST_F(Authorize, tells_all_fields_on_both_outcomes) {
  const Response allowed = answer("/v1/authorize", "X-User: 1\r\n");
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.body, "");
  EXPECT_EQ(allowed.field("X-RateLimit-Remaining"), "0");
  const Response denied = answer("/v1/authorize", "X-User: 1\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "86400");
  EXPECT_THAT(denied.field("RateLimit"), HasSubstr(R"("PerUser";r=0)"));
  EXPECT_EQ(denied.body, R"({"code":429,"message":"请求过于频繁"})");
  EXPECT_EQ(denied.field("Content-Type"), "application/json");
}

TEST_F(Authorize, bodies_by_accept) {
  EXPECT_EQ(answer("/v1/ext_authz/a").status, 200);
  EXPECT_EQ(answer("/v1/ext_authz/a").body, R"({"msg":"rate limit exceeded","retry_after":86400})");
  const Response problem = answer("/v1/ext_authz/a", "Accept: application/problem+json\r\n");
  EXPECT_EQ(problem.field("Content-Type"), "application/problem+json");
  EXPECT_EQ(problem.body,
            R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded",)"
            R"("status":429,"detail":"rate limit exceeded","violated-policies":["PerPath"],"retry_after":86400})");
}

TEST_F(Authorize, any_method_is_the_clients) {
  for (const std::string_view method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"}) {
    EXPECT_EQ(answer("/v1/authorize", "Content-Length: 0\r\n", method).status, 200) << method;
    // Of the body that the proxy has kept for itself.
    EXPECT_EQ(answer("/v1/authorize", "Content-Encoding: gzip\r\n", method).status, 200) << method;
  }
}

TEST_F(Authorize, statuses_are_the_proxys_choice) {
  const Response no_content = parse_response(wire_.talk(ask("/v1/authorize?allow_status=204", "X-User: 2\r\n")), true);
  EXPECT_EQ(no_content.status, 204);
  EXPECT_EQ(no_content.field("Content-Length"), "");
  EXPECT_EQ(answer("/v1/authorize?deny_status=403", "X-User: 2\r\n").status, 403);
  for (const std::string_view query : {"allow_status=500", "deny_status=200", "from=x", "domian=edge", "x"}) {
    EXPECT_EQ(answer("/v1/authorize?" + std::string(query)).status, 400) << query;
  }
  EXPECT_EQ(answer("/v1/authorize?domain=other").status, 503);
}

TEST_F(Authorize, what_from_promises_must_be_told) {
  const auto asked = [&](std::string_view from, std::string_view fields) {
    return answer("/v1/authorize?domain=edge&from=" + std::string(from), fields);
  };
  const Response silent = asked("x-forwarded", "X-Original-URI: /n\r\nX-Original-Method: GET\r\n");
  EXPECT_EQ(silent.status, 400);
  EXPECT_THAT(silent.body, HasSubstr("X-Forwarded-Uri is absent or empty"));
  EXPECT_THAT(asked("x-forwarded", "X-Forwarded-Uri:\r\nX-Forwarded-Method: GET\r\n").body,
              HasSubstr("X-Forwarded-Uri is absent or empty"));
  EXPECT_THAT(asked("x-forwarded", "X-Forwarded-Uri: /n\r\n").body, HasSubstr("X-Forwarded-Method is absent or empty"));
  EXPECT_EQ(asked("x-forwarded", "X-Forwarded-Uri: /n\r\nX-Forwarded-Method: PUT\r\n").status, 200);
  EXPECT_THAT(asked("x-original", "X-Forwarded-Uri: /n\r\nX-Forwarded-Method: GET\r\n").body,
              HasSubstr("X-Original-URI is absent or empty"));
  EXPECT_THAT(asked("x-original", "X-Original-URI: /o\r\n").body, HasSubstr("X-Original-Method is absent or empty"));
  EXPECT_EQ(asked("x-original", "X-Original-URL: /o\r\nX-Original-Method: PUT\r\n").status, 200);
}

TEST_F(Authorize, the_fields_that_the_proxy_sets_rule) {
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-Uri: /a?x\r\nX-Original-URI: /other\r\n").status, 200);
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-Uri: /a\r\n").status, 429);
  EXPECT_EQ(answer("/v1/authorize", "X-Original-URI: /a\r\n").status, 429);
  EXPECT_EQ(
      answer("/v1/authorize?from=x-original", "X-Forwarded-Uri: /b\r\nX-Original-URI: /a\r\nX-Original-Method: GET\r\n")
          .status,
      429);
  EXPECT_EQ(answer("/v1/authorize?from=x-forwarded",
                   "X-Forwarded-Uri: http://h/a\r\nX-Forwarded-Method: GET\r\nX-Original-URI: /b\r\n")
                .status,
            429);
  EXPECT_EQ(answer("/v1/ext_authz/a", "X-Forwarded-Uri: /c\r\nX-Original-URI: /c\r\n").status, 429);
  EXPECT_EQ(answer("/v1/ext_authz//%61/?q").status, 429);
  EXPECT_EQ(answer("/v1/ext_authzz").status, 404);
}

TEST_F(Authorize, a_host_that_is_none_is_a_bad_request_where_it_counts) {
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-Host: a:x\r\n").status, 200);
  wire_.load(R"(
domain: edge
descriptors: [ { key: host, rate_limit: { unit: day, requests_per_unit: 1 } } ]
requests: { rate_limits: [ { actions: [ { request_headers: { header_name: ":authority", descriptor_key: host } } ] } ] }
)");
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-Host: a:080\r\n").status, 200);
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-Host: A.:\r\n").status, 429);
  const Response odd = answer("/v1/authorize", "X-Forwarded-Host: a:x\r\n");
  EXPECT_EQ(odd.status, 400);
  EXPECT_THAT(odd.body, HasSubstr(R"("error":"invalid_request","message":"the host is malformed")"));
}

TEST_F(Authorize, heads_that_are_too_large_have_their_answers) {
  std::string many;
  for (int i = 0; i < 1'000; ++i) many += "X-" + std::to_string(i) + ": 1\r\n";
  EXPECT_EQ(answer("/v1/authorize", many).status, 431);
  wire_.reconnect();
  EXPECT_EQ(answer("/v1/authorize", "X-Forwarded-For: " + std::string(66'000, '1') + "\r\n").status, 431);
  wire_.reconnect();
  EXPECT_EQ(answer("/v1/authorize", "X-User: " + std::string(60'000, 'x') + "\r\n").status, 200);
  EXPECT_EQ(answer("/v1/authorize", "X-User: " + std::string(60'000, 'x') + "\r\n").status, 429);
}

TEST_F(Authorize, a_failed_store_has_an_answer_of_its_own) {
  wire_.store.slow = true;
  EXPECT_EQ(wire_.talk(ask("/v1/authorize", "X-User: 1\r\n")), "");
  wire_.store.fail(Source::fallback_deny);
  const Response denied = parse_response(wire_.take());
  EXPECT_EQ(denied.status, 503);
  EXPECT_THAT(denied.body, HasSubstr("store_unavailable"));
  EXPECT_EQ(denied.field("X-RateLimit-Limit"), "");
}

TEST_F(Authorize, a_leaky_bucket_holds_the_answer_until_its_slot) {
  EXPECT_EQ(answer("/v1/authorize", "X-Slow: 1\r\n").status, 200);
  EXPECT_EQ(wire_.talk(ask("/v1/authorize", "X-Slow: 1\r\n")), "");
  EXPECT_FALSE(wire_.connection().wants_input());
  EXPECT_EQ(wire_.connection().held_until(), wire_.clock.time.steady + 100'000'000);
  EXPECT_EQ(wire_.connection().deadline(), wire_.connection().held_until());
  wire_.clock.advance(milliseconds(99));
  wire_.connection().expire(wire_.clock.now());
  EXPECT_EQ(wire_.take(), "");
  wire_.clock.advance(milliseconds(1));
  wire_.connection().expire(wire_.clock.now());
  EXPECT_EQ(parse_response(wire_.take()).status, 200);
  EXPECT_TRUE(wire_.connection().wants_input());
}

TEST_F(Authorize, an_answer_that_would_be_held_for_too_long_is_a_denial) {
  wire_.context.options.max_hold = milliseconds(150);
  EXPECT_EQ(answer("/v1/authorize", "X-Slow: 1\r\n").status, 200);
  EXPECT_EQ(wire_.talk(ask("/v1/authorize", "X-Slow: 1\r\n")), "");
  wire_.clock.advance(milliseconds(100));
  wire_.connection().expire(wire_.clock.now());
  EXPECT_EQ(parse_response(wire_.take()).status, 200);
  EXPECT_EQ(wire_.talk(ask("/v1/authorize", "X-Slow: 1\r\n")), "");
  wire_.reconnect();
  const Response denied = answer("/v1/authorize", "X-Slow: 1\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "1");
}

TEST_F(Authorize, without_requests_in_the_policy_it_says_so) {
  wire_.load("domain: d\n");
  const Response none = answer("/v1/authorize");
  EXPECT_EQ(none.status, 503);
  EXPECT_THAT(none.body, HasSubstr("no_requests"));
}

}  // namespace
}  // namespace sluice::http
