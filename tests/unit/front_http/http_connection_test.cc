// HTTP by bytes: what is said to requests, right and wrong, and when.
#include "front/http/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/drain.h"
#include "tests/unit/front_http/wire.h"

namespace sluice::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

TEST(HttpConnection, answers_a_check) {
  Wire wire;
  EXPECT_EQ(
      wire.talk(post("/v1/check", check_body("user", "42"))),
      "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json\r\nContent-Length: "
      "279\r\nRateLimit: \"ArticleCreate\";r=29;t=1\r\nRateLimit-Policy: \"ArticleCreate\";q=30;w=3\r\n"
      "X-RateLimit-Limit: 30\r\nX-RateLimit-Remaining: 29\r\nX-RateLimit-Reset: 1\r\n\r\n"
      R"({"allowed":true,"reason":"within_limit","limit_name":"ArticleCreate","source":"memory","limit":30,)"
      R"("remaining":29,"reset_after":0.1,"descriptors":[{"allowed":true,"reason":"within_limit",)"
      R"("limit_name":"ArticleCreate","source":"memory","limit":30,"remaining":29,"reset_after":0.1}]})");
  EXPECT_TRUE(wire.connection().wants_input());
  EXPECT_FALSE(wire.connection().finished());
}

TEST(HttpConnection, thirty_of_thirty_one_pass_at_once) {
  Wire wire;
  std::string requests;
  for (int i = 0; i < 31; ++i) requests += post("/v1/check", check_body("user", "42"));
  const std::vector<Response> responses = parse_responses(wire.talk(requests));
  ASSERT_EQ(responses.size(), 31U);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(responses[static_cast<std::size_t>(i)].status, 200) << i;
  const Response& denied = responses.back();
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "1");
  EXPECT_EQ(denied.field("RateLimit"), R"("ArticleCreate";r=0;t=1)");
  EXPECT_EQ(denied.field("RateLimit-Policy"), R"("ArticleCreate";q=30;w=3)");
  EXPECT_EQ(denied.field("X-RateLimit-Remaining"), "0");
  EXPECT_THAT(denied.body, HasSubstr(R"("reason":"over_limit","limit_name":"ArticleCreate")"));
  EXPECT_THAT(denied.body, HasSubstr(R"("retry_after":0.1,"reset_after":3)"));
}

TEST(HttpConnection, header_fields_can_be_left_out) {
  Wire wire;
  wire.context.options.headers_on_allowed = false;
  wire.context.options.headers.x_rate_limit = false;
  wire.context.options.deny_status = 403;
  Response response = parse_response(wire.talk(post("/v1/check", check_body("slow", "1"))));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.field("RateLimit") + response.field("X-RateLimit-Limit"), "");
  response = parse_response(wire.talk(post("/v1/check", check_body("slow", "1"))));
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(response.field("Retry-After"), "60");
  EXPECT_EQ(response.field("X-RateLimit-Limit"), "");
}

