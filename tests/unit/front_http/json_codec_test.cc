#include "front/http/json_codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/front_http/answers.h"

namespace sluice::http {
namespace {

std::string show(const Request& request) {
  std::string out(request.domain);
  out += '{';
  for (const Descriptor& descriptor : request.descriptors) {
    for (const Entry& entry : descriptor.entries) {
      out += std::string(entry.key) + '=' + std::string(entry.value) + ',';
    }
    if (descriptor.cost) out += ':' + std::to_string(*descriptor.cost);
    if (descriptor.limit) {
      out += '@' + std::to_string(descriptor.limit->requests_per_unit) + '/' +
             std::to_string(static_cast<int>(descriptor.limit->unit));
    }
    out += ';';
  }
  return out + '}' + std::to_string(request.cost);
}

std::string decode(std::string_view text) {
  RequestBatch batch;
  DecodeFault fault;
  if (!decode_rate_limit_request(text, batch, fault)) return std::string(fault.code) + ": " + fault.message;
  EXPECT_EQ(batch.requests().size(), 1U);
  return show(batch.requests().front());
}

std::string encode(const limiter::Answer& answer, const front::HeaderList& headers = {}) {
  std::string out;
  encode_rate_limit_response(answer, headers, out);
  return out;
}

TEST(JsonCodec, reads_a_request_by_either_name) {
  EXPECT_EQ(
      decode(R"({"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"},{"key":"l"}]}],"hitsAddend":3})"),
      "d{k=v,l=,;}3");
  EXPECT_EQ(decode(R"({"hits_addend":"3","descriptors":[{"hits_addend":"0","entries":[{"key":"k","value":"v"}],
                       "limit":{"requests_per_unit":"7","unit":"HOUR"}}],"domain":"d"})"),
            "d{k=v,:0@7/3;}3");
  EXPECT_EQ(
      decode(
          R"({"domain":"d","descriptors":[{"hitsAddend":18446744073709551615,"limit":{"requestsPerUnit":7.0,"unit":7}}]})"),
      "d{:18446744073709551615@7/7;}1");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"limit":{"unit":"SECOND"}}]})"), "d{@0/1;}1");
}

TEST(JsonCodec, null_is_the_default) {
  EXPECT_EQ(decode(R"({"domain":null,"descriptors":null,"hitsAddend":null})"), "{}1");
  EXPECT_EQ(decode(R"({"descriptors":[{"entries":null,"limit":null,"hitsAddend":null}]})"), "{;}1");
  EXPECT_EQ(decode(R"({"descriptors":[{"entries":[{"key":null,"value":null}]}]})"), "{=,;}1");
  EXPECT_EQ(decode("{}"), "{}1");
}

TEST(JsonCodec, negative_hits_are_known_and_not_supported) {
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"isNegativeHits":false},{"is_negative_hits":null}]})"), "d{;;}1");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"isNegativeHits":true}]})"),
            "invalid_request: line 1, column 48: is_negative_hits is not supported: nothing was charged or refunded");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"isNegativeHits":1}]})"),
            "invalid_request: line 1, column 48: expected a boolean, found a number");
  EXPECT_EQ(decode(R"({"domain":"d","descriptors":[{"isNegativeHits":tru}]})"),
            "invalid_json: line 1, column 48: expected true, false or null, found 't'");
}

TEST(JsonCodec, request_level_hits_of_zero_count_as_one) {
  EXPECT_EQ(decode(R"({"domain":"d","hitsAddend":0})"), "d{}1");
  EXPECT_EQ(decode(R"({"domain":"d","hitsAddend":4294967295})"), "d{}4294967295");
}

