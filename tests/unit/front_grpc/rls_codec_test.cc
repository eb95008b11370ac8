#include "front/grpc/rls_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

#include "tests/unit/front_grpc/answer_builder.h"

namespace sluice::front::grpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_support::allowed;
using testing_support::AnswerBuilder;
using testing_support::denied;
using namespace std::string_literals;

constexpr HeaderOptions kNoHeaders{.retry_after = false, .rate_limit = false, .x_rate_limit = false};

/// A length-delimited field.
std::string field(int number, std::string_view bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7U) out += static_cast<char>(size | 0x80U);
  out += static_cast<char>(size);
  return out.append(bytes);
}

std::string entry(std::string_view key, std::string_view value) { return field(1, field(1, key) + field(2, value)); }

std::string encode(AnswerBuilder& builder, const HeaderOptions& options = kNoHeaders) {
  HeaderList headers;
  std::string out;
  encode_response(builder.answer(), options, headers, out);
  return out;
}

// Made by protoc from proto/, from
//   domain: "shop"
//   descriptors { entries { key: "user" value: "42" } entries { key: "path" value: "/a" } }
//   descriptors { entries { key: "ip" value: "10.0.0.1" } limit { requests_per_unit: 300 unit: MONTH } hits_addend {} }
//   descriptors { entries { key: "bytes" } hits_addend { value: 1000000000000 } }
//   hits_addend: 3
constexpr std::string_view kGoldenRequest(
    "\x0a\x04shop\x12\x18\x0a\x0a\x0a\x04user\x12\x02\x34\x32\x0a\x0a\x0a\x04path\x12\x02/a\x12\x19\x0a\x0e\x0a\x02ip"
    "\x12\x08\x31\x30.0.0.1\x12\x05\x08\xac\x02\x10\x05\x1a\x00\x12\x12\x0a\x07\x0a\x05"
    "bytes\x1a\x07\x08\x80\xa0\x94\xa5\x8d\x1d\x18\x03",
    81);

TEST(RequestDecoder, GoldenBytes) {
  RequestDecoder decoder;
  ASSERT_TRUE(decoder.decode(kGoldenRequest)) << decoder.error();
  const Request& request = decoder.request();
  EXPECT_EQ(request.domain, "shop");
  EXPECT_EQ(request.cost, 3U);
  ASSERT_EQ(request.descriptors.size(), 3U);

  const Descriptor& user = request.descriptors[0];
  ASSERT_EQ(user.entries.size(), 2U);
  EXPECT_EQ(user.entries[0].key, "user");
  EXPECT_EQ(user.entries[0].value, "42");
  EXPECT_EQ(user.entries[1].key, "path");
  EXPECT_EQ(user.entries[1].value, "/a");
  EXPECT_FALSE(user.cost.has_value());
  EXPECT_FALSE(user.limit.has_value());

  const Descriptor& ip = request.descriptors[1];
  ASSERT_EQ(ip.entries.size(), 1U);
  EXPECT_EQ(ip.entries[0].value, "10.0.0.1");
  EXPECT_EQ(ip.cost, 0U);
  ASSERT_TRUE(ip.limit.has_value());
  EXPECT_EQ(ip.limit->requests_per_unit, 300U);
  EXPECT_EQ(ip.limit->unit, Unit::month);

  const Descriptor& bytes = request.descriptors[2];
  ASSERT_EQ(bytes.entries.size(), 1U);
  EXPECT_EQ(bytes.entries[0].key, "bytes");
  EXPECT_EQ(bytes.entries[0].value, "");
  EXPECT_EQ(bytes.cost, 1'000'000'000'000U);
}

TEST(RequestDecoder, ViewsPointIntoTheMessage) {
  RequestDecoder decoder;
  ASSERT_TRUE(decoder.decode(kGoldenRequest));
  const std::string_view value = decoder.request().descriptors[0].entries[0].value;
  EXPECT_GE(value.data(), kGoldenRequest.data());
  EXPECT_LT(value.data(), kGoldenRequest.data() + kGoldenRequest.size());
}

