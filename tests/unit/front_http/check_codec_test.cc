#include "front/http/check_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/front_http/answers.h"

namespace sluice::http {
namespace {

/// A request as text: domain{key=value,…:cost;…}cost
std::string show(const Request& request) {
  std::string out(request.domain);
  out += '{';
  for (const Descriptor& descriptor : request.descriptors) {
    for (const Entry& entry : descriptor.entries) {
      out += std::string(entry.key) + '=' + std::string(entry.value) + ',';
    }
    if (descriptor.cost) out += ':' + std::to_string(*descriptor.cost);
    out += ';';
  }
  return out + '}' + std::to_string(request.cost);
}

/// What was decoded, or the fault.
std::string decode(std::string_view text) {
  RequestBatch batch;
  bool is_array = false;
  DecodeFault fault;
  if (!decode_check(text, batch, is_array, fault)) return std::string(fault.code) + ": " + fault.message;
  std::string out = is_array ? "array " : "";
  for (const Request& request : batch.requests()) out += show(request) + ' ';
  out.pop_back();
  return out;
}

std::string encode(const limiter::Answer& answer) {
  std::string out;
  encode_check(answer, out);
  return out;
}

TEST(CheckCodec, reads_every_form_of_a_descriptor) {
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"user":"42","path":"/x"}]})"), "d{user=42,path=/x,;}1");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[[{"key":"user","value":"42"},{"value":"","key":"user"}]]})"),
            "d{user=42,user=,;}1");
  EXPECT_EQ(
      decode(R"({"descriptors":[{"entries":{"user":"42"},"cost":0},{"cost":7,"entries":[{"key":"a","value":"b"}]}],
                       "cost":1000000000000000,"domain":"d"})"),
      "d{user=42,:0;a=b,:7;}1000000000000000");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"entries":"e","cost":"c"}]})"), "d{entries=e,cost=c,;}1");
  EXPECT_EQ(decode(R"([{"domain":"a","descriptors":[{"k":"1"}]},{"domain":"b","descriptors":[{"k":"2"}],"cost":3}])"),
            "array a{k=1,;}1 b{k=2,;}3");
}

