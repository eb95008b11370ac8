// The verbs over HTTP, by bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using testing::HasSubstr;

Response ask(Wire& wire, std::string_view path, const std::string& body) {
  return parse_response(wire.talk(post(path, body)));
}

TEST(HttpVerbs, a_refund_is_told_like_a_check) {
  Wire wire;
  EXPECT_EQ(ask(wire, "/v1/check", check_body("user", "42", R"(,"cost":5)")).status, 200);
  const Response response = ask(wire, "/v1/refund", check_body("user", "42", R"(,"cost":3)"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.field("Content-Type"), "application/json");
  EXPECT_EQ(response.field("Cache-Control"), "no-store");
  EXPECT_EQ(response.field("RateLimit") + response.field("X-RateLimit-Limit"), "");
  EXPECT_EQ(response.body,
            R"({"result":"done","descriptors":[{"result":"done","limit_name":"ArticleCreate","source":"memory",)"
            R"("limit":30,"remaining":28,"reset_after":0.2}]})");
}

TEST(HttpVerbs, every_verb_does_its_own) {
  Wire wire;
  const auto remaining = [&wire](std::string_view path, const std::string& rest) {
    const Response response = ask(wire, path, check_body("minute", "1", rest));
    EXPECT_EQ(response.status, 200) << response.body;
    const std::size_t at = response.body.rfind(R"("remaining":)");
    return at == std::string::npos ? response.body
                                   : response.body.substr(at + 12, response.body.find(',', at) - at - 12);
  };
  EXPECT_EQ(remaining("/v1/check", R"(,"cost":3)"), "2");
  EXPECT_EQ(remaining("/v1/peek", R"(,"cost":2)"), "0");
  EXPECT_EQ(remaining("/v1/refund", ""), "3");
  EXPECT_EQ(remaining("/v1/settle", R"(,"reserved":1,"actual":2)"), "2");
  EXPECT_EQ(remaining("/v1/settle", R"(,"reserved":2,"actual":1,"at":1767225600)"), "3");
  EXPECT_EQ(remaining("/v1/settle", R"(,"reserved":2,"actual":1,"at":1767225599.999999)"), "3");  // the minute before
  EXPECT_EQ(remaining("/v1/refund", R"(,"at":1767225599.5)"), "3");
  EXPECT_EQ(remaining("/v1/penalize", R"(,"cost":9)"), "0");
  EXPECT_EQ(remaining("/v1/refund", R"(,"cost":6)"), "1");  // there was a debt
  EXPECT_EQ(remaining("/v1/reset", ""), "5");
}

TEST(HttpVerbs, a_peek_says_what_a_check_would_and_changes_nothing) {
  Wire wire;
  ASSERT_EQ(ask(wire, "/v1/check", check_body("slow", "1")).status, 200);
  const Response peek = ask(wire, "/v1/peek", check_body("slow", "1"));
  EXPECT_EQ(peek.status, 200);  // the question was answered; it is the answer that denies
  const Response check = ask(wire, "/v1/check", check_body("slow", "1"));
  EXPECT_EQ(check.status, 429);
  EXPECT_EQ(peek.body, check.body);
  EXPECT_EQ(wire.registry.total(metrics::Counter::http_errors), 0U);
}

TEST(HttpVerbs, where_no_limit_is) {
  Wire wire;
  EXPECT_EQ(ask(wire, "/v1/reset", check_body("nobody", "1")).body,
            R"({"result":"no_limit","descriptors":[{"result":"no_limit"}]})");
  EXPECT_EQ(ask(wire, "/v1/reset", R"({"domain":"else","descriptors":[{"user":"1"}]})").body,
            R"({"result":"unknown_domain","descriptors":[{"result":"unknown_domain"}]})");
  EXPECT_EQ(ask(wire, "/v1/reset", R"({"domain":"shop","descriptors":[{"free":"1"},{"user":"1"}]})").body,
            R"({"result":"done","descriptors":[{"result":"unlimited","limit_name":"free"},{"result":"done",)"
            R"("limit_name":"ArticleCreate","source":"memory","limit":30,"remaining":30,"reset_after":0}]})");
}

TEST(HttpVerbs, a_store_that_fails_is_told_without_figures) {
  Wire wire;
  wire.store.failure = store::Failure::timeout;
  Response response = ask(wire, "/v1/refund", check_body("user", "42"));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(
      response.body,
      R"({"result":"store_unavailable","descriptors":[{"result":"store_unavailable","limit_name":"ArticleCreate",)"
      R"("may_be_done":true,"message":"no answer within the time allowed"}]})");
  wire.store.failure = store::Failure::circuit_open;
  EXPECT_THAT(ask(wire, "/v1/reset", check_body("user", "42")).body, HasSubstr(R"("may_be_done":false)"));
  response = ask(wire, "/v1/peek", check_body("user", "42"));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, R"({"error":"store_unavailable","message":"not asked after too many failures"})");
  response = ask(wire, "/v1/reset", "[" + check_body("user", "42") + "," + check_body("nobody", "1") + "]");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr(R"(]},{"result":"no_limit")"));
  EXPECT_EQ(wire.registry.total(metrics::Counter::verb_failures), 3U);
  EXPECT_EQ(wire.registry.total(metrics::Counter::fallback_local), 0U);
}