TEST(HttpConnection, answers_an_array_item_by_item) {
  Wire wire;
  const std::string one = check_body("slow", "1");
  const Response response =
      parse_response(wire.talk(post("/v1/check", "[" + one + "," + one + "," + check_body("user", "2") + "]")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.field("Retry-After"), "");
  EXPECT_THAT(response.body, StartsWith(R"([{"allowed":true,"reason":"within_limit",)"));
  EXPECT_THAT(response.body, HasSubstr(R"(},{"allowed":false,"reason":"over_limit",)"));
  EXPECT_THAT(response.body, HasSubstr(R"("remaining":29)"));
}

TEST(HttpConnection, nothing_of_an_array_is_charged_when_an_item_is_wrong) {
  Wire wire;
  const std::string one = check_body("slow", "1");
  const std::vector<std::string> wrong = {
      R"({"domain":"shop"})",
      R"({"domain":"","descriptors":[{"slow":"2"}]})",
      R"({"domain":"shop","descriptors":[]})",
      R"({"domain":"shop","descriptors":[{}]})",
      R"({"domain":"shop","descriptors":[{"slow":"2"}],"cost":1000000000000001})",
      R"({"domain":"shop","descriptors":[{"slow":"2"}],"cost":-1})",
      R"({"domain":"shop","descriptors":[{"entries":{"slow":"2"},"cost":1000000000000001}]})",
      R"({"domain":"shop","descriptors":[{"slow":2}]})",
  };
  for (const std::string& two : wrong) {
    const Response refused = parse_response(wire.talk(post("/v1/check", "[" + one + "," + two + "]")));
    EXPECT_EQ(refused.status, 400) << two;
    EXPECT_THAT(refused.body, StartsWith(R"({"error":"invalid_request","message":"[1])")) << two;
  }
  EXPECT_EQ(parse_response(wire.talk(post("/v1/check", "[" + one + ",{]"))).status, 400);
  EXPECT_EQ(parse_response(wire.talk(post("/v1/check", one))).status, 200);
}

TEST(HttpConnection, costs_of_one_key_whose_sum_is_no_cost_never_fit) {
  Wire wire;
  const std::string most = R"({"entries":{"user":"1"},"cost":1000000000000000})";
  const std::string sum = R"({"domain":"shop","descriptors":[)" + most + "," + most + "]}";
  const Response never = parse_response(wire.talk(post("/v1/check", sum)));
  EXPECT_EQ(never.status, 429);
  EXPECT_EQ(never.field("Retry-After"), "");
  EXPECT_THAT(never.body, StartsWith(R"({"allowed":false,"reason":"never_fits",)"));
  // In an array its neighbours are judged as ever.
  const Response array = parse_response(wire.talk(post("/v1/check", "[" + check_body("user", "1") + "," + sum + "]")));
  EXPECT_EQ(array.status, 200);
  EXPECT_THAT(array.body, StartsWith(R"([{"allowed":true,)"));
  EXPECT_THAT(array.body, HasSubstr(R"(},{"allowed":false,"reason":"never_fits",)"));
}

TEST(HttpConnection, a_cost_of_zero_only_looks) {
  Wire wire;
  for (int i = 0; i < 3; ++i) {
    const Response response = parse_response(wire.talk(post("/v1/check", check_body("slow", "1", R"(,"cost":0)"))));
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.body, HasSubstr(R"("remaining":1)"));
  }
  const Response never = parse_response(wire.talk(post("/v1/check", check_body("slow", "1", R"(,"cost":2)"))));
  EXPECT_EQ(never.status, 429);
  EXPECT_EQ(never.field("Retry-After"), "");
  EXPECT_THAT(never.body, HasSubstr(R"("reason":"never_fits")"));
}

TEST(HttpConnection, an_unlimited_descriptor_says_so_without_figures) {
  Wire wire;
  const Response response = parse_response(wire.talk(post("/v1/check", check_body("free", "1"))));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"allowed":true,"reason":"unlimited","limit_name":"free","descriptors":[)"
                           R"({"allowed":true,"reason":"unlimited","limit_name":"free"}]})");
  for (const std::string_view name : {"X-RateLimit-Limit", "RateLimit", "RateLimit-Policy"}) {
    EXPECT_EQ(response.field(name), "") << name;
  }
  EXPECT_THAT(parse_response(wire.talk(post("/v1/check", check_body("nobody", "1")))).body,
              StartsWith(R"({"allowed":true,"reason":"no_limit","descriptors":)"));
}

TEST(HttpConnection, a_shadow_limit_says_so_and_denies_nothing) {
  Wire wire;
  EXPECT_THAT(wire.talk(post("/v1/check", check_body("shadowed", "1"))),
              HasSubstr(R"({"allowed":true,"reason":"last_token",)"));
  const Response over = parse_response(wire.talk(post("/v1/check", check_body("shadowed", "1"))));
  EXPECT_EQ(over.status, 200);
  EXPECT_THAT(over.body, StartsWith(R"({"allowed":true,"reason":"shadow",)"));
  EXPECT_EQ(over.field("Retry-After"), "");
}

TEST(HttpConnection, problem_documents_when_asked_for) {
  Wire wire;
  const std::string request = post("/v1/check", check_body("slow", "1"), "Accept: application/problem+json\r\n");
  EXPECT_EQ(parse_response(wire.talk(request)).field("Content-Type"), "application/json");
  const Response denied = parse_response(wire.talk(request));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Content-Type"), "application/problem+json");
  EXPECT_THAT(denied.body, StartsWith(R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded")"));
  EXPECT_EQ(parse_response(wire.talk(post("/v1/check", check_body("slow", "1")))).field("Content-Type"),
            "application/json");
}

TEST(HttpConnection, answers_json_as_envoy_asks) {
  Wire wire;
  wire.context.options.headers = {.retry_after = false, .rate_limit = false, .x_rate_limit = false};
  wire.clock.advance(seconds(32));
  const std::string request =
      post("/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"minute","value":"1"}]}]})");
  for (int left = 4; left > 0; --left) {
    EXPECT_EQ(parse_response(wire.talk(request)).body,
              R"({"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":5,"unit":"MINUTE"},)"
              R"("limitRemaining":)" +
                  std::to_string(left) + R"(,"durationUntilReset":"28s"}]})");
  }
  EXPECT_EQ(parse_response(wire.talk(request)).status, 200);
  const Response denied = parse_response(wire.talk(request));
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.body, R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT",)"
                         R"("currentLimit":{"requestsPerUnit":5,"unit":"MINUTE"},"durationUntilReset":"28s"}]})");
}

