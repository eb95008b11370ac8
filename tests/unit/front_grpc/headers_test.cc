#include "front/headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/front_grpc/answer_builder.h"

namespace sluice::front {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing_support::allowed;
using testing_support::AnswerBuilder;
using testing_support::denied;
using Fields = std::map<std::string, std::string>;

Fields render(AnswerBuilder& builder, const HeaderOptions& options = {}) {
  HeaderList list;
  render_headers(builder.answer(), options, list);
  Fields fields;
  for (const Header& field : list.fields()) {
    EXPECT_TRUE(fields.emplace(field.name, field.value).second) << field.name << " appears twice";
  }
  return fields;
}

TEST(Headers, AllowedTokenBucket) {
  AnswerBuilder builder;
  builder.only(builder.bucket("ArticleCreate", 10, seconds(1), 30), allowed(30, 29, milliseconds(100)));
  EXPECT_EQ(render(builder), (Fields{{"RateLimit", R"("ArticleCreate";r=29;t=1)"},
                                     {"RateLimit-Policy", R"("ArticleCreate";q=30;w=3)"},
                                     {"X-RateLimit-Limit", "30"},
                                     {"X-RateLimit-Remaining", "29"},
                                     {"X-RateLimit-Reset", "1"}}));
}

TEST(Headers, DeniedTokenBucket) {
  AnswerBuilder builder;
  builder.only(builder.bucket("ArticleCreate", 10, seconds(1), 30), denied(30, 0, Wait(milliseconds(100)), seconds(3)));
  EXPECT_EQ(render(builder), (Fields{{"Retry-After", "1"},
                                     {"RateLimit", R"("ArticleCreate";r=0;t=1)"},
                                     {"RateLimit-Policy", R"("ArticleCreate";q=30;w=3)"},
                                     {"X-RateLimit-Limit", "30"},
                                     {"X-RateLimit-Remaining", "0"},
                                     {"X-RateLimit-Reset", "1"}}));
}

// The exact wait is 105.7 ms: never "0", which would mean at once.
TEST(Headers, public_report_31) {
  AnswerBuilder builder;
  builder.only(builder.bucket("api", 10, seconds(1), 1), denied(1, 0, Wait(microseconds(105'700)), milliseconds(106)));
  EXPECT_EQ(render(builder)["Retry-After"], "1");
}

TEST(Headers, RetryAfterIsAtLeastOneSecond) {
  AnswerBuilder builder;
  builder.only(builder.bucket("api", 10, seconds(1), 1), denied(1, 0, Wait(), seconds(0)));
  EXPECT_EQ(render(builder)["Retry-After"], "1");
}

TEST(Headers, RetryAfterIsRoundedUpOnlyWhenThereIsAFraction) {
  for (const auto& [wait, text] : std::map<std::chrono::nanoseconds, std::string>{
           {std::chrono::nanoseconds(1), "1"},
           {seconds(1), "1"},
           {seconds(1) + std::chrono::nanoseconds(1), "2"},
           {seconds(10), "10"},
       }) {
    AnswerBuilder builder;
    builder.only(builder.bucket("api", 1, seconds(10), 1), denied(1, 0, Wait(wait), seconds(10)));
    EXPECT_EQ(render(builder)["Retry-After"], text) << wait.count();
  }
}

// A window of 60 s, refused 0.4 s after its start: who sleeps as long as the header says finds a new window.
TEST(Headers, public_report_32) {
  AnswerBuilder builder;
  const Wait rest(seconds(60) - milliseconds(400));
  builder.only(builder.window("login", 5, seconds(60)), denied(5, 0, rest, rest.value()));
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("Retry-After"), "60");
  EXPECT_GE(seconds(std::stoi(fields.at("Retry-After"))), rest.value());
  EXPECT_EQ(fields.at("X-RateLimit-Reset"), "60");
}

// Count and reset come from one instant: a decision made at 59.9995 of a 60 s window says 1, whenever it is rendered.
TEST(Headers, public_report_35) {
  AnswerBuilder builder;
  builder.only(builder.window("api", 5, seconds(60)), allowed(5, 3, microseconds(500)));
  EXPECT_EQ(render(builder)["X-RateLimit-Reset"], "1");
}

// Two limits on one route: one value a header, of the limit nearest to refusal; the lists name both.
TEST(Headers, public_report_36) {
  AnswerBuilder builder;
  const policy::Rule& minute = builder.window("minute", 10, seconds(60));
  const policy::Rule& hour = builder.window("hour", 1000, hours(1));
  builder.status(minute, allowed(10, 2, seconds(30))).status(hour, allowed(1000, 900, seconds(1830)));
  builder.decided_by(minute, allowed(10, 2, seconds(30)));
  EXPECT_EQ(render(builder), (Fields{{"RateLimit", R"("minute";r=2;t=30, "hour";r=900;t=1830)"},
                                     {"RateLimit-Policy", R"("minute";q=10;w=60, "hour";q=1000;w=3600)"},
                                     {"X-RateLimit-Limit", "10"},
                                     {"X-RateLimit-Remaining", "2"},
                                     {"X-RateLimit-Reset", "30"}}));
}

// With nothing left for t seconds, Retry-After is not earlier than the end of t.
TEST(Headers, public_report_37) {
  AnswerBuilder builder;
  builder.only(builder.window("api", 5, seconds(60)), denied(5, 0, Wait(seconds(40)), seconds(40)));
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("RateLimit"), R"("api";r=0;t=40)");
  EXPECT_EQ(fields.at("Retry-After"), "40");
}

TEST(Headers, EmptyLimitThatDidNotDenyStillEndsWithRetryAfter) {
  AnswerBuilder builder;
  const policy::Rule& looked_at = builder.window("looked_at", 5, seconds(60));
  const policy::Rule& denying = builder.bucket("denying", 1, seconds(3), 1);
  const Decision no = denied(1, 0, Wait(seconds(3)), seconds(3));
  builder.status(looked_at, allowed(5, 0, seconds(40))).status(denying, no).decided_by(denying, no);
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("Retry-After"), "3");
  EXPECT_EQ(fields.at("RateLimit"), R"("looked_at";r=0;t=3, "denying";r=0;t=3)");
}

TEST(Headers, CostThatNeverFitsHasNoRetryAfter) {
  AnswerBuilder builder;
  builder.only(builder.bucket("api", 10, seconds(1), 30), denied(30, 30, Wait::never(), seconds(0)));
  EXPECT_EQ(render(builder), (Fields{{"RateLimit", R"("api";r=30)"},
                                     {"RateLimit-Policy", R"("api";q=30;w=3)"},
                                     {"X-RateLimit-Limit", "30"},
                                     {"X-RateLimit-Remaining", "30"},
                                     {"X-RateLimit-Reset", "0"}}));
}

TEST(Headers, RateZeroNeverResets) {
  AnswerBuilder builder;
  Decision decision = denied(5, 0, Wait::never(), seconds(0));
  decision.reset_after = Wait::never();
  builder.only(builder.bucket("closed", 0, seconds(1), 5), decision);
  EXPECT_EQ(render(builder), (Fields{{"RateLimit", R"("closed";r=0)"},
                                     {"RateLimit-Policy", R"("closed";q=5)"},
                                     {"X-RateLimit-Limit", "5"},
                                     {"X-RateLimit-Remaining", "0"}}));
}

TEST(Headers, LastTokenTakenTellsTheTimeOfOneToken) {
  AnswerBuilder builder;
  builder.only(builder.bucket("api", 1, seconds(5), 100), allowed(100, 0, seconds(500)));
  EXPECT_EQ(render(builder)["RateLimit"], R"("api";r=0;t=5)");
}

TEST(Headers, WindowBelowASecondIsLeftOut) {
  AnswerBuilder builder;
  builder.only(builder.window("fast", 10, milliseconds(100)), allowed(10, 9, milliseconds(50)));
  EXPECT_EQ(render(builder)["RateLimit-Policy"], R"("fast";q=10)");
}

TEST(Headers, CalendarWindowHasNoFixedLength) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.window("plan", 10'000, hours(720));
  rule.counted.numbers.align = Align::calendar;
  builder.only(rule, allowed(10'000, 1, hours(10)));
  EXPECT_EQ(render(builder)["RateLimit-Policy"], R"("plan";q=10000)");
}

TEST(Headers, IntegersOfStructuredFieldsEndAtFifteenDigits) {
  AnswerBuilder builder;
  builder.only(builder.bucket("huge", kMaxRate, seconds(1), kMaxTokens), allowed(kMaxTokens, kMaxTokens, seconds(0)));
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("RateLimit"), R"("huge";r=999999999999999)");
  EXPECT_EQ(fields.at("RateLimit-Policy"), R"("huge";q=999999999999999;w=1000)");
  EXPECT_EQ(fields.at("X-RateLimit-Limit"), "1000000000000000");
}

TEST(Headers, LargestBucketAtSlowestRateDoesNotOverflow) {
  AnswerBuilder builder;
  builder.only(builder.bucket("slow", 1, kMaxPeriod, kMaxTokens), allowed(kMaxTokens, 0, kLongestWait));
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("RateLimit-Policy"), R"("slow";q=999999999999999)");
  EXPECT_EQ(fields.at("RateLimit"), R"("slow";r=0;t=31622400)");
}

TEST(Headers, NamesAreMadePrintable) {
  AnswerBuilder builder;
  builder.only(builder.window("a\"b\\c\x7F\n\xC3\xA9", 1, seconds(1)), allowed(1, 1, seconds(1)));
  EXPECT_EQ(render(builder)["RateLimit"], R"("a\"b\\c%7F%0A%C3%A9";r=1;t=1)");
}

TEST(Headers, NamesOfDifferentLimitsAreToldApart) {
  AnswerBuilder builder;
  const policy::Rule& first = builder.window("api", 10, seconds(60));
  builder.status(first, allowed(10, 7, seconds(9)))
      .status(builder.window("api-2", 20, seconds(60)), allowed(20, 6, seconds(9)))
      .status(builder.window("api", 30, seconds(60)), allowed(30, 5, seconds(9)))
      .decided_by(first, allowed(10, 7, seconds(9)));
  const Fields fields = render(builder);
  EXPECT_EQ(fields.at("RateLimit-Policy"), R"("api";q=10;w=60, "api-2";q=20;w=60, "api-3";q=30;w=60)");
  EXPECT_EQ(fields.at("RateLimit"), R"("api";r=7;t=9, "api-2";r=6;t=9, "api-3";r=5;t=9)");
}

TEST(Headers, LongNamesAreCutBetweenEscapes) {
  AnswerBuilder builder;
  const policy::Rule& plain = builder.window(std::string(5'000, 'k') + "a", 10, seconds(60));
  builder.status(plain, allowed(10, 7, seconds(9)))
      .status(builder.window(std::string(5'000, 'k') + "b", 20, seconds(60)), allowed(20, 6, seconds(9)))
      .status(builder.window(std::string(95, 'e') + "\"\"", 30, seconds(60)), allowed(30, 5, seconds(9)))
      .decided_by(plain, allowed(10, 7, seconds(9)));
  const std::string cut(96, 'k');
  EXPECT_EQ(render(builder)["RateLimit-Policy"],
            '"' + cut + R"(";q=10;w=60, ")" + cut + R"(-2";q=20;w=60, ")" + std::string(95, 'e') + R"(";q=30;w=60)");
}

TEST(Headers, NothingOfTheRequestNamesALimitThatItBrings) {
  const std::string secret(60'000, 's');
  const std::vector<Entry> entries{{"key", secret}};
  std::string key;
  const auto bring = [&](std::uint32_t requests, Unit unit) {
    return policy::make_override_rule("d", entries, {.requests_per_unit = requests, .unit = unit}, key);
  };
  const policy::Rule five = bring(5, Unit::hour);
  const policy::Rule seven = bring(7, Unit::hour);
  const policy::Rule day = bring(9, Unit::day);
  AnswerBuilder builder;
  builder.status(five, allowed(5, 4, seconds(9)))
      .status(seven, allowed(7, 3, seconds(9)))
      .status(day, allowed(9, 2, seconds(9)))
      .decided_by(five, allowed(5, 4, seconds(9)));
  EXPECT_EQ(render(builder)["RateLimit-Policy"], R"("override_hour";q=7;w=3600, "override_day";q=9;w=86400)");
}

TEST(Headers, OneItemALimitOfItsTightestKey) {
  AnswerBuilder builder;
  const policy::Rule& user = builder.window("user", 10, seconds(60));
  const policy::Rule& ip = builder.window("ip", 10, seconds(60));
  builder.status(user, allowed(10, 7, seconds(9)))
      .status(ip, allowed(10, 6, seconds(9)))
      .status(user, allowed(10, 3, seconds(9)))
      .status(user, allowed(10, 3, seconds(9)))
      .decided_by(user, allowed(10, 3, seconds(9)));
  EXPECT_EQ(render(builder)["RateLimit"], R"("ip";r=6;t=9, "user";r=3;t=9)");
}

TEST(Headers, ConcurrencyNamesItsUnit) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("jobs", 5, seconds(1), 1);
  rule.counted.numbers.algorithm = Algorithm::concurrency;
  builder.only(rule, allowed(5, 4, seconds(60)));
  EXPECT_EQ(render(builder)["RateLimit-Policy"], R"("jobs";q=5;qu="concurrent-requests")");
}

TEST(Headers, StoreFailureHasNoFigures) {
  AnswerBuilder builder;
  Decision decision = denied(0, 0, Wait(seconds(1)), seconds(0));
  decision.source = Source::fallback_deny;
  builder.only(builder.bucket("api", 10, seconds(1), 30), decision);
  builder.answer().has_figures = false;
  EXPECT_TRUE(render(builder).empty());
}

TEST(Headers, AllowedWithoutTheStoreHasNoFigures) {
  AnswerBuilder builder;
  Decision decision;
  decision.source = Source::fallback_allow;
  builder.only(builder.bucket("api", 10, seconds(1), 30), decision);
  EXPECT_TRUE(render(builder).empty());
}

TEST(Headers, ShadowLimitsAreNotShown) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.bucket("trial", 10, seconds(1), 30);
  rule.enforcement = store::Enforcement::shadow;
  builder.only(rule, allowed(30, 1, seconds(1)));
  EXPECT_TRUE(render(builder).empty());
}

TEST(Headers, UnlimitedHasNoFigures) {
  AnswerBuilder builder;
  policy::Rule& rule = builder.window("free", 0, seconds(1));
  rule.unlimited = true;
  builder.only(rule, Decision());
  EXPECT_TRUE(render(builder).empty());
}

TEST(Headers, NothingLimitedOrNothingJudgedShowsNothing) {
  AnswerBuilder builder;
  builder.answer().statuses.emplace_back();
  EXPECT_TRUE(render(builder).empty());
  builder.answer().problem = limiter::Answer::Problem::no_policy;
  builder.answer().allowed = false;
  EXPECT_TRUE(render(builder).empty());
}

TEST(Headers, EachFamilyCanBeTurnedOff) {
  AnswerBuilder builder;
  builder.only(builder.bucket("api", 10, seconds(1), 30), denied(30, 0, Wait(seconds(1)), seconds(3)));
  const auto names = [&](HeaderOptions options) {
    std::string all;
    for (const auto& [name, value] : render(builder, options)) all += name + ' ';
    return all;
  };
  EXPECT_EQ(names({.retry_after = true, .rate_limit = false, .x_rate_limit = false}), "Retry-After ");
  EXPECT_EQ(names({.retry_after = false, .rate_limit = true, .x_rate_limit = false}), "RateLimit RateLimit-Policy ");
  EXPECT_EQ(names({.retry_after = false, .rate_limit = false, .x_rate_limit = true}),
            "X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset ");
  EXPECT_EQ(names({.retry_after = false, .rate_limit = false, .x_rate_limit = false}), "");
}

TEST(Headers, ListCanBeUsedAgain) {
  AnswerBuilder full;
  full.only(full.bucket("api", 10, seconds(1), 30), denied(30, 0, Wait(seconds(1)), seconds(3)));
  AnswerBuilder empty;
  HeaderList list;
  render_headers(full.answer(), {}, list);
  EXPECT_EQ(list.fields().size(), 6U);
  render_headers(empty.answer(), {}, list);
  EXPECT_TRUE(list.fields().empty());
}

TEST(UntilReset, FollowsTheAlgorithm) {
  AnswerBuilder builder;
  const policy::Rule& bucket = builder.bucket("bucket", 10, seconds(1), 30);
  const policy::Rule& window = builder.window("window", 10, seconds(60));
  EXPECT_EQ(until_reset(bucket, allowed(30, 5, seconds(2))), Wait(seconds(2)));
  EXPECT_EQ(until_reset(bucket, denied(30, 0, Wait(milliseconds(5)), seconds(3))), Wait(milliseconds(5)));
  EXPECT_EQ(until_reset(bucket, denied(30, 9, Wait::never(), seconds(3))), Wait(seconds(3)));
  EXPECT_EQ(until_reset(window, denied(10, 3, Wait::never(), seconds(44))), Wait(seconds(44)));
}

}  // namespace
}  // namespace sluice::front
