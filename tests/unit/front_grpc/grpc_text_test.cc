#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "front/grpc/flood_guard.h"
#include "front/grpc/health_codec.h"
#include "front/grpc/status.h"
#include "front/grpc/timeout.h"

namespace sluice::front::grpc {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(ParseTimeout, AllUnits) {
  EXPECT_EQ(parse_timeout("1n"), 1ns);
  EXPECT_EQ(parse_timeout("20u"), 20us);
  EXPECT_EQ(parse_timeout("100m"), 100ms);
  EXPECT_EQ(parse_timeout("5S"), 5s);
  EXPECT_EQ(parse_timeout("2M"), 2min);
  EXPECT_EQ(parse_timeout("3H"), 3h);
  EXPECT_EQ(parse_timeout("0S"), 0s);
  EXPECT_EQ(parse_timeout("00000007S"), 7s);
}

TEST(ParseTimeout, LargestIsCutNotWrapped) {
  EXPECT_EQ(parse_timeout("99999999M"), std::chrono::minutes(99'999'999));
  EXPECT_EQ(parse_timeout("99999999H"), std::chrono::nanoseconds::max());
}

TEST(ParseTimeout, MalformedIsRefused) {
  for (const char* text : {"", "S", "1", "1s", "1h", "123456789S", "-1S", "+1S", "1.5S", " 1S", "1S ", "0x1S", "1 S"}) {
    EXPECT_FALSE(parse_timeout(text).has_value()) << text;
  }
}

TEST(PercentEncoding, OnlyWhatHasToBe) {
  std::string out = "before:";
  append_percent_encoded("50% of\n\"it\" \x7f \xc3\xa9~", out);
  EXPECT_EQ(out, "before:50%25 of%0A\"it\" %7F %C3%A9~");
}

TEST(StatusCodes, HaveTheNumbersOfGrpc) {
  EXPECT_EQ(code_text(StatusCode::ok), "0");
  EXPECT_EQ(code_text(StatusCode::invalid_argument), "3");
  EXPECT_EQ(code_text(StatusCode::deadline_exceeded), "4");
  EXPECT_EQ(code_text(StatusCode::not_found), "5");
  EXPECT_EQ(code_text(StatusCode::resource_exhausted), "8");
  EXPECT_EQ(code_text(StatusCode::unimplemented), "12");
  EXPECT_EQ(code_text(StatusCode::internal), "13");
  EXPECT_EQ(code_text(StatusCode::unavailable), "14");
}

TEST(HealthCodec, Requests) {
  EXPECT_EQ(decode_health_request(""), "");
  EXPECT_EQ(decode_health_request("\x0a\x09ratelimit"), "ratelimit");
  EXPECT_EQ(decode_health_request("\x10\x01\x0a\x01x"), "x");
  EXPECT_FALSE(decode_health_request("\x0a\x09ratel").has_value());
}

TEST(HealthCodec, Services) {
  EXPECT_TRUE(is_health_service(""));
  EXPECT_TRUE(is_health_service("ratelimit"));
  EXPECT_TRUE(is_health_service("envoy.service.ratelimit.v3.RateLimitService"));
  EXPECT_FALSE(is_health_service("other"));
}

TEST(HealthCodec, Responses) {
  std::string out;
  encode_health_response(true, out);
  encode_health_response(false, out);
  EXPECT_EQ(out, "\x08\x01\x08\x02");
}

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(FloodGuard, SpendsItsBudgetAndEarnsItWithTime) {
  FloodGuard guard({.most = 3, .per_second = 2, .per_call = 1}, 0);
  EXPECT_TRUE(guard.take(0));
  EXPECT_TRUE(guard.take(0));
  EXPECT_TRUE(guard.take(0));
  EXPECT_FALSE(guard.take(0));
  EXPECT_FALSE(guard.take(kSecond / 2 - 1));
  EXPECT_TRUE(guard.take(kSecond / 2));
  EXPECT_FALSE(guard.take(kSecond / 2));
}

TEST(FloodGuard, NeverEarnsMoreThanItsBudget) {
  FloodGuard guard({.most = 3, .per_second = 2, .per_call = 1}, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.take(0));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.take(1000 * kSecond)) << i;
  EXPECT_FALSE(guard.take(1000 * kSecond));
}

TEST(FloodGuard, CallsEarnUpToTheBudget) {
  FloodGuard guard({.most = 3, .per_second = 1, .per_call = 2}, 0);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.take(0));
  for (int i = 0; i < 5; ++i) guard.call_answered();
  EXPECT_TRUE(guard.take(0)) << "what comes with the calls";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(guard.take(0)) << i;
  EXPECT_FALSE(guard.take(0));
  for (int i = 0; i < 5; ++i) guard.call_answered();
  EXPECT_TRUE(guard.take(0, 10));
  EXPECT_FALSE(guard.take(0));
}

TEST(FloodGuard, ClockGoingBackEarnsNothing) {
  FloodGuard guard({.most = 1, .per_second = 1, .per_call = 1}, 10 * kSecond);
  EXPECT_TRUE(guard.take(10 * kSecond));
  EXPECT_FALSE(guard.take(0));
}

}  // namespace
}  // namespace sluice::front::grpc