TEST(CheckCodec, refuses_with_path_and_place) {
  struct Case {
    std::string_view text;
    std::string_view fault;
  };
  for (
      const auto& [text, fault] : std::vector<Case>{
          {"", "invalid_json: line 1, column 1: expected a value, found the end of the text"},
          {"{\"domain\":\"d\"", "invalid_json: line 1, column 14: expected ',' or '}', found the end of the text"},
          {"7",
           "invalid_request: expected a request (an object) or an array of requests, found a number (line 1, column "
           "1)"},
          {"[]", "invalid_request: an array without requests (line 1, column 1)"},
          {"[7]", "invalid_request: [0]: expected a request (an object), found a number (line 1, column 2)"},
          {"{}", "invalid_request: a request needs \"domain\" (line 1, column 1)"},
          {R"({"domain":"d"})", "invalid_request: a request needs \"descriptors\" (line 1, column 11)"},
          {R"({"domain":"d","descriptors":[]})", "invalid_request: descriptors: must not be empty (line 1, column 29)"},
          {R"({"domain":""})", "invalid_request: domain: must not be empty (line 1, column 11)"},
          {R"({"domain":7})", "invalid_request: domain: expected a string, found a number (line 1, column 11)"},
          {R"({"domain":null})", "invalid_request: domain: expected a string, found null (line 1, column 11)"},
          {R"({"domain":"d","domain":"e"})", "invalid_request: domain: given twice (line 1, column 15)"},
          {R"({"domains":"d"})",
           "invalid_request: domains: unknown field; a request has domain, descriptors, cost and explain (line 1, "
           "column 2)"},
          {R"({"descriptors":{"user":"42"}})",
           "invalid_request: descriptors: expected an array of descriptors, found an object (line 1, column 16)"},
          {R"({"descriptors":[{"user":42}]})",
           "invalid_request: descriptors[0].user: expected a string, found a number (line 1, column 25)"},
          {R"({"descriptors":[{"user":"1"},{}]})",
           "invalid_request: descriptors[1]: a descriptor needs at least one entry (line 1, column 30)"},
          {R"({"descriptors":[{"a":"1","b":"2","a":"3"}]})",
           "invalid_request: descriptors[0].a: given twice (line 1, column 38)"},
          {R"({"descriptors":["user"]})",
           "invalid_request: descriptors[0]: expected a descriptor: {\"key\": \"value\", …} or [{\"key\": \"…\", "
           "\"value\": \"…\"}, …], found a string (line 1, column 17)"},
          {R"({"descriptors":[[{"key":"k"}]]})",
           "invalid_request: descriptors[0][0]: an entry needs \"value\" (line 1, column 25)"},
          {R"({"descriptors":[[{"value":"k"}]]})",
           "invalid_request: descriptors[0][0]: an entry needs \"key\" (line 1, column 27)"},
          {R"({"descriptors":[[{"key":"","value":"v"}]]})",
           "invalid_request: descriptors[0][0]: the key must not be empty (line 1, column 36)"},
          {R"({"descriptors":[[{"kay":"k"}]]})",
           "invalid_request: descriptors[0][0].kay: unknown field; an entry has \"key\" and \"value\" (line 1, column "
           "19)"},
          {R"({"descriptors":[{"entries":{"a":"b"},"user":"x"}]})",
           "invalid_request: descriptors[0].user: unknown field; a descriptor in this form has only \"entries\" and "
           "\"cost\" (line 1, column 45)"},
          {R"({"descriptors":[{"user":"x","cost":3}]})",
           "invalid_request: descriptors[0].user: a descriptor with \"entries\" or a cost has nothing else beside them "
           "(line 1, column 36)"},
          {R"({"descriptors":[{"cost":3}]})",
           "invalid_request: descriptors[0]: a descriptor with a cost needs its entries in \"entries\" (line 1, column "
           "25)"},
          {R"({"descriptors":[{"entries":{"a":"b"},"cost":"3"}]})",
           "invalid_request: descriptors[0].cost: expected a whole number from 0 to 1000000000000000, found a string "
           "(line 1, column 45)"},
          {R"({"cost":1.5})",
           "invalid_request: cost: expected a whole number from 0 to 1000000000000000, found 1.5 (line 1, column 9)"},
          {R"({"cost":-1})",
           "invalid_request: cost: expected a whole number from 0 to 1000000000000000, found -1 (line 1, column 9)"},
          {R"({"cost":1000000000000001})",
           "invalid_request: cost: expected a whole number from 0 to 1000000000000000, found 1000000000000001 (line 1, "
           "column 9)"},
          {R"({"cost":99999999999999999999999999999999999999999999})",
           "invalid_request: cost: expected a whole number from 0 to 1000000000000000, found "
           "9999999999999999999999999999999999999999… (line 1, column 9)"},
          {R"([{"domain":"d","descriptors":[{"k":"v"}]},{"domain":"d","descriptors":[{"k":true}]}])",
           "invalid_request: [1].descriptors[0].k: expected a string, found a boolean (line 1, column 77)"},
          {R"({"domain":"d","descriptors":[{"k":"v"}]}x)",
           "invalid_json: line 1, column 41: expected nothing more after the value, found 'x'"},
      }) {
    EXPECT_EQ(decode(text), fault) << text;
  }
}

TEST(CheckCodec, depth_is_bounded_by_what_can_be_meant) {
  const std::string deep(60'000, '[');
  EXPECT_EQ(decode(deep), "invalid_request: [0]: expected a request (an object), found an array (line 1, column 2)");
  EXPECT_EQ(decode("{\"domain\":" + deep),
            "invalid_request: domain: expected a string, found an array (line 1, column 11)");
  EXPECT_EQ(decode("{\"descriptors\":[" + deep),
            "invalid_request: descriptors[0][0]: expected an entry: {\"key\": \"…\", \"value\": \"…\"}, found an array "
            "(line 1, "
            "column 18)");
}

TEST(CheckCodec, counts_are_bounded) {
  const auto repeat = [](std::string_view piece, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + std::string(piece);
    return out;
  };
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[)" + repeat(R"({"k":"v"})", 100) + "]}").substr(0, 2), "d{");
  EXPECT_NE(decode(R"({"domain":"d","descriptors":[)" + repeat(R"({"k":"v"})", 101) + "]}")
                .find("descriptors: more than 100 descriptors in one request"),
            std::string::npos);
  const std::string request = R"({"domain":"d","descriptors":[{"k":"v"}]})";
  EXPECT_EQ(decode('[' + repeat(request, 100) + ']').substr(0, 5), "array");
  EXPECT_NE(decode('[' + repeat(request, 101) + ']').find("more than 100 requests in one array"), std::string::npos);
  const std::string entry = R"({"key":"k","value":"v"})";
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[[)" + repeat(entry, 100) + "]]}").substr(0, 2), "d{");
  EXPECT_NE(decode(R"({"domain":"d","descriptors":[[)" + repeat(entry, 101) + "]]}")
                .find("more than 100 entries in one descriptor"),
            std::string::npos);
}