TEST(HttpConnection, json_requests_that_cannot_be_judged) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk(post("/json", "{}"))).body,
            "{\"error\":\"invalid_request\",\"message\":\"domain: must not be empty\"}\n");
  EXPECT_EQ(parse_response(wire.talk(post("/json", R"({"domain":"shop"})"))).body,
            "{\"error\":\"invalid_request\",\"message\":\"descriptors: must not be empty\"}\n");
  const Response cost = parse_response(wire.talk(post(
      "/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"user"}],"hitsAddend":"1000000000000001"}]})")));
  EXPECT_EQ(cost.status, 400);
  EXPECT_THAT(cost.body, HasSubstr("the cost must be a whole number from 0 to 1000000000000000"));
  EXPECT_EQ(parse_response(wire.talk(post("/json", "{\"domain\":"))).status, 400);
  EXPECT_EQ(wire.shard.value(metrics::Counter::http_errors), 4U);
  EXPECT_EQ(wire.shard.value(metrics::Counter::http_requests), 4U);
}

TEST(HttpConnection, without_a_policy_nothing_is_judged) {
  Wire wire;
  wire.policies.set(nullptr);
  for (const std::string_view path : {"/v1/check", "/json"}) {
    const std::string body =
        path == "/json" ? R"({"domain":"shop","descriptors":[{"entries":[{"key":"user"}]}]})" : check_body("user", "1");
    const Response response = parse_response(wire.talk(post(path, body)));
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.body, "{\"error\":\"no_policy\",\"message\":\"no policy is loaded\"}\n");
  }
}

TEST(HttpConnection, health_says_why_not) {
  Wire wire;
  Response health = parse_response(wire.talk(get("/healthcheck")));
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body, "OK");
  EXPECT_EQ(health.field("Cache-Control"), "no-store");

  wire.store.is_ready = false;
  health = parse_response(wire.talk(get("/healthcheck")));
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.body, "the store has not been reached yet\n");

  wire.policies.set(nullptr);
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck"))).body, "no policy is loaded\n");

  wire.draining = true;
  wire.connection().drain(wire.clock.now());
  health = parse_response(wire.talk(get("/healthcheck")));
  EXPECT_EQ(health.body, "draining: this process is about to stop\n");
  EXPECT_EQ(health.field("Connection"), "close");
}

TEST(HttpConnection, metrics_count_what_was_decided) {
  for (const Role role : {Role::service, Role::admin}) {
    Wire wire(role);
    wire.shard.add(metrics::Counter::http_requests, 41);
    const Response response = parse_response(wire.talk(get("/metrics")));
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(response.field("Content-Type"), StartsWith("text/plain; version=0.0.4"));
    EXPECT_THAT(response.body, HasSubstr(" 41\n"));
  }
}

TEST(HttpConnection, the_admin_listener_decides_nothing) {
  Wire wire(Role::admin);
  EXPECT_THAT(parse_response(wire.talk(get("/"))).body, HasSubstr("GET /metrics"));
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck"))).body, "OK");
  EXPECT_EQ(parse_response(wire.talk(post("/v1/check", check_body("user", "1")))).status, 404);
  EXPECT_EQ(parse_response(wire.talk(post("/json", "{}"))).status, 404);
  EXPECT_EQ(parse_response(Wire().talk(get("/"))).status, 404);
}

TEST(HttpConnection, head_is_get_without_the_body) {
  Wire wire;
  const Response response = parse_response(wire.talk(get("/healthcheck", "HEAD")), true);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.field("Content-Length"), "2");
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(parse_response(wire.talk(get("/nowhere", "HEAD")), true).status, 404);
}

TEST(HttpConnection, wrong_paths_and_methods) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk(get("/nowhere"))).body,
            "{\"error\":\"not_found\",\"message\":\"there is nothing at this path\"}\n");
  for (const std::string_view path : {"/json", "/v1/check"}) {
    const Response response = parse_response(wire.talk(get(path)));
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.field("Allow"), "POST");
  }
  const Response response = parse_response(wire.talk(post("/healthcheck", "x")));
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.field("Allow"), "GET, HEAD");
  EXPECT_EQ(parse_response(wire.talk(get("/v1/check", "BREW"))).status, 405);
  EXPECT_EQ(parse_response(wire.talk(get("*", "OPTIONS"))).status, 404);
}

TEST(HttpConnection, targets_in_every_form) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck?verbose=1"))).status, 200);
  EXPECT_EQ(parse_response(wire.talk(get("http://host:80/healthcheck"))).status, 200);
  EXPECT_EQ(parse_response(wire.talk(get("http://host"))).status, 404);
  EXPECT_EQ(parse_response(wire.talk(get("http://host?/healthcheck"))).status, 404);
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck/"))).status, 404);
}