TEST(RequestDecoder, CanBeUsedAgain) {
  RequestDecoder decoder;
  ASSERT_TRUE(decoder.decode(kGoldenRequest));
  EXPECT_FALSE(decoder.decode("\x0a\x09short"));
  const std::string message = field(1, "d") + field(2, entry("k", "v"));
  ASSERT_TRUE(decoder.decode(message));
  EXPECT_EQ(decoder.request().domain, "d");
  EXPECT_EQ(decoder.request().cost, 1U);
  EXPECT_EQ(decoder.request().descriptors.size(), 1U);
}

TEST(RequestDecoder, EmptyMessageIsAnEmptyRequest) {
  RequestDecoder decoder;
  ASSERT_TRUE(decoder.decode(""));
  EXPECT_EQ(decoder.request().domain, "");
  EXPECT_TRUE(decoder.request().descriptors.empty());
}

// At request level 0 hits count as 1; a descriptor's own 0 looks without taking.
TEST(RequestDecoder, public_report_67) {
  RequestDecoder decoder;
  ASSERT_TRUE(decoder.decode(field(1, "d") + field(2, entry("k", "v")) + field(2, entry("k", "v") + field(3, "")) +
                             "\x18\x00"s));
  EXPECT_EQ(decoder.request().cost, 1U);
  EXPECT_FALSE(decoder.request().descriptors[0].cost.has_value());
  EXPECT_EQ(decoder.request().descriptors[1].cost, 0U);
}