TEST(JsonCodec, refuses_with_the_place) {
  struct Case {
    std::string_view text;
    std::string_view fault;
  };
  for (const auto& [text, fault] : std::vector<Case>{
           {"", "invalid_json: line 1, column 1: expected a value, found the end of the text"},
           {"[]", "invalid_request: line 1, column 1: expected RateLimitRequest, found an array"},
           {"null", "invalid_request: line 1, column 1: expected RateLimitRequest, found null"},
           {R"({"domian":"d"})", "invalid_request: line 1, column 2: unknown field \"domian\" in RateLimitRequest"},
           {R"({"domain":"d","domain":"d"})", "invalid_request: line 1, column 15: field \"domain\" is given twice"},
           {R"({"hitsAddend":1,"hits_addend":1})",
            "invalid_request: line 1, column 17: field \"hits_addend\" is given twice"},
           {R"({"hitsAddend":-1})", "invalid_request: line 1, column 15: expected a whole number from 0 to 4294967295"},
           {R"({"hitsAddend":4294967296})",
            "invalid_request: line 1, column 15: expected a whole number from 0 to 4294967295"},
           {R"({"hitsAddend":1.5})",
            "invalid_request: line 1, column 15: expected a whole number from 0 to 4294967295"},
           {R"({"hitsAddend":""})", "invalid_request: line 1, column 15: expected a whole number from 0 to 4294967295"},
           {R"({"hitsAddend":" 1"})",
            "invalid_request: line 1, column 15: expected a whole number from 0 to 4294967295"},
           {R"({"hitsAddend":true})", "invalid_request: line 1, column 15: expected a number, found a boolean"},
           {R"({"hitsAddend":{"value":1}})", "invalid_request: line 1, column 15: expected a number, found an object"},
           {R"({"hitsAddend":"1)",
            "invalid_json: line 1, column 17: expected '\"' at the end of a string, found the end of the text"},
           {R"({"hitsAddend":1x})", "invalid_json: line 1, column 16: expected ',' or '}', found 'x'"},
           {R"({"domain":1})", "invalid_request: line 1, column 11: expected a string, found a number"},
           {R"({"descriptors":{}})", "invalid_request: line 1, column 16: expected an array, found an object"},
           {R"({"descriptors":[null]})",
            "invalid_request: line 1, column 17: expected RateLimitDescriptor, found null"},
           {R"({"descriptors":[{"entries":[{"kay":""}]}]})",
            "invalid_request: line 1, column 30: unknown field \"kay\" in RateLimitDescriptor.Entry"},
           {R"({"descriptors":[{"limit":{"unit":"second"}}]})",
            "invalid_request: line 1, column 34: unit: expected UNKNOWN, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or "
            "YEAR"},
           {R"({"descriptors":[{"limit":{"unit":8}}]})",
            "invalid_request: line 1, column 34: unit: expected UNKNOWN, SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or "
            "YEAR"},
           {R"({"descriptors":[{"limit":{"requestsPerUnit":8}}]})",
            "invalid_request: line 1, column 45: limit: a unit is needed, SECOND … WEEK"},
           {R"({"domain":"d"} {})",
            "invalid_json: line 1, column 16: expected nothing more after the value, found '{'"},
           {"{\"domain\":\"\\ud800\"}", "invalid_json: line 1, column 18: a high surrogate without a low one after it"},
       }) {
    EXPECT_EQ(decode(text), fault) << text;
  }
}

TEST(JsonCodec, depth_and_counts_are_bounded) {
  EXPECT_EQ(decode("{\"descriptors\":[" + std::string(60'000, '[')),
            "invalid_request: line 1, column 17: expected RateLimitDescriptor, found an array");
  std::string many = "{\"descriptors\":[{}";
  for (int i = 1; i < 100; ++i) many += ",{}";
  EXPECT_EQ(decode(many + "]}").size(), 100 + 3);
  EXPECT_EQ(decode(many + ",{}]}"), "invalid_request: line 1, column 317: at most 100 descriptors");
}

TEST(JsonCodec, writes_an_answer_without_default_fields) {
  policy::Rule rule = make_rule("", "user", Algorithm::fixed_window);
  rule.unit = Unit::minute;
  rule.requests_per_unit = 1;
  EXPECT_EQ(encode(make_answer(rule, {.limit = 1, .retry_after = {}, .reset_after = wait_of(28'000), .delay = {}})),
            R"({"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":1,"unit":"MINUTE"},)"
            R"("durationUntilReset":"28s"}]})");
  rule.name = "n";
  rule.requests_per_unit = 0;
  rule.unit = Unit::unknown;
  EXPECT_EQ(encode(make_answer(
                rule, {.allowed = false, .retry_after = Wait::never(), .reset_after = wait_of(100), .delay = {}})),
            R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"n"},)"
            R"("durationUntilReset":"1s"}]})");
}

TEST(JsonCodec, remaining_is_a_32_bit_number) {
  const policy::Rule rule = make_rule("", "user");
  const std::string text = encode(make_answer(
      rule, {.limit = kMaxTokens, .remaining = kMaxTokens, .retry_after = {}, .reset_after = {}, .delay = {}}));
  EXPECT_NE(text.find(R"("limitRemaining":4294967295,"durationUntilReset":"0s")"), std::string::npos);
}

TEST(JsonCodec, unlimited_and_unmatched_descriptors) {
  policy::Rule rule = make_rule("", "user");
  rule.unlimited = true;
  limiter::Answer answer;
  answer.statuses.resize(2);
  answer.statuses[1].rule = &rule;
  EXPECT_EQ(encode(answer),
            R"({"overallCode":"OK","statuses":[{"code":"OK"},{"code":"OK","limitRemaining":4294967295}]})");
}

TEST(JsonCodec, a_failed_store_has_no_figures) {
  const policy::Rule rule = make_rule("n", "user");
  EXPECT_EQ(
      encode(make_answer(
          rule,
          {.allowed = false, .source = Source::fallback_deny, .retry_after = {}, .reset_after = {}, .delay = {}})),
      R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}]})");
}

TEST(JsonCodec, header_fields_are_told_to_the_proxy) {
  front::HeaderList headers;
  headers.add("Retry-After") = "1";
  headers.add("RateLimit") = R"("n";r=0;t=1)";
  EXPECT_EQ(encode({}, headers), R"({"overallCode":"OK","responseHeadersToAdd":[{"key":"Retry-After","value":"1"},)"
                                 R"({"key":"RateLimit","value":"\"n\";r=0;t=1"}]})");
}

}  // namespace
}  // namespace sluice::http