TEST(HttpConnection, http_1_0_closes_unless_told_otherwise) {
  Wire wire;
  Response response = parse_response(wire.talk("GET /healthcheck HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
  EXPECT_EQ(response.field("Connection"), "keep-alive");
  EXPECT_TRUE(wire.connection().wants_input());
  response = parse_response(wire.talk("GET /healthcheck HTTP/1.0\r\n\r\n"));
  EXPECT_EQ(response.field("Connection"), "close");
  EXPECT_TRUE(wire.connection().finished());
}

TEST(HttpConnection, connection_close_ends_after_the_answer) {
  Wire wire;
  const std::string request = "GET /healthcheck HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
  EXPECT_EQ(parse_response(wire.talk(request + request)).field("Connection"), "close");
  EXPECT_TRUE(wire.connection().finished());
  EXPECT_TRUE(wire.connection().lingers());
  EXPECT_TRUE(wire.connection().wants_input());
  EXPECT_EQ(wire.talk(request), "");
  wire.connection().end_of_input(wire.clock.now());
  EXPECT_FALSE(wire.connection().lingers());
  EXPECT_FALSE(wire.connection().wants_input());
}

struct BadRequest {
  std::string bytes;
  int status;
  std::string_view message;
};

constexpr std::string_view kFolded = "a header field goes on in the next line (obs-fold): write it on one";

std::vector<BadRequest> bad_requests() {
  const std::string host = "Host: t\r\n";
  const std::string start = "POST /v1/check HTTP/1.1\r\n" + host;
  std::string many_fields = start;
  for (int i = 0; i < 101; ++i) many_fields += "A: b\r\n";
  return {
      {"\x16\x03\x01\x02\x01\r\n\r\n", 400, "malformed request line: bad method"},
      {"{}\r\n\r\n", 400, "malformed request line: bad method"},
      {"GET\r\n\r\n", 400, "malformed request line: bad method"},
      {"GET  HTTP/1.1\r\n\r\n", 400, "malformed request line: bad target"},
      {"GET /\r\n\r\n", 400, "malformed request line: bad target"},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
      {"GET / HTTP/3.0\r\n\r\n", 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
      {"GET /healthcheck HTTP/1.1\r\n\r\n", 400, "HTTP/1.1 needs a Host header field"},
      {start + host + "\r\n", 400, "more than one Host"},
      {start + "Authorization: Bearer a\r\nAccept: */*\r\nauthorization: Bearer b\r\n\r\n", 400,
       "more than one Authorization"},
      {start + "Authorization: Bearer a\r\nAuthorization: Bearer a\r\n\r\n", 400, "more than one Authorization"},
      {start + "Authorization: Basic a\r\nAuthorization: Bearer a\r\n\r\n", 400, "more than one Authorization"},
      {"GET /a b HTTP/1.1\r\n\r\n", 400, "malformed request line: bad target or version"},
      {"GET / HTTP/1.1 \r\n\r\n", 400, "malformed request line: bad target or version"},
      {"GET / http/1.1\r\n\r\n", 400, "malformed request line: bad target or version"},
      {"GET /healthcheck HTTP/1.1\r\nHost: a b/c\r\n\r\n", 400, "malformed Host"},
      {"GET /healthcheck HTTP/1.1\r\nHost: a/c\r\n\r\n", 400, "malformed Host"},
      {"GET /healthcheck HTTP/1.1\r\nHost: user@a\r\n\r\n", 400, "malformed Host"},
      {start + "A b: c\r\n\r\n", 400, "malformed header field name"},
      {start + "A : c\r\n\r\n", 400, "malformed header field name"},
      {start + ": c\r\n\r\n", 400, "malformed header field name"},
      {start + "A: b\x01\r\n\r\n", 400, "malformed header field value"},
      {start + "A: b\nB: c\r\n\r\n", 400, "malformed header field value"},
      {start + "Content-Length: x\r\n\r\n", 400, "malformed or conflicting Content-Length"},
      {start + "Content-Length: -1\r\n\r\n", 400, "malformed or conflicting Content-Length"},
      {start + "Content-Length: +1\r\n\r\n", 400, "malformed or conflicting Content-Length"},
      {start + "Content-Length: 99999999999999999999999\r\n\r\n", 400, "malformed or conflicting Content-Length"},
      {start + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400, "more than one Content-Length"},
      {start + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400, "more than one Content-Length"},
      {start + "Content-Length: 2, 2\r\n\r\n{}", 400, "more than one Content-Length"},
      {start + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "conflicting Transfer-Encoding"},
      {start + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n", 400,
       "malformed or conflicting Content-Length"},
      {start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400,
       "conflicting Transfer-Encoding"},
      {start + "Transfer-Encoding: gzip\r\n\r\n", 501, "no Transfer-Encoding but chunked is understood"},
      {start + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501, "no Transfer-Encoding but chunked is understood"},
      {start + "Transfer-Encoding: chunked, identity\r\n\r\n", 501, "no Transfer-Encoding but chunked is understood"},
      {"POST /json HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "Transfer-Encoding in HTTP/1.0"},
      {start + "Content-Encoding: gzip\r\n\r\n", 415, "no Content-Encoding is understood"},
      {"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\n\r\n", 415, "no Content-Encoding is understood"},
      {start + "Expect: 200-ok\r\n\r\n", 417, "unknown expectation"},
      {start + "Content-Length: 65537\r\n\r\n", 413, "the body is too large"},
      {start + "Transfer-Encoding: chunked\r\n\r\n10001\r\n", 413, "the body is too large"},
      {start + "Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n", 400, "malformed chunk"},
      {start + "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400, "malformed chunk"},
      {start + "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400, "malformed chunk"},
      {start + "Transfer-Encoding: chunked\r\n\r\n2;\x01\r\n{}\r\n0\r\n\r\n", 400, "malformed chunk extension"},
      {start + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 3\r\n\r\n", 400,
       "malformed or conflicting Content-Length"},
      {start + "Authorization: Bearer\r\n a\r\n\r\n", 400, kFolded},
      {start + "A: b\r\n\tc\r\n\r\n", 400, kFolded},
      {start + "A: b\r\n \r\n\r\n", 400, kFolded},
      {start + "Content-Length:\r\n 0\r\n\r\n", 400, kFolded},
      {"GET /healthcheck HTTP/1.1\r\n Host: t\r\n\r\n", 400, kFolded},
      {start + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n00;x\r\nA: b\r\n c\r\n\r\n", 400, kFolded},
      {"GET /" + std::string(8 * 1024, 'x') + " HTTP/1.1\r\n\r\n", 414, "the request target is longer than 8 KiB"},
      {std::string(70'000, 'G'), 400, "malformed request line: the method is longer than 8 KiB"},
      {"GET /" + std::string(70'000, 'x'), 414, "the request target is longer than 8 KiB"},
      {start + "A: " + std::string(70'000, 'x'), 431, "the request head is too large"},
      {many_fields + "\r\n", 431, "too many header fields"},
  };
}

TEST(HttpConnection, refuses_what_is_malformed_and_closes) {
  for (const BadRequest& bad : bad_requests()) {
    Wire wire;
    const Response response = parse_response(wire.talk(bad.bytes));
    EXPECT_EQ(response.status, bad.status) << bad.bytes.substr(0, 200);
    EXPECT_EQ(response.body, "{\"error\":\"bad_request\",\"message\":\"" + std::string(bad.message) + "\"}\n")
        << bad.bytes.substr(0, 200);
    EXPECT_EQ(response.field("Connection"), "close");
    EXPECT_TRUE(wire.connection().finished());
    EXPECT_TRUE(wire.connection().lingers());
    EXPECT_EQ(wire.shard.value(metrics::Counter::protocol_errors), 1U);
    EXPECT_EQ(wire.talk(get("/healthcheck")), "") << "nothing is heard after a fault";
  }
}

TEST(HttpConnection, faults_do_not_depend_on_how_the_bytes_are_cut) {
  for (const BadRequest& bad : bad_requests()) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}}) {
      if (bad.bytes.size() > 10'000 && size == 1) continue;
      Wire wire;
      std::string output;
      for (std::size_t at = 0; at < bad.bytes.size(); at += size) {
        output += wire.talk(std::string_view(bad.bytes).substr(at, size));
      }
      EXPECT_EQ(parse_response(output).status, bad.status) << bad.bytes.substr(0, 200);
    }
  }
}

TEST(HttpConnection, a_body_is_needed_and_its_length) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk("POST /v1/check HTTP/1.1\r\nHost: t\r\n\r\n")).status, 411);
  EXPECT_EQ(
      parse_response(wire.talk(post("/v1/check", ""))).body,
      "{\"error\":\"invalid_json\",\"message\":\"line 1, column 1: expected a value, found the end of the text\"}\n");
}

TEST(HttpConnection, the_largest_body_and_head_are_taken) {
  Wire wire;
  std::string body = check_body("user", "1");
  body.append(64 * 1024 - body.size(), ' ');
  EXPECT_EQ(parse_response(wire.talk(post("/v1/check", body))).status, 200);
  const std::string start = "GET /healthcheck HTTP/1.1\r\nHost: t\r\nA: ";
  EXPECT_EQ(parse_response(wire.talk(start + std::string(64 * 1024 - start.size() - 4, 'a') + "\r\n\r\n")).status, 200);
  EXPECT_EQ(parse_response(wire.talk(start + std::string(64 * 1024 - start.size() - 3, 'a') + "\r\n\r\n")).status, 431);
}

TEST(HttpConnection, chunked_bodies) {
  Wire wire;
  const std::string body = check_body("user", "1");
  const std::string start = "POST /v1/check HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: Chunked\r\n\r\n";
  std::string request = start;
  for (const char c : body) request += std::string("1;name=\"value\"\r\n") + c + "\r\n";
  request += "0\r\nTrailer: x\r\n\r\n";
  EXPECT_EQ(parse_response(wire.talk(request)).status, 200);
  EXPECT_EQ(parse_response(wire.talk(start + "0\r\n\r\n")).status, 400);
  // What looks like a folded line is data.
  request = start + "2\r\n\n\t\r\n" + "4\r\n\r\n  \r\n";
  for (const char c : body) request += std::string("01\r\n") + c + "\r\n";
  EXPECT_EQ(parse_response(wire.talk(request + "0\r\n\r\n")).status, 200);
  std::string endless = start;
  while (endless.size() < 700'000) endless += "1;" + std::string(1000, 'x') + "\r\n \r\n";
  EXPECT_EQ(parse_response(wire.talk(endless)).status, 413);
}

TEST(HttpConnection, an_empty_line_between_requests_is_skipped) {
  Wire wire;
  EXPECT_EQ(parse_responses(wire.talk("\r\n" + get("/healthcheck") + "\r\n\r\n" + get("/healthcheck"))).size(), 2U);
}

TEST(HttpConnection, expect_continue_is_answered_once) {
  Wire wire;
  const std::string body = check_body("user", "1");
  const std::string request = post("/v1/check", body, "Expect: 100-Continue\r\n");
  const std::size_t head = request.size() - body.size();
  EXPECT_EQ(wire.talk(request.substr(0, head)), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(wire.talk(request.substr(head, 5)), "");
  EXPECT_EQ(parse_response(wire.talk(request.substr(head + 5))).status, 200);
  EXPECT_EQ(parse_response(wire.talk(request)).status, 200) << "the body has come already";
}

TEST(HttpConnection, a_body_that_will_be_refused_is_not_asked_for) {
  const std::string head = " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n";
  EXPECT_EQ(parse_response(Wire().talk("POST /nowhere" + head)).status, 404);
  EXPECT_EQ(parse_response(Wire().talk("PUT /v1/check" + head)).status, 405);
  const Response large = parse_response(
      Wire().talk("POST /v1/check HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 100000\r\n\r\n"));
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(parse_response(Wire().talk("GET /healthcheck HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\n\r\n")).status,
            200);
}

TEST(HttpConnection, the_same_bytes_give_the_same_answers_however_they_are_cut) {
  const std::string chunked = "POST /v1/check HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n26\r\n";
  const std::string body = R"({"domain":"shop","descriptors":[{"user")";
  ASSERT_EQ(body.size(), 0x27U);
  const std::string bytes = get("/healthcheck") + post("/v1/check", check_body("user", "\\u0031", R"(,"cost":2)")) +
                            chunked + body.substr(0, 0x26) + "\r\n0b;ext\r\n" + body.substr(0x26) + R"(:"1"}]})" +
                            "   \r\n000\r\nT: x\r\n\r\n\r\n" + post("/json", "{\"domain\":\"shop\"}") +
                            get("/nowhere?x=y", "HEAD") + post("/v1/check", "{") + "GET / HTTP/1.0\r\nA:\r\n B\r\n\r\n";
  const std::string expected = Wire().talk(bytes);
  ASSERT_EQ(parse_responses(expected.substr(0, expected.find("HTTP/1.1 404"))).size(), 4U) << expected;
  for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
    Wire wire;
    const std::string first = wire.talk(std::string_view(bytes).substr(0, cut));
    EXPECT_EQ(first + wire.talk(std::string_view(bytes).substr(cut)), expected) << "cut at " << cut;
  }
  Wire wire;
  std::string output;
  for (const char byte : bytes) output += wire.talk(std::string_view(&byte, 1));
  EXPECT_EQ(output, expected) << "byte by byte";
}

TEST(HttpConnection, a_slow_store_keeps_the_order) {
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(post("/v1/check", check_body("slow", "1")) + get("/healthcheck") +
                      post("/v1/check", check_body("slow", "1"))),
            "");
  EXPECT_FALSE(wire.connection().wants_input());
  EXPECT_EQ(wire.connection().deadline(), kNever);
  ASSERT_EQ(wire.store.waiting.size(), 1U) << "what is behind waits unread";
  wire.store.answer();
  EXPECT_EQ(wire.resumed_count, 1);
  const std::vector<Response> responses = parse_responses(wire.take());
  ASSERT_EQ(responses.size(), 2U);
  EXPECT_THAT(responses[0].body, HasSubstr(R"("remaining":0)"));
  EXPECT_EQ(responses[1].body, "OK");
  ASSERT_EQ(wire.store.waiting.size(), 1U);
  wire.store.answer();
  EXPECT_EQ(parse_response(wire.take()).status, 429);
  EXPECT_TRUE(wire.connection().wants_input());
}

TEST(HttpConnection, an_array_waits_for_all_its_answers) {
  Wire wire;
  wire.store.slow = true;
  std::string body = "[" + check_body("slow", "0");
  for (int i = 1; i < 6; ++i) body += "," + check_body("slow", std::to_string(i % 3));
  EXPECT_EQ(wire.talk(post("/v1/check", body + "]")), "");
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(wire.take(), "");
    wire.store.answer(i % 2 == 1);
  }
  const Response response = parse_response(wire.take());
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(wire.resumed_count, 1);
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck"))).status, 200);
}

TEST(HttpConnection, a_connection_that_goes_withdraws_its_checks) {
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(post("/v1/check", "[" + check_body("slow", "1") + "," + check_body("slow", "2") + "]")), "");
  ASSERT_EQ(wire.store.waiting.size(), 2U);
  wire.reconnect();
  EXPECT_EQ(wire.store.waiting.size(), 0U);
}

TEST(HttpConnection, input_that_ends_is_answered_as_far_as_it_is_whole) {
  Wire wire;
  const std::string request = get("/healthcheck");
  EXPECT_EQ(parse_responses(wire.talk(request + request + request.substr(0, 20))).size(), 2U);
  wire.connection().end_of_input(wire.clock.now());
  EXPECT_TRUE(wire.connection().finished());
  EXPECT_FALSE(wire.connection().lingers());
}

TEST(HttpConnection, input_that_ends_while_a_store_is_asked) {
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(post("/v1/check", check_body("slow", "1"))), "");
  wire.connection().end_of_input(wire.clock.now());
  EXPECT_FALSE(wire.connection().finished());
  wire.store.answer();
  EXPECT_EQ(parse_response(wire.take()).status, 200);
  EXPECT_TRUE(wire.connection().finished());
}

TEST(HttpConnection, a_peer_that_does_not_read_is_not_served_without_end) {
  Wire wire;
  std::string requests;
  while (requests.size() < 500'000) requests += get("/healthcheck");
  wire.connection().feed(requests, wire.clock.now());
  EXPECT_FALSE(wire.connection().wants_input());
  EXPECT_LT(wire.connection().output().size(), wire.context.options.max_unsent + 1000);
  const std::size_t expected = requests.size() / get("/healthcheck").size();
  EXPECT_EQ(parse_responses(wire.take()).size(), expected);
  EXPECT_TRUE(wire.connection().wants_input());

  wire.connection().feed(get("/healthcheck"), wire.clock.now());
  EXPECT_EQ(wire.connection().deadline(), wire.clock.now().steady + 10'000'000'000);
  wire.clock.advance(seconds(9));
  wire.connection().sent(1, wire.clock.now());
  wire.clock.advance(seconds(9));
  wire.connection().expire(wire.clock.now());
  EXPECT_FALSE(wire.connection().aborted()) << "a byte was taken in between";
  wire.clock.advance(seconds(1));
  wire.connection().expire(wire.clock.now());
  EXPECT_TRUE(wire.connection().aborted());
}

TEST(HttpConnection, slow_heads_and_bodies_time_out) {
  struct Case {
    std::string bytes;
    std::string_view message;
  };
  for (const auto& [bytes, message] :
       std::vector<Case>{{"GET /healthcheck HTT", "the head of the request did not come in time"},
                         {"POST /v1/check HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n{}",
                          "the body of the request did not come in time"}}) {
    Wire wire;
    EXPECT_EQ(wire.talk(bytes), "");
    EXPECT_EQ(wire.connection().deadline(), wire.clock.now().steady + 10'000'000'000);
    wire.clock.advance(seconds(9));
    EXPECT_EQ(wire.talk(bytes.substr(bytes.size() - 1)), "");
    wire.connection().expire(wire.clock.now());
    EXPECT_EQ(wire.take(), "");
    wire.clock.advance(seconds(1));
    wire.connection().expire(wire.clock.now());
    const Response response = parse_response(wire.take());
    EXPECT_EQ(response.status, 408);
    EXPECT_THAT(response.body, HasSubstr(message));
    EXPECT_TRUE(wire.connection().finished());
    EXPECT_FALSE(wire.connection().aborted());
    wire.clock.advance(seconds(2));
    wire.connection().expire(wire.clock.now());
    EXPECT_TRUE(wire.connection().aborted()) << "lingering ends, too";
  }
}

TEST(HttpConnection, empty_lines_do_not_keep_a_connection_open) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck") + "\r\n")).status, 200);
  EXPECT_EQ(wire.connection().deadline(), wire.clock.now().steady + 75'000'000'000) << "one may follow a request";
  EXPECT_EQ(wire.talk("\r\n"), "");
  const std::int64_t deadline = wire.clock.now().steady + 10'000'000'000;
  for (int i = 0; i < 9; ++i) {
    wire.clock.advance(seconds(1));
    EXPECT_EQ(wire.talk("\r"), "");
    EXPECT_EQ(wire.talk("\n"), "");
    EXPECT_EQ(wire.connection().deadline(), deadline);
  }
  wire.clock.advance(seconds(1));
  wire.connection().expire(wire.clock.now());
  EXPECT_EQ(parse_response(wire.take()).status, 408);
  EXPECT_TRUE(wire.connection().finished());
}

TEST(HttpConnection, host_in_its_forms) {
  for (const char* host : {"", "a", "a_b.example:8080", "127.0.0.1:80", "[::1]:8080", "a%20b"}) {
    Wire wire;
    EXPECT_EQ(parse_response(wire.talk("GET /healthcheck HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n")).status,
              200)
        << host;
  }
}

TEST(HttpConnection, an_idle_connection_is_closed_without_a_word) {
  Wire wire;
  EXPECT_EQ(parse_response(wire.talk(get("/healthcheck"))).status, 200);
  wire.clock.advance(seconds(75) - milliseconds(1));
  wire.connection().expire(wire.clock.now());
  EXPECT_FALSE(wire.connection().finished());
  wire.clock.advance(milliseconds(1));
  wire.connection().expire(wire.clock.now());
  EXPECT_TRUE(wire.connection().finished());
  EXPECT_FALSE(wire.connection().lingers());
  EXPECT_EQ(wire.take(), "");
}

TEST(HttpConnection, draining_closes_what_is_idle_and_finishes_the_rest) {
  Wire idle;
  EXPECT_EQ(parse_response(idle.talk(get("/healthcheck"))).field("Connection"), "");
  idle.connection().drain(idle.clock.now());
  EXPECT_FALSE(idle.connection().finished());
  idle.clock.advance(kDrainGrace - nanoseconds(1));
  idle.connection().expire(idle.clock.now());
  EXPECT_FALSE(idle.connection().finished());
  idle.clock.advance(nanoseconds(1));
  idle.connection().expire(idle.clock.now());
  EXPECT_TRUE(idle.connection().finished());

  Wire busy;
  EXPECT_EQ(parse_response(busy.talk(get("/healthcheck"))).field("Connection"), "");
  busy.connection().drain(busy.clock.now());
  busy.clock.advance(kDrainGrace - nanoseconds(1));
  EXPECT_EQ(parse_response(busy.talk(get("/healthcheck"))).field("Connection"), "close");
  EXPECT_TRUE(busy.connection().finished());

  Wire half;
  const std::string request = post("/v1/check", check_body("user", "1"));
  EXPECT_EQ(half.talk(request.substr(0, 30)), "");
  half.connection().drain(half.clock.now());
  EXPECT_FALSE(half.connection().finished());
  EXPECT_EQ(parse_response(half.talk(request.substr(30))).field("Connection"), "close");
  EXPECT_TRUE(half.connection().finished());

  Wire asked;
  asked.store.slow = true;
  EXPECT_EQ(asked.talk(request), "");
  asked.connection().drain(asked.clock.now());
  EXPECT_FALSE(asked.connection().finished());
  asked.store.answer();
  EXPECT_EQ(parse_response(asked.take()).field("Connection"), "close");
  EXPECT_TRUE(asked.connection().finished());
}

TEST(HttpConnection, draining_answers_all_that_had_come) {
  const std::string request = post("/v1/check", check_body("user", "1"));
  Wire wire;
  wire.store.slow = true;
  EXPECT_EQ(wire.talk(request + request + request), "");
  wire.connection().drain(wire.clock.now());
  for (int i = 0; i < 2; ++i) {
    wire.store.answer();
    EXPECT_EQ(parse_response(wire.take()).field("Connection"), "");
  }
  wire.store.answer();
  EXPECT_EQ(parse_response(wire.take()).field("Connection"), "close");
  EXPECT_TRUE(wire.connection().finished());

  // But one who never stops asking is told to.
  Wire endless;
  endless.store.slow = true;
  EXPECT_EQ(endless.talk(request + request), "");
  endless.connection().drain(endless.clock.now());
  endless.clock.advance(kDrainGrace);
  endless.store.answer();
  EXPECT_EQ(parse_response(endless.take()).field("Connection"), "close");
  EXPECT_TRUE(endless.connection().finished());
}

}  // namespace
}  // namespace sluice::http