TEST(RequestDecoder, LargestHits) {
  RequestDecoder decoder;
  const std::string most_uint64 = "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  ASSERT_TRUE(decoder.decode(field(2, entry("k", "v") + field(3, most_uint64)) + "\x18\xff\xff\xff\xff\x0f"));
  EXPECT_EQ(decoder.request().cost, 4'294'967'295U);
  EXPECT_EQ(decoder.request().descriptors[0].cost, UINT64_MAX);
}

TEST(RequestDecoder, UnknownFieldsAndWireTypesAreSkipped) {
  RequestDecoder decoder;
  const std::string unknown = field(14, "later") + "\x78\x05"s;
  const std::string domain_as_number = "\x08\x07";
  const std::string message = unknown + field(1, "d") + domain_as_number +
                              field(2, unknown + field(1, unknown + field(1, "k") + field(2, "v")));
  ASSERT_TRUE(decoder.decode(message)) << decoder.error();
  EXPECT_EQ(decoder.request().domain, "d");
  EXPECT_EQ(decoder.request().descriptors[0].entries[0].key, "k");
}

TEST(RequestDecoder, AnyBytesCanBeValues) {
  RequestDecoder decoder;
  const std::string value = "\x00\xff\xfe {}|"s;
  const std::string message = field(2, entry("k", value));
  ASSERT_TRUE(decoder.decode(message));
  EXPECT_EQ(decoder.request().descriptors[0].entries[0].value, value);
}

TEST(RequestDecoder, EveryTruncationIsToldOrIsAShorterRequest) {
  RequestDecoder decoder;
  int refused = 0;
  for (std::size_t size = 0; size < kGoldenRequest.size(); ++size) {
    if (decoder.decode(kGoldenRequest.substr(0, size))) continue;
    ++refused;
    EXPECT_EQ(decoder.code(), StatusCode::invalid_argument);
    EXPECT_THAT(std::string(decoder.error()), HasSubstr("RateLimitRequest is not valid protobuf"));
  }
  // Between two fields of the request a cut cannot be seen.
  EXPECT_EQ(refused, static_cast<int>(kGoldenRequest.size()) - 5);
}

TEST(RequestDecoder, MalformedBytesAreInvalid) {
  RequestDecoder decoder;
  for (const std::string& message : {
           "\xff"s,                                              // a tag without its end
           "\x00\x01"s,                                          // field number 0
           "\x0b\x0c"s,                                          // a group
           "\x0f\x01"s,                                          // wire type 7
           "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s,  // a number of eleven bytes
           "\x0a\xff\xff\xff\xff\x0fx"s,                         // a length beyond the end
           field(2, "\x20"),                                     // a bool without a value
           field(2, field(3, "\x08")),
           field(2, field(1, "\x0a\x05x")),
       }) {
    EXPECT_FALSE(decoder.decode(message)) << testing::PrintToString(message);
    EXPECT_EQ(decoder.code(), StatusCode::invalid_argument);
  }
}

TEST(RequestDecoder, DescriptorsAreBounded) {
  RequestDecoder decoder;
  std::string message = field(1, "d");
  for (std::size_t i = 0; i < kMaxDescriptors; ++i) message += field(2, entry("k", "v"));
  EXPECT_TRUE(decoder.decode(message));
  message += field(2, entry("k", "v"));
  EXPECT_FALSE(decoder.decode(message));
  EXPECT_EQ(decoder.code(), StatusCode::invalid_argument);
  EXPECT_EQ(decoder.error(), "more than 100 descriptors in a request");
}

TEST(RequestDecoder, EntriesAreBounded) {
  RequestDecoder decoder;
  std::string entries;
  for (std::size_t i = 0; i < kMaxEntries / 2; ++i) entries += entry("k", "v");
  const std::string half = field(2, entries);
  EXPECT_TRUE(decoder.decode(half + half));
  EXPECT_FALSE(decoder.decode(half + half + field(2, entry("k", "v"))));
  EXPECT_EQ(decoder.code(), StatusCode::invalid_argument);
  EXPECT_EQ(decoder.error(), "more than 1000 descriptor entries in a request");
}

TEST(RequestDecoder, NegativeHitsAreRefusedNotCharged) {
  RequestDecoder decoder;
  EXPECT_TRUE(decoder.decode(field(2, entry("k", "v") + "\x20\x00"s)));
  EXPECT_FALSE(decoder.decode(field(2, entry("k", "v") + "\x20\x01")));
  EXPECT_EQ(decoder.code(), StatusCode::unimplemented);
  EXPECT_THAT(std::string(decoder.error()), HasSubstr("is_negative_hits"));
}

TEST(RequestDecoder, UnitsOfOverrides) {
  RequestDecoder decoder;
  const auto with_unit = [](char unit) { return field(2, entry("k", "v") + field(2, "\x08\x05\x10"s + unit)); };
  for (char unit = 1; unit <= 7; ++unit) {
    ASSERT_TRUE(decoder.decode(with_unit(unit))) << int{unit};
    EXPECT_EQ(static_cast<int>(decoder.request().descriptors[0].limit->unit), unit);
  }
  for (const char unit : {char{0}, char{8}, char{127}}) {
    EXPECT_FALSE(decoder.decode(with_unit(unit))) << int{unit};
    EXPECT_EQ(decoder.code(), StatusCode::invalid_argument);
    EXPECT_THAT(std::string(decoder.error()), HasSubstr("unit " + std::to_string(int{unit})));
  }
}

TEST(EncodeResponse, GoldenBytes) {
  AnswerBuilder builder;
  policy::Rule& article = builder.bucket("ArticleCreate", 10, seconds(1), 30);
  article.requests_per_unit = 10;
  article.unit = Unit::second;
  policy::Rule& plan = builder.window("", 1000, hours(168));
  plan.requests_per_unit = 1000;
  plan.unit = Unit::week;
  policy::Rule& free = builder.bucket("", 0, seconds(1), 1);
  free.unlimited = true;
  const Decision over = denied(1000, 0, Wait(hours(168)), hours(168));
  builder.status(article, allowed(30, 29, milliseconds(100))).status(plan, over);
  builder.answer().statuses.emplace_back();
  builder.status(free, Decision{}).decided_by(plan, over);
  const HeaderOptions options{.retry_after = true, .rate_limit = false, .x_rate_limit = false};

  // Made by protoc from proto/, from
  //   overall_code: OVER_LIMIT
  //   statuses { code: OK current_limit { requests_per_unit: 10 unit: SECOND name: "ArticleCreate" }
  //              limit_remaining: 29 duration_until_reset { seconds: 1 } }
  //   statuses { code: OVER_LIMIT current_limit { requests_per_unit: 1000 unit: WEEK }
  //              duration_until_reset { seconds: 604800 } }
  //   statuses { code: OK }
  //   statuses { code: OK limit_remaining: 4294967295 }
  //   response_headers_to_add { key: "Retry-After" value: "604800" }
  EXPECT_EQ(encode(builder, options),
            "\x08\x02\x12\x1d\x08\x01\x12\x13\x08\x0a\x10\x01\x1a\x0d"
            "ArticleCreate\x18\x1d\x22\x02\x08\x01\x12\x0f\x08\x02\x12\x05\x08\xe8\x07\x10\x07\x22\x04\x08\x80\xf5\x24"
            "\x12\x02\x08\x01\x12\x08\x08\x01\x18\xff\xff\xff\xff\x0f\x1a\x15\x0a\x0bRetry-After\x12\x06"
            "604800"s);
}

TEST(EncodeResponse, RemainingEndsAtUint32) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("", kMaxRate, seconds(1), kMaxTokens);
  rule.requests_per_unit = 1;
  builder.only(rule, allowed(kMaxTokens, kMaxTokens - 1, seconds(1)));
  EXPECT_EQ(encode(builder), "\x08\x01\x12\x10\x08\x01\x12\x02\x08\x01\x18\xff\xff\xff\xff\x0f\x22\x02\x08\x01"s);
}