TEST(HttpVerbs, answers_come_when_the_store_has_answered_all) {
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(post("/v1/penalize", R"({"domain":"shop","descriptors":[{"user":"1"},{"api":"2"}],"cost":2})")),
            "");
  ASSERT_EQ(wire.store.waiting.size(), 2U);
  wire.store.answer(true);
  EXPECT_EQ(wire.take(), "");
  wire.store.answer();
  const Response response = parse_response(wire.take());
  EXPECT_THAT(response.body, HasSubstr(R"("limit":30,"remaining":28)"));
  EXPECT_THAT(response.body, HasSubstr(R"("limit":10,"remaining":8)"));
  EXPECT_EQ(wire.talk(post("/v1/reset", check_body("user", "1"))), "");
  wire.reconnect();
  EXPECT_EQ(wire.store.cancelled, 1);
  EXPECT_TRUE(wire.store.waiting.empty());
}

TEST(HttpVerbs, wrong_bodies_are_told_what_and_where) {
  Wire wire;
  struct Case {
    std::string_view path;
    std::string body;
    std::string_view message;
  };
  const Case cases[] = {
      {"/v1/reset", check_body("user", "1", R"(,"cost":1)"),
       "cost: unknown field; a request has domain and descriptors (line 1, column 47)"},
      {"/v1/settle", check_body("user", "1", R"(,"reserved":1)"), R"(a request needs \"actual\" (line 1, column 58))"},
      {"/v1/settle", R"({"domain":"shop","descriptors":[{"entries":{"user":"1"},"cost":2}],"reserved":1,"actual":1})",
       "descriptors[0].cost: a descriptor has no cost here (line 1, column 64)"},
      {"/v1/settle", check_body("user", "1", R"(,"reserved":-1,"actual":1)"),
       "reserved: expected a whole number from 0 to 1000000000000000, found -1 (line 1, column 58)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":"now")"),
       "at: expected seconds since 1970 UTC without an exponent, such as 1767225600.25, found a string "
       "(line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":1e9)"), ", found 1e9 (line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":-1)"), ", found -1 (line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":4000000001)"), ", found 4000000001 (line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":1,"at":1)"), "at: given twice"},
      {"/v1/penalize", check_body("user", "1", R"(,"at":1)"),
       "at: unknown field; a request has domain, descriptors and cost"},
      {"/v1/penalize", "[]", "an array without requests"},
      {"/v1/reset", "{", "line 1, column 2"},
  };
  for (const Case& one : cases) {
    const Response response = ask(wire, one.path, one.body);
    EXPECT_EQ(response.status, 400) << one.body;
    EXPECT_THAT(response.body, HasSubstr(one.message));
  }
  Response response = parse_response(wire.talk(get("/v1/reset")));
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.field("Allow"), "POST");
  Wire admin(Role::admin);
  EXPECT_EQ(ask(admin, "/v1/reset", check_body("user", "1")).status, 404);
}

}  // namespace
}  // namespace sluice::http
