// The verbs over HTTP, by bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/front/token_file.h"
#include "tests/unit/front/verb_table.h"
#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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

TEST(HttpVerbs, what_could_not_be_given_back_is_not_given) {
  Wire wire;
  const auto body = [](std::size_t size) { return check_body("user", std::string(size, 'v'), R"(,"cost":2)"); };
  const std::string small = check_body("user", "42", R"(,"cost":5)");
  for (const std::string path : {"/v1/reserve", "/v1/acquire"}) {
    const Response refused = ask(wire, path, body(50'000));
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("too long to be given back"));
    // Nor is anything done for the others of an array.
    EXPECT_EQ(ask(wire, path, "[" + small + "," + body(50'000) + "]").status, 400);
  }
  EXPECT_THAT(ask(wire, "/v1/peek", small).body, HasSubstr(R"("remaining":25)"));
  EXPECT_EQ(ask(wire, "/v1/check", body(50'000)).status, 200);
  const Response longest = ask(wire, "/v1/reserve", body(48'000));
  ASSERT_EQ(longest.status, 200);
  const std::size_t at = longest.body.find(R"("reservation":")") + 15;
  const std::string text = longest.body.substr(at, longest.body.find('"', at) - at);
  const Response done = ask(wire, "/v1/commit", R"({"reservation":")" + text + R"(","actual":1000000000000000})");
  EXPECT_THAT(done.body, HasSubstr(R"("result":"done")"));
}

// Whatever keeps one request of an array from being decided is found before anything is done for another.
TEST(HttpVerbs, nothing_is_done_for_an_array_that_is_refused) {
  Wire wire;
  wire.load(front::kVerbPolicy);
  const std::string good = check_body("token_bucket", "1", R"(,"cost":5)");
  const std::string settled = check_body("token_bucket", "1", R"(,"reserved":1,"actual":5)");
  const std::string banned = check_body("token_bucket", "1", R"(,"for":60)");
  struct Row {
    std::string path;
    std::string good;
    std::string wrong;
    std::string code;
  };
  for (const Row& row : std::vector<Row>{
           {"/v1/check", good, check_body("concurrency", "1"), "needs_lease"},
           {"/v1/penalize", good, check_body("concurrency", "1"), "needs_lease"},
           {"/v1/settle", settled, check_body("concurrency", "1", R"(,"reserved":1,"actual":5)"), "needs_lease"},
           {"/v1/ban", banned, check_body("shadow", "1", R"(,"for":60)"), "not_enforced"}}) {
    const std::string start = R"({"error":")" + row.code + R"(","message":")";
    const Response second = ask(wire, row.path, "[" + row.good + "," + row.wrong + "]");
    EXPECT_EQ(second.status, 400) << row.path;
    EXPECT_THAT(second.body, StartsWith(start + "[1]: the request leads to"));
    const Response first = ask(wire, row.path, "[" + row.wrong + "," + row.good + "]");
    EXPECT_EQ(first.status, 400) << row.path;
    EXPECT_THAT(first.body, StartsWith(start + "[0]: the request leads to"));
  }
  EXPECT_EQ(wire.registry.total(metrics::Counter::verb_penalize), 0U);
  const Response peek = ask(wire, "/v1/peek", check_body("token_bucket", "1", R"(,"cost":0)"));
  EXPECT_THAT(peek.body, HasSubstr(R"("remaining":10)"));
  EXPECT_EQ(ask(wire, "/v1/check", good).status, 200);
}

// The key is as never seen after a reset, so what ends later is a refund to it. A window knows when it opened.
TEST(HttpVerbs, a_reservation_that_ends_after_a_reset_gives_back_what_was_lost_since) {
  for (const auto& [limit, left] : std::vector<std::pair<std::string, std::string>>{
           {"token_bucket", "10"}, {"sliding_window", "10"}, {"sliding_log", "10"}, {"fixed_window", "5"}}) {
    Wire wire;
    wire.load(front::kVerbPolicy);
    const std::string body = check_body(limit, "1", R"(,"cost":7)");
    const Response reserved = ask(wire, "/v1/reserve", body);
    ASSERT_EQ(reserved.status, 200);
    const std::size_t at = reserved.body.find(R"("reservation":")") + 15;
    const std::string text = reserved.body.substr(at, reserved.body.find('"', at) - at);
    wire.clock.advance(std::chrono::seconds(1));
    EXPECT_EQ(ask(wire, "/v1/reset", check_body(limit, "1")).status, 200);
    EXPECT_EQ(ask(wire, "/v1/check", check_body(limit, "1", R"(,"cost":5)")).status, 200);
    const Response cancelled = ask(wire, "/v1/cancel", R"({"reservation":")" + text + R"("})");
    EXPECT_THAT(cancelled.body, HasSubstr(R"("remaining":)" + left)) << limit;
  }
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
       "at: expected seconds since 1970 UTC with at most 9 decimals and no exponent, such as 1767225600.25, found a "
       "string "
       "(line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":1e9)"), ", found 1e9 (line 1, column 52)"},
      {"/v1/refund", check_body("user", "1", R"(,"at":1.0000000001)"), ", found 1.0000000001 (line 1, column 52)"},
      {"/v1/ban", check_body("user", "1", R"(,"for":0.12345678901)"),
       "for: expected seconds from 0 to 315360000 with at most 9 decimals and no exponent, such as 2.5, found "
       "0.12345678901"},
      {"/v1/ban", check_body("user", "1", R"(,"for":315360000.1)"), ", found 315360000.1"},
      {"/v1/reserve", check_body("user", "1", R"(,"cost":1,"ttl":1.1234567891)"),
       "ttl: expected seconds from 0 to 3600 with at most 9 decimals"},
      {"/v1/reserve", check_body("user", "1", R"(,"cost":1,"ttl":3600.000000001)"), ", found 3600.000000001"},
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

// Admin pages, figures and verbs that change counters ask for a token or a certificate; decisions and health do not.
TEST(HttpAccess, what_is_guarded_asks_for_a_token) {
  const front::TokenFile tokens;
  const std::string body = check_body("user", "42");
  const auto status = [&](Role role, const std::string& request) {
    Wire wire(role);
    wire.context.guard = tokens.guard();
    return parse_response(wire.talk(request)).status;
  };
  const auto with = [](std::string_view token, const std::string& request) {
    const std::size_t line = request.find("\r\n") + 2;
    return request.substr(0, line) + "Authorization: Bearer " + std::string(token) + "\r\n" + request.substr(line);
  };
  for (const char* path : {"/v1/refund", "/v1/settle", "/v1/penalize", "/v1/reset", "/v1/ban", "/v1/release",
                           "/v1/commit", "/v1/cancel"}) {
    const std::string request = post(path, check_body("user", "42", R"(,"cost":1,"reserved":1,"actual":1)"));
    EXPECT_EQ(status(Role::service, request), 401) << path;
    EXPECT_EQ(status(Role::service, with("let-me-i", request)), 401) << path;
    EXPECT_EQ(status(Role::service, with("ops", request)), 401) << path;
    EXPECT_NE(status(Role::service, with("let-me-in", request)), 401) << path;
  }
  for (const char* path : {"/metrics", "/v1/queues"}) {
    for (const Role role : {Role::service, Role::admin}) {
      EXPECT_EQ(status(role, get(path)), 401) << path;
      EXPECT_NE(status(role, with("scrape-me", get(path))), 401) << path;
    }
  }
  EXPECT_EQ(status(Role::admin, get("/")), 401);
  EXPECT_EQ(status(Role::admin, get("/healthcheck")), 200);
  EXPECT_EQ(status(Role::service, get("/healthcheck")), 200);
  EXPECT_EQ(status(Role::service, post("/v1/check", body)), 200);
  EXPECT_EQ(status(Role::service, post("/v1/peek", body)), 200);
  EXPECT_EQ(status(Role::service, post("/v1/acquire", body)), 200);
  EXPECT_EQ(status(Role::service, post("/v1/reserve", check_body("user", "42", R"(,"cost":1,"ttl":1)"))), 200);

  Wire wire(Role::admin);
  wire.context.guard.is_on = true;
  const Response refused = parse_response(wire.talk(get("/metrics")));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.field("WWW-Authenticate"), "Bearer realm=\"sluice\"");
  EXPECT_THAT(refused.body, HasSubstr("unauthorized"));
  wire.certify();
  EXPECT_EQ(parse_response(wire.talk(get("/metrics"))).status, 200);
}

TEST(HttpVerbs, each_on_each_kind_of_limit) {
  Wire wire;
  wire.load(front::kVerbPolicy);
  for (const front::VerbRow& row : front::verb_table()) {
    SCOPED_TRACE(row.verb + " of " + row.limit);
    std::string more;
    if (row.verb == "reserve") more = R"(,"cost":1)";
    if (row.verb == "settle") more = R"(,"reserved":1,"actual":2)";
    if (row.verb == "ban") more = R"(,"for":3600)";
    const Response response = ask(wire, "/v1/" + row.verb, check_body(row.limit, row.verb, more));
    EXPECT_EQ(response.status, row.refusal.empty() ? 200 : 400) << response.body;
    EXPECT_THAT(response.body, HasSubstr(row.refusal));
  }
}

}  // namespace
}  // namespace sluice::http
