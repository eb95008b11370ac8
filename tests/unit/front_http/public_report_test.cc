// Inputs that broke other rate limiters, over HTTP: each test has the number of its row in the collection of reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

Response check(Wire& wire, std::string_view body) { return parse_response(wire.talk(post("/v1/check", body))); }

TEST(PublicReports, public_report_31_retry_after_is_never_zero) {
  Wire wire;
  wire.load(R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { requests_per_unit: 1, period: 105700us, algorithm: token_bucket, burst: 1 }
)");
  EXPECT_EQ(check(wire, check_body("user", "1")).status, 200);
  const Response denied = check(wire, check_body("user", "1"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "1");
  EXPECT_THAT(denied.body, HasSubstr(R"("retry_after":0.1057,)"));
}

TEST(PublicReports, public_report_32_waiting_as_told_is_enough) {
  Wire wire;
  wire.clock.advance(milliseconds(400));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(check(wire, check_body("minute", "1")).status, 200);
  const Response denied = check(wire, check_body("minute", "1"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "60");
  wire.clock.advance(seconds(std::stoi(denied.field("Retry-After"))));
  EXPECT_EQ(check(wire, check_body("minute", "1")).status, 200);
}

TEST(PublicReports, public_report_35_count_and_fields_are_of_one_instant) {
  Wire wire;
  wire.store.slow = true;
  wire.clock.advance(seconds(59) + microseconds(999'500));
  EXPECT_EQ(wire.talk(post("/v1/check", check_body("minute", "1"))), "");
  wire.clock.advance(milliseconds(1));
  wire.store.answer();
  const Response response = parse_response(wire.take());
  EXPECT_EQ(response.field("X-RateLimit-Reset"), "1");
  EXPECT_EQ(response.field("X-RateLimit-Remaining"), "4");
  EXPECT_EQ(response.field("RateLimit"), R"("minute";r=4;t=1)");
}

TEST(PublicReports, public_report_36_one_value_for_each_field) {
  Wire wire;
  const std::string body = R"({"domain":"shop","descriptors":[{"api":"1"},{"api":"1","path":"/x"}]})";
  for (int left = 9; left >= 0; --left) {
    const Response response = check(wire, body);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.field("X-RateLimit-Limit"), "10");
    EXPECT_EQ(response.field("X-RateLimit-Remaining"), std::to_string(left));
  }
  const Response denied = check(wire, body);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("X-RateLimit-Limit"), "10");
  EXPECT_EQ(denied.field("X-RateLimit-Remaining"), "0");
  EXPECT_EQ(denied.field("Retry-After"), "60");
  EXPECT_EQ(denied.field("RateLimit-Policy"), R"("api";q=10;w=60, "path";q=1000;w=3600)");
  EXPECT_EQ(denied.field("RateLimit"), R"("api";r=0;t=60, "path";r=990;t=3600)");
}

TEST(PublicReports, public_report_37_retry_after_is_not_earlier_than_the_window) {
  Wire wire;
  wire.clock.advance(seconds(20));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(check(wire, check_body("minute", "1")).status, 200);
  const Response denied = check(wire, check_body("minute", "1"));
  EXPECT_EQ(denied.field("RateLimit"), R"("minute";r=0;t=40)");
  EXPECT_EQ(denied.field("Retry-After"), "40");
}

TEST(PublicReports, public_report_38_fail_open_shows_no_figures) {
  Wire wire;
  wire.store.slow = true;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(wire.talk(post("/v1/check", check_body("user", "1"))), "");
    wire.store.fail(Source::fallback_allow);
    const Response response = parse_response(wire.take());
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.head.find("RateLimit"), std::string::npos);
    EXPECT_THAT(response.body, HasSubstr(R"({"allowed":true,"reason":"store_unavailable",)"));
    EXPECT_THAT(response.body, Not(HasSubstr("remaining")));
  }
}

TEST(PublicReports, public_report_39_fail_closed_is_not_a_429) {
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(post("/v1/check", check_body("user", "1"))), "");
  wire.store.fail(Source::fallback_deny);
  Response response = parse_response(wire.take());
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.head.find("RateLimit"), std::string::npos);
  EXPECT_EQ(response.field("Retry-After"), "");
  EXPECT_EQ(response.body,
            R"({"allowed":false,"reason":"store_unavailable","limit_name":"ArticleCreate","source":"fallback_deny",)"
            R"("descriptors":[{"allowed":false,"reason":"store_unavailable","limit_name":"ArticleCreate",)"
            R"("source":"fallback_deny"}]})");

  EXPECT_EQ(wire.talk(post("/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"user"}]}]})")), "");
  wire.store.fail(Source::fallback_deny);
  response = parse_response(wire.take());
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}]})");
}