TEST(CheckCodec, a_batch_is_used_again) {
  RequestBatch batch;
  bool is_array = false;
  DecodeFault fault;
  ASSERT_TRUE(decode_check(R"([{"domain":"\u0061","descriptors":[{"k":"\u0062"}]}])", batch, is_array, fault));
  EXPECT_FALSE(decode_check("{", batch, is_array, fault));
  ASSERT_TRUE(decode_check(R"({"domain":"\u0063","descriptors":[{"k":"\u0064"}]})", batch, is_array, fault));
  ASSERT_EQ(batch.requests().size(), 1U);
  EXPECT_EQ(show(batch.requests().front()), "c{k=d,;}1");
}

TEST(CheckCodec, writes_an_allowed_answer) {
  const policy::Rule rule = make_rule("ArticleCreate", "user");
  const limiter::Answer answer =
      make_answer(rule, {.limit = 30, .remaining = 29, .retry_after = {}, .reset_after = wait_of(100), .delay = {}});
  EXPECT_EQ(encode(answer),
            R"({"allowed":true,"reason":"within_limit","limit_name":"ArticleCreate","source":"memory","limit":30,)"
            R"("remaining":29,"reset_after":0.1,"descriptors":[{"allowed":true,"reason":"within_limit",)"
            R"("limit_name":"ArticleCreate","source":"memory","limit":30,"remaining":29,"reset_after":0.1}]})");
}

TEST(CheckCodec, writes_a_denial) {
  const policy::Rule rule = make_rule("", "user.path_/x");
  const limiter::Answer answer = make_answer(rule, {.allowed = false,
                                                    .source = Source::redis,
                                                    .limit = 30,
                                                    .retry_after = wait_of(100),
                                                    .reset_after = wait_of(3000),
                                                    .delay = {}});
  EXPECT_EQ(
      encode(answer),
      R"({"allowed":false,"reason":"over_limit","limit_name":"user.path_/x","source":"redis","limit":30,)"
      R"("remaining":0,"retry_after":0.1,"reset_after":3,"descriptors":[{"allowed":false,"reason":"over_limit",)"
      R"("limit_name":"user.path_/x","source":"redis","limit":30,"remaining":0,"retry_after":0.1,"reset_after":3}]})");
}

TEST(CheckCodec, never_is_null) {
  const policy::Rule rule = make_rule("n", "user");
  limiter::Answer answer = make_answer(
      rule, {.allowed = false, .limit = 1, .retry_after = Wait::never(), .reset_after = Wait::never(), .delay = {}});
  const std::string figures =
      R"("limit_name":"n","source":"memory","limit":1,"remaining":0,"retry_after":null,"reset_after":null)";
  // A bucket that was spent and never refills is over its limit; a cost that never fits is so whatever the state.
  EXPECT_EQ(encode(answer), R"({"allowed":false,"reason":"over_limit",)" + figures +
                                R"(,"descriptors":[{"allowed":false,"reason":"over_limit",)" + figures + "}]}");
  answer.statuses[0].never_fits = true;
  EXPECT_EQ(encode(answer), R"({"allowed":false,"reason":"never_fits",)" + figures +
                                R"(,"descriptors":[{"allowed":false,"reason":"never_fits",)" + figures + "}]}");
}

