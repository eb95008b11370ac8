// Spans of decisions over HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "limiter/denial_log.h"
#include "tests/unit/front/span_text.h"
#include "tests/unit/front_http/wire.h"
#include "tracing/tracer.h"

namespace sluice::http {
namespace {

using front::kSampledParent;
using front::text_of;
using testing::StartsWith;
using tracing::Span;

class HttpSpans : public testing::Test {
 protected:
  explicit HttpSpans(double ratio = 0) : tracer_(ratio, wire_.clock) {
    wire_.context.options.tracer = &tracer_;
    limiter::DenialLog::configure(0, limiter::DenialLog::Keys::hashed);
  }
  int say(const std::string& request) { return parse_response(wire_.talk(request)).status; }
  std::vector<Span> take() { return tracer_.take(); }
  /// The one span that there is.
  Span one() {
    std::vector<Span> spans = take();
    EXPECT_EQ(spans.size(), 1U);
    return spans.empty() ? Span() : spans.front();
  }

  Wire wire_;
  tracing::Tracer tracer_;
  const std::string sampled_ = "TraceParent: " + kSampledParent + "\r\n";
};

class AllHttpSpans : public HttpSpans {
 protected:
  AllHttpSpans() : HttpSpans(1) {}
};

TEST_F(HttpSpans, a_decision_is_a_span_of_its_callers_trace) {
  const std::string body = check_body("user", "42", R"(,"cost":2)");
  EXPECT_EQ(say(post("/v1/check", body, sampled_ + "tracestate: a=1\r\nTraceState:  b=2 \r\n")), 200);
  const Span span = one();
  EXPECT_EQ(span.name, "POST /v1/check");
  EXPECT_EQ(span.trace[0], 0x4b);
  EXPECT_EQ(span.parent[1], 0xf0);
  EXPECT_EQ(span.state, "a=1,b=2");
  EXPECT_FALSE(span.failed);
  EXPECT_EQ(text_of(span, "http.request.method"), "POST");
  EXPECT_EQ(text_of(span, "http.route"), "/v1/check");
  EXPECT_EQ(text_of(span, "http.response.status_code"), "200");
  EXPECT_EQ(text_of(span, "sluice.domain"), "shop");
  EXPECT_EQ(text_of(span, "sluice.verdict"), "allowed");
  EXPECT_EQ(text_of(span, "sluice.limit"), "ArticleCreate");
  EXPECT_EQ(text_of(span, "sluice.store"), "memory");
  EXPECT_EQ(text_of(span, "sluice.cost"), "2");
  EXPECT_EQ(text_of(span, "sluice.remaining"), "28");
  EXPECT_THAT(text_of(span, "sluice.key"), StartsWith("#"));
  limiter::DenialLog::configure(0, limiter::DenialLog::Keys::none);
  EXPECT_EQ(
      say(post("/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"user","value":"1"}]}]})", sampled_)),
      200);
  EXPECT_EQ(text_of(one(), "sluice.key"), "-");
}

TEST_F(HttpSpans, what_is_malformed_is_as_if_it_had_not_come) {
  for (const std::string& fields :
       {std::string(), "traceparent: " + kSampledParent.substr(0, 53) + "00\r\n", "traceparent: x\r\n" + sampled_,
        sampled_ + sampled_, std::string("traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01\r\n")}) {
    EXPECT_EQ(say(post("/v1/check", check_body("user", "42"), fields)), 200);
    EXPECT_TRUE(take().empty()) << fields;
  }
  EXPECT_EQ(say(post("/v1/check", check_body("user", "42"), sampled_ + "tracestate: a\r\n")), 200);
  EXPECT_EQ(one().state, "");
  // The fields of a request are not those of the next.
  EXPECT_EQ(say(post("/v1/check", check_body("user", "42"))), 200);
  EXPECT_TRUE(take().empty());
}

TEST_F(AllHttpSpans, looks_verbs_pages_and_mistakes_have_none) {
  EXPECT_EQ(say(post("/v1/peek", check_body("user", "42"))), 200);
  EXPECT_EQ(say(post("/v1/reset", check_body("user", "42"))), 200);
  EXPECT_EQ(say(get("/healthcheck")), 200);
  EXPECT_EQ(say(post("/v1/check", "{")), 400);
  EXPECT_TRUE(take().empty());
  // Nothing could be decided by.
  wire_.policies.set(nullptr);
  EXPECT_EQ(say(post("/v1/check", check_body("user", "42"))), 503);
  const Span span = one();
  EXPECT_TRUE(span.failed);
  EXPECT_EQ(text_of(span, "http.response.status_code"), "503");
  EXPECT_EQ(text_of(span, "sluice.verdict"), "-");
}

TEST_F(AllHttpSpans, verdicts_are_told_apart) {
  const auto verdict = [this](std::string_view key, int status) {
    EXPECT_EQ(say(post("/v1/check", check_body(key, "1"))), status);
    return text_of(one(), "sluice.verdict");
  };
  EXPECT_EQ(verdict("slow", 200), "allowed");
  EXPECT_EQ(verdict("slow", 429), "denied");
  EXPECT_EQ(verdict("shadowed", 200), "allowed");
  EXPECT_EQ(verdict("shadowed", 200), "shadow_denied");
  EXPECT_EQ(verdict("nothing", 200), "allowed");
  EXPECT_EQ(say(post("/v1/check", "[" + check_body("slow", "1") + "," + check_body("user", "1") + "]")), 200);
  EXPECT_EQ(text_of(one(), "sluice.requests"), "2");
}

TEST_F(AllHttpSpans, how_long_the_store_took_is_told) {
  wire_.store.slow = true;
  EXPECT_EQ(wire_.talk(post("/v1/check", check_body("user", "42"))), "");
  EXPECT_TRUE(take().empty());
  wire_.clock.advance(std::chrono::milliseconds(7));
  wire_.store.answer();
  EXPECT_EQ(parse_response(wire_.take()).status, 200);
  const Span span = one();
  EXPECT_EQ(span.ended - span.begun, 7'000'000);
  EXPECT_FALSE(span.has_parent);
}

TEST_F(HttpSpans, forward_auth_reads_the_fields_too) {
  wire_.load(R"(
domain: edge
descriptors:
  - key: user
    rate_limit: { name: PerUser, unit: day, requests_per_unit: 1 }
requests:
  rate_limits:
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
)");
  const auto ask = [this](const std::string& target, const std::string& method) {
    return say(method + " " + target + " HTTP/1.1\r\nHost: sluice\r\nX-User: 1\r\n" + sampled_ + "\r\n");
  };
  EXPECT_EQ(ask("/v1/authorize?domain=edge", "GET"), 200);
  EXPECT_EQ(ask("/v1/ext_authz/article/create?x=1", "FOO"), 429);
  const std::vector<Span> spans = take();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "GET /v1/authorize");
  EXPECT_EQ(text_of(spans[0], "sluice.limit"), "PerUser");
  EXPECT_EQ(spans[1].name, "HTTP /v1/ext_authz");
  EXPECT_EQ(text_of(spans[1], "http.request.method"), "_OTHER");
  EXPECT_EQ(text_of(spans[1], "http.route"), "/v1/ext_authz");
  EXPECT_EQ(text_of(spans[1], "sluice.verdict"), "denied");
}

TEST_F(AllHttpSpans, so_is_a_throttle) {
  wire_.context.throttle_deny_status = 429;
  const std::string body = R"({"key":"k","max_burst":1,"count_per_period":1,"period":60})";
  EXPECT_EQ(say(post("/throttle", body)), 200);
  EXPECT_EQ(text_of(one(), "sluice.verdict"), "allowed");
  EXPECT_EQ(say(post("/throttle", body)), 429);
  const Span span = one();
  EXPECT_EQ(span.name, "POST /throttle");
  EXPECT_EQ(text_of(span, "sluice.verdict"), "denied");
}

}  // namespace
}  // namespace sluice::http
