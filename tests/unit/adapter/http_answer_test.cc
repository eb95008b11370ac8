// A decision as an HTTP client sees it.
#include "sluice/http_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>

#include "sluice/fixed_window.h"
#include "sluice/http_limits.h"
#include "sluice/sliding_log.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

std::map<std::string, std::string> fields_of(const HttpAnswer& answer) {
  std::map<std::string, std::string> fields;
  for (const HttpHeader& field : answer.headers.fields()) {
    EXPECT_TRUE(fields.emplace(field.name, field.value).second) << "twice: " << field.name;
  }
  return fields;
}

Time at(std::chrono::nanoseconds time) { return {.steady = time.count(), .utc = time.count()}; }

constexpr Limit kLog{.algorithm = Algorithm::sliding_log, .rate = 10, .period = 60s};
constexpr Limit kWindow{.algorithm = Algorithm::fixed_window, .rate = 5, .period = 60s};

TEST(HttpAnswer, RetryAfterIsRoundedUpAndNeverZero_public_report_31) {
  const Decision decision{.allowed = false, .limit = 10, .retry_after = Wait(105'700us), .reset_after = Wait(1s)};
  const HttpAnswer answer = http_answer(decision, {.rate = 10, .burst = 10}, "api");
  EXPECT_EQ(answer.status, 429U);
  EXPECT_EQ(fields_of(answer).at("Retry-After"), "1");
  EXPECT_EQ(answer.body, R"({"msg":"rate limit exceeded","retry_after":1})");
}

TEST(HttpAnswer, WaitingAsLongAsToldIsEnough_public_report_32) {
  FixedWindow window({.rate = 5, .period = 60s});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(window.try_acquire(1, at(600s + 100ms)).allowed);
  const Decision decision = window.try_acquire(1, at(600s + 400ms));
  EXPECT_EQ(fields_of(http_answer(decision, kWindow, "api")).at("Retry-After"), "60");
  EXPECT_TRUE(window.try_acquire(1, at(660s + 400ms)).allowed);
}

TEST(HttpAnswer, RetryAfterIsThatOfThisCall_public_report_33) {
  SlidingLog log({.rate = 10, .period = 60s});
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(log.try_acquire(1, at(i * 2s)).allowed);
  EXPECT_EQ(fields_of(http_answer(log.try_acquire(1, at(20s)), kLog, "api")).at("Retry-After"), "40");
}

TEST(HttpAnswer, TheOldestEntryIsWaitedFor_public_report_34) {
  SlidingLog log({.rate = 2, .period = 60s});
  EXPECT_TRUE(log.try_acquire(1, at(0s)).allowed);
  EXPECT_TRUE(log.try_acquire(1, at(10s)).allowed);
  EXPECT_EQ(fields_of(http_answer(log.try_acquire(1, at(20s)), kLog, "api")).at("Retry-After"), "40");
}

TEST(HttpAnswer, FiguresAreOfTheInstantOfTheDecision_public_report_35) {
  FixedWindow window({.rate = 5, .period = 60s});
  const Decision decision = window.try_acquire(1, at(59'999'500us));
  EXPECT_EQ(fields_of(http_answer(decision, kWindow, "api")).at("X-RateLimit-Reset"), "1");
}

TEST(HttpAnswer, SeveralLimitsAreOneValueOfEachField_public_report_36) {
  Limiter limiter({.policy_text = R"(
domain: shop
descriptors:
  - key: minute
    rate_limit: { name: PerMinute, algorithm: token_bucket, unit: minute, requests_per_unit: 10 }
  - key: hour
    rate_limit: { name: PerHour, algorithm: token_bucket, unit: hour, requests_per_unit: 1000 }
)"});
  HttpLimits limits(limiter);
  HttpAnswer answer;
  limits.check(LimiterRequest{.domain = "shop", .descriptors = {{{"hour", "1"}}, {{"minute", "1"}}}}, HttpRequest(),
               answer);
  const auto fields = fields_of(answer);
  EXPECT_EQ(fields.at("X-RateLimit-Limit"), "10");
  EXPECT_EQ(fields.at("X-RateLimit-Remaining"), "9");
  EXPECT_EQ(fields.at("RateLimit-Policy"), R"("PerHour";q=1000;w=3600, "PerMinute";q=10;w=60)");
}

TEST(HttpAnswer, RetryAfterIsNotEarlierThanTheEffectiveWindow_public_report_37) {
  const Decision decision{.allowed = false, .limit = 10, .retry_after = Wait(39'001ms), .reset_after = Wait(60s)};
  const auto fields = fields_of(http_answer(decision, kLog, "api"));
  EXPECT_EQ(fields.at("RateLimit"), R"("api";r=0;t=40)");
  EXPECT_EQ(fields.at("Retry-After"), "40");
}

TEST(HttpAnswer, WhatCanNeverFitHasNoRetryAfter) {
  const Decision decision{.allowed = false, .limit = 10, .remaining = 10, .retry_after = Wait::never()};
  const HttpAnswer answer = http_answer(decision, kLog, "api", "application/problem+json");
  EXPECT_EQ(fields_of(answer).count("Retry-After"), 0U);
  EXPECT_EQ(answer.content_type, "application/problem+json");
}

TEST(HttpLimits, WithoutAPolicysRequestsNothingIsLetIn) {
  Limiter limiter({.policy_text = "domain: shop\ndescriptors: []\n"});
  HttpLimits limits(limiter);
  HttpAnswer answer;
  limits.check(HttpRequest(), answer);
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.status, 503U);
  EXPECT_THAT(answer.body, ::testing::HasSubstr(R"({"error":"no_requests")"));
}

TEST(HttpLimits, KeysThatAreNoneAreAMistakeOfTheProgram) {
  Limiter limiter({.policy_text = "domain: shop\ndescriptors: []\n"});
  HttpLimits limits(limiter);
  HttpAnswer answer;
  limits.check(LimiterRequest{.domain = "", .descriptors = {{{"user", "7"}}}}, HttpRequest(), answer);
  EXPECT_EQ(answer.reason, HttpAnswer::Reason::invalid_keys);
  EXPECT_EQ(answer.status, 500U);
}

}  // namespace
}  // namespace sluice
