// The small pieces: JSON text, proto3 numbers, Accept, response heads.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <string>

#include "front/http/accept.h"
#include "front/http/json_text.h"
#include "front/http/proto_number.h"
#include "front/http/response.h"

namespace sluice::http {
namespace {

using std::chrono::nanoseconds;

std::string seconds(std::int64_t ticks) {
  std::string out;
  append_seconds(out, nanoseconds(ticks));
  return out;
}

bool wants_problem(std::string_view accept) {
  AcceptPreference preference;
  preference.add(accept);
  return preference.wants_problem();
}

TEST(JsonText, seconds_are_exact_decimals) {
  EXPECT_EQ(seconds(0), "0");
  EXPECT_EQ(seconds(1), "0.000000001");
  EXPECT_EQ(seconds(100'000'000), "0.1");
  EXPECT_EQ(seconds(3'000'000'000), "3");
  EXPECT_EQ(seconds(10'500'000'000), "10.5");
  EXPECT_EQ(seconds(3'162'240'000'000'000'000), "3162240000");
}

TEST(JsonText, strings_are_escaped) {
  std::string out;
  append_json_string(out, std::string_view("a\"b\\c\n\0é", 9));
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\u000a\\u0000é\"");
}

TEST(ProtoNumber, reads_any_notation_of_a_whole_number) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(parse_proto_unsigned("0", most), 0U);
  EXPECT_EQ(parse_proto_unsigned("18446744073709551615", most), most);
  EXPECT_EQ(parse_proto_unsigned("1.0", most), 1U);
  EXPECT_EQ(parse_proto_unsigned("1.5e1", most), 15U);
  EXPECT_EQ(parse_proto_unsigned("50E-1", most), 5U);
  EXPECT_EQ(parse_proto_unsigned("1e+3", most), 1000U);
  EXPECT_EQ(parse_proto_unsigned("0.00e99999999999999999999", most), 0U);
  EXPECT_EQ(parse_proto_unsigned("7", 7), 7U);
  EXPECT_EQ(parse_proto_unsigned("0", 0), 0U);
}

TEST(ProtoNumber, refuses_all_others) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::string_view token : {"", "-1", "-0", "1.5", "5e-1", "18446744073709551616", "1e20",
                                       "1e99999999999999999999", " 1", "1 ", "+1", "0x1", "01", "1.", "1e", "NaN"}) {
    EXPECT_EQ(parse_proto_unsigned(token, most), std::nullopt) << token;
  }
  EXPECT_EQ(parse_proto_unsigned("8", 7), std::nullopt);
  EXPECT_EQ(parse_proto_unsigned("70", 7), std::nullopt);
  EXPECT_EQ(parse_proto_unsigned("4294967296", 4294967295U), std::nullopt);
}

TEST(Accept, problem_documents_only_when_asked_for) {
  EXPECT_FALSE(wants_problem(""));
  EXPECT_FALSE(wants_problem("*/*"));
  EXPECT_FALSE(wants_problem("application/json"));
  EXPECT_FALSE(wants_problem("application/json, application/problem+json"));
  EXPECT_FALSE(wants_problem("application/problem+json;q=0"));
  EXPECT_FALSE(wants_problem("application/problem+json;q=0.5, application/json;q=0.8"));
  EXPECT_TRUE(wants_problem("application/problem+json"));
  EXPECT_TRUE(wants_problem("Application/Problem+JSON , */*"));
  EXPECT_TRUE(wants_problem("application/problem+json, application/json"));
  EXPECT_TRUE(wants_problem("application/json;q=0.5, application/problem+json;charset=utf-8;q=0.8"));
  EXPECT_FALSE(wants_problem("application/*, application/problem+json;q=0.9"));
  EXPECT_FALSE(wants_problem(",;,;q=,"));
}

TEST(Accept, several_fields_count_as_one) {
  AcceptPreference preference;
  preference.add("application/json");
  preference.add("application/problem+json");
  EXPECT_FALSE(preference.wants_problem());
}

TEST(Response, dates_follow_rfc_9110) {
  DateCache date;
  EXPECT_EQ(date.text(784'111'777'999'999'999), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date.text(784'111'778'000'000'000), "Sun, 06 Nov 1994 08:49:38 GMT");
  EXPECT_EQ(date.text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST(Response, head_is_complete) {
  const std::array<front::Header, 1> fields = {{{"Retry-After", "1"}}};
  std::string out;
  append_head({.status = 405,
               .content_type = "text/plain",
               .content_length = 12,
               .date = "D",
               .allow = "GET",
               .connection = ConnectionField::close,
               .no_store = true},
              fields, out);
  EXPECT_EQ(
      out,
      "HTTP/1.1 405 Method Not Allowed\r\nDate: D\r\nContent-Type: text/plain\r\nContent-Length: 12\r\nAllow: GET\r\n"
      "Cache-Control: no-store\r\nRetry-After: 1\r\nConnection: close\r\n\r\n");
}

}  // namespace
}  // namespace sluice::http