TEST(CheckCodec, says_why_when_no_limit_decided) {
  limiter::Answer answer;
  answer.statuses.resize(2);
  EXPECT_EQ(encode(answer),
            R"({"allowed":true,"reason":"no_limit","descriptors":[{"allowed":true,"reason":"no_limit"},)"
            R"({"allowed":true,"reason":"no_limit"}]})");
  answer.known_domain = false;
  answer.statuses.resize(1);
  EXPECT_EQ(encode(answer),
            R"({"allowed":true,"reason":"unknown_domain","descriptors":[{"allowed":true,"reason":"unknown_domain"}]})");
}

TEST(CheckCodec, names_every_other_reason) {
  policy::Rule rule = make_rule("n", "user", Algorithm::fixed_window);
  Decision decision{.mark = Mark::quota_hit, .limit = 5, .retry_after = {}, .reset_after = {}, .delay = {}};
  EXPECT_NE(encode(make_answer(rule, decision)).find(R"("reason":"last_token")"), std::string::npos);

  decision = {.source = Source::fallback_allow, .retry_after = {}, .reset_after = {}, .delay = {}};
  EXPECT_EQ(encode(make_answer(rule, decision)),
            R"({"allowed":true,"reason":"store_unavailable","limit_name":"n","source":"fallback_allow","descriptors":[)"
            R"({"allowed":true,"reason":"store_unavailable","limit_name":"n","source":"fallback_allow"}]})");

  rule.enforcement = store::Enforcement::shadow;
  decision = {.allowed = false, .limit = 5, .retry_after = wait_of(1), .reset_after = wait_of(2), .delay = {}};
  limiter::Answer shadowed = make_answer(rule, decision);
  shadowed.allowed = shadowed.decision.allowed = true;
  shadowed.statuses.front().over_limit = false;
  EXPECT_EQ(
      encode(shadowed),
      R"({"allowed":true,"reason":"shadow","limit_name":"n","source":"memory","limit":5,"remaining":0,)"
      R"("reset_after":0.002,"descriptors":[{"allowed":true,"reason":"shadow","limit_name":"n","source":"memory",)"
      R"("limit":5,"remaining":0,"reset_after":0.002}]})");

  rule = make_rule("n", "user");
  rule.unlimited = true;
  EXPECT_EQ(encode(make_answer(rule, {.retry_after = {}, .reset_after = {}, .delay = {}})),
            R"({"allowed":true,"reason":"unlimited","limit_name":"n","descriptors":[)"
            R"({"allowed":true,"reason":"unlimited","limit_name":"n"}]})");
}

TEST(CheckCodec, a_leaky_bucket_tells_the_delay) {
  const policy::Rule rule = make_rule("n", "user", Algorithm::leaky_bucket);
  const limiter::Answer answer = make_answer(
      rule, {.limit = 3, .remaining = 1, .retry_after = {}, .reset_after = wait_of(200), .delay = wait_of(100)});
  EXPECT_NE(encode(answer).find(R"("reset_after":0.2,"delay":0.1,)"), std::string::npos);
}

TEST(CheckCodec, writes_a_problem_document) {
  const policy::Rule rule = make_rule("ArticleCreate", "user");
  limiter::Answer answer = make_answer(
      rule, {.allowed = false, .limit = 30, .retry_after = wait_of(100), .reset_after = wait_of(3000), .delay = {}});
  std::string out;
  encode_check_problem(answer, 429, out);
  EXPECT_EQ(
      out.find(R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota Exceeded",)"
               R"("status":429,"violated-policies":["ArticleCreate"],"allowed":false,"reason":"over_limit",)"),
      0U);

  answer = make_answer(
      rule, {.allowed = false, .source = Source::fallback_deny, .retry_after = {}, .reset_after = {}, .delay = {}});
  answer.has_figures = false;
  out.clear();
  encode_check_problem(answer, 503, out);
  EXPECT_EQ(out,
            R"({"type":"about:blank","title":"Service Unavailable","status":503,"violated-policies":["ArticleCreate"],)"
            R"("allowed":false,"reason":"store_unavailable","limit_name":"ArticleCreate","source":"fallback_deny",)"
            R"("descriptors":[{"allowed":false,"reason":"store_unavailable","limit_name":"ArticleCreate",)"
            R"("source":"fallback_deny"}]})");
}

}  // namespace
}  // namespace sluice::http