TEST(EncodeResponse, NoResetWhenNever) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("", 0, seconds(1), 5);
  Decision decision = allowed(5, 4, seconds(0));
  decision.reset_after = Wait::never();
  builder.only(rule, decision);
  EXPECT_EQ(encode(builder), "\x08\x01\x12\x06\x08\x01\x12\x00\x18\x04"s);
}

TEST(EncodeResponse, ResetAtOnceIsADurationOfZero) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("", 1, seconds(1), 5);
  builder.only(rule, allowed(5, 5, seconds(0)));
  EXPECT_EQ(encode(builder), "\x08\x01\x12\x08\x08\x01\x12\x00\x18\x05\x22\x00"s);
}

// Denied without figures: the caller is refused, as an error would let Envoy fail open.
TEST(EncodeResponse, StoreFailureThatDeniesIsOverLimitWithoutFigures) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("api", 10, seconds(1), 30);
  rule.requests_per_unit = 10;
  Decision decision;
  decision.allowed = false;
  decision.source = Source::fallback_deny;
  builder.only(rule, decision);
  builder.answer().has_figures = false;
  EXPECT_EQ(encode(builder, HeaderOptions{}), "\x08\x02\x12\x02\x08\x02"s);
}

TEST(EncodeResponse, StoreFailureThatAllowsHasNoFigures) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("api", 10, seconds(1), 30);
  rule.requests_per_unit = 10;
  Decision decision;
  decision.source = Source::fallback_allow;
  builder.only(rule, decision);
  EXPECT_EQ(encode(builder, HeaderOptions{}), "\x08\x01\x12\x02\x08\x01"s);
}

TEST(EncodeResponse, LongNames) {
  AnswerBuilder builder;
  const std::string name(300, 'n');
  policy::Rule& rule = builder.bucket(name, 1, seconds(1), 5);
  builder.only(rule, allowed(5, 5, seconds(0)));
  EXPECT_EQ(encode(builder), "\x08\x01\x12\xb8\x02\x08\x01\x12\xaf\x02\x1a\xac\x02"s + name + "\x18\x05\x22\x00"s);
}

TEST(EncodeResponse, UnknownDomainHasStatusesWithoutLimit) {
  AnswerBuilder builder;
  builder.answer().known_domain = false;
  builder.answer().statuses.resize(2);
  EXPECT_EQ(encode(builder, HeaderOptions{}), "\x08\x01\x12\x02\x08\x01\x12\x02\x08\x01"s);
}

}  // namespace
}  // namespace sluice::front::grpc