TEST(PublicReports, public_report_42_odd_keys_have_their_own_counters) {
  Wire wire;
  const std::vector<std::string> values = {
      "a b", R"(a\u0000b)", R"(a\r\nb)",   "日本語", "a",     "",
      "%00", "a|b",         R"(a\u007cb)", R"(\"})", R"(\\)", std::string(60'000, 'x')};
  std::size_t fresh = 0;
  for (const std::string& value : values) {
    const Response response = check(wire, check_body("slow", value));
    ASSERT_TRUE(response.status == 200 || response.status == 429) << response.body;
    if (response.status == 200) ++fresh;
  }
  EXPECT_EQ(fresh, values.size() - 1) << "all differ but the two spellings of a|b";
  EXPECT_EQ(check(wire, check_body("slow", std::string(60'000, 'x') + "y")).status, 200);
  EXPECT_EQ(check(wire, check_body("slow", std::string(60'000, 'x'))).status, 429);
}

TEST(PublicReports, public_report_67_hits_of_zero) {
  Wire wire;
  const auto ask = [&wire](std::string_view request_hits, std::string_view descriptor_hits) {
    return parse_response(
        wire.talk(post("/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"minute","value":"1"}])" +
                                    std::string(descriptor_hits) + "}]" + std::string(request_hits) + "}")));
  };
  for (int left = 4; left >= 0; --left) {
    const Response response = ask(R"(,"hitsAddend":0)", "");
    EXPECT_EQ(response.status, 200);
    const std::string shown =
        left == 0 ? R"("MINUTE"},"durationUntilReset")" : R"("limitRemaining":)" + std::to_string(left);
    EXPECT_THAT(response.body, HasSubstr(shown));
  }
  const Response look = ask("", R"(,"hitsAddend":"0")");
  EXPECT_EQ(look.status, 200);
  EXPECT_THAT(look.body, HasSubstr(R"({"overallCode":"OK","statuses":[{"code":"OK",)"));
  EXPECT_THAT(look.body, Not(HasSubstr("limitRemaining")));
  EXPECT_EQ(ask(R"(,"hitsAddend":1)", "").status, 429);
}

TEST(PublicReports, public_report_68_an_unknown_domain_limits_nothing) {
  Wire wire;
  const Response response = parse_response(wire.talk(
      post("/json", R"({"domain":"nobody","descriptors":[{"entries":[{"key":"a"}]},{"entries":[{"key":"b"}]}]})")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"overallCode":"OK","statuses":[{"code":"OK"},{"code":"OK"}]})");
  EXPECT_THAT(check(wire, R"({"domain":"nobody","descriptors":[{"a":"b"}]})").body,
              HasSubstr(R"({"allowed":true,"reason":"unknown_domain",)"));
}

TEST(PublicReports, public_report_73_months_weeks_and_years_are_windows_of_fixed_length) {
  Wire wire;
  wire.load(R"(
domain: shop
descriptors:
  - { key: month, rate_limit: { unit: month, requests_per_unit: 5 } }
  - { key: week, rate_limit: { unit: week, requests_per_unit: 5 } }
  - { key: year, rate_limit: { unit: year, requests_per_unit: 5 } }
)");
  const auto set_clock = [&](seconds to) { wire.clock.advance(to - std::chrono::nanoseconds(wire.clock.now().utc)); };
  const auto expect_reset = [&](const std::string& key, const std::string& reset) {
    const std::string body = R"({"domain":"shop","descriptors":[{"entries":[{"key":")" + key + R"("}]}]})";
    EXPECT_THAT(wire.talk(post("/json", body)), HasSubstr(R"("durationUntilReset":")" + reset + '"')) << key;
  };
  set_clock(seconds(1'767'225'600));  // 2026-01-01 00:00 UTC
  expect_reset("month", "518400s");
  expect_reset("week", "604800s");
  expect_reset("year", "30326400s");
  set_clock(seconds(1'795'977'092));  // 2026-11-29 18:31 UTC
  expect_reset("month", "278908s");
  expect_reset("week", "278908s");
}

}  // namespace
}  // namespace sluice::http
