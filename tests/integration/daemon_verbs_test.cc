// The real binary on the memory store: what is acquired, reserved, banned and explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/verbs.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::ask;
using sluice::test::Daemon;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::member;
using sluice::test::TempFolder;
using testing::HasSubstr;
using testing::Not;

// Nothing comes back by itself while a test runs.
constexpr std::string_view kPolicy = R"(
domain: shop
leases: true
descriptors:
  - key: export
    rate_limit: { name: Exports, algorithm: concurrency, requests_per_unit: 2, ttl: 1h }
  - key: brief
    rate_limit: { name: Brief, algorithm: concurrency, requests_per_unit: 1, ttl: 50ms }
  - key: tokens
    rate_limit: { name: Tokens, algorithm: token_bucket, period: 366d, requests_per_unit: 1, burst: 100 }
  - key: daily
    rate_limit: { name: Daily, algorithm: fixed_window, align: first_hit, period: 366d, requests_per_unit: 100 }
  - key: tried
    shadow_mode: true
    rate_limit: { name: Tried, algorithm: token_bucket, period: 366d, requests_per_unit: 1, burst: 1 }
)";

class DaemonVerbs : public testing::Test {
 protected:
  TempFolder folder_;
  Daemon daemon_{folder_.write("p.yaml", kPolicy)};
  HttpClient client_{daemon_.http()};

  std::string remaining(const std::string& key, const std::string& value) {
    return member(ask(client_, "peek", key, value, R"(,"cost":0)").body, "remaining");
  }
};

TEST_F(DaemonVerbs, AcquireAndRelease) {
  const HttpAnswer first = ask(client_, "acquire", "export", "acme");
  const HttpAnswer second = ask(client_, "acquire", "export", "acme");
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(second.status, 200);
  const HttpAnswer third = ask(client_, "acquire", "export", "acme");
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(member(third.body, "lease"), "");
  EXPECT_EQ(ask(client_, "acquire", "export", "other").status, 200);

  const std::string release = R"({"lease":")" + member(first.body, "lease") + R"("})";
  const HttpAnswer released = client_.post("/v1/release", release);
  EXPECT_EQ(released.status, 200);
  EXPECT_THAT(released.body, HasSubstr(R"({"result":"done","descriptors":[{"result":"done","limit_name":"Exports")"));
  EXPECT_THAT(released.body, HasSubstr(R"("limit":2,"remaining":1)"));
  // Once only.
  EXPECT_THAT(client_.post("/v1/release", release).body,
              HasSubstr(R"({"result":"not_held","descriptors":[{"result":"not_held")"));
  EXPECT_EQ(ask(client_, "acquire", "export", "acme").status, 200);
  EXPECT_EQ(ask(client_, "acquire", "export", "acme").status, 429);
}

TEST_F(DaemonVerbs, ALeaseThatWeighsMore) {
  const HttpAnswer both = ask(client_, "acquire", "export", "acme", R"(,"cost":2)");
  EXPECT_EQ(both.status, 200);
  EXPECT_EQ(ask(client_, "acquire", "export", "acme").status, 429);
  EXPECT_THAT(client_.post("/v1/release", R"({"lease":")" + member(both.body, "lease") + R"("})").body,
              HasSubstr(R"("remaining":2)"));
}

TEST_F(DaemonVerbs, ALeaseTimesOut) {
  const HttpAnswer held = ask(client_, "acquire", "brief", "acme");
  EXPECT_EQ(held.status, 200);
  const auto deadline = std::chrono::steady_clock::now() + sluice::test::kPatience;
  int status = 0;
  while (status != 200 && std::chrono::steady_clock::now() < deadline) {
    status = ask(client_, "acquire", "brief", "acme").status;
  }
  EXPECT_EQ(status, 200);
  EXPECT_THAT(client_.post("/v1/release", R"({"lease":")" + member(held.body, "lease") + R"("})").body,
              HasSubstr(R"("result":"not_held")"));
}

TEST_F(DaemonVerbs, LimitsOfConcurrencyAreClosedToThoseWhoCannotRelease) {
  const HttpAnswer answer = ask(client_, "check", "export", "acme");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("needs_lease"));
  EXPECT_EQ(
      client_.post("/json", R"({"domain":"shop","descriptors":[{"entries":[{"key":"export","value":"a"}]}]})").status,
      400);
  EXPECT_EQ(ask(client_, "check", "tokens", "acme").status, 200);
}

TEST_F(DaemonVerbs, ReserveThenCommitLessMoreOrNothing) {
  for (const std::string key : {"tokens", "daily"}) {
    SCOPED_TRACE(key);
    const HttpAnswer reserved = ask(client_, "reserve", key, "42", R"(,"cost":40,"ttl":600)");
    EXPECT_EQ(reserved.status, 200) << reserved.body;
    EXPECT_EQ(member(reserved.body, "expires_in"), "600");
    EXPECT_EQ(remaining(key, "42"), "60");
    const std::string hold = R"({"reservation":")" + member(reserved.body, "reservation") + '"';

    const HttpAnswer committed = client_.post("/v1/commit", hold + R"(,"actual":15})");
    EXPECT_THAT(committed.body, HasSubstr(R"({"result":"done")")) << committed.body;
    EXPECT_EQ(remaining(key, "42"), "85");
    // Whoever comes second changes nothing.
    EXPECT_THAT(client_.post("/v1/commit", hold + R"(,"actual":0})").body, HasSubstr(R"({"result":"not_held")"));
    EXPECT_THAT(client_.post("/v1/cancel", hold + "}").body, HasSubstr(R"({"result":"not_held")"));
    EXPECT_EQ(remaining(key, "42"), "85");

    const HttpAnswer dearer = ask(client_, "reserve", key, "42", R"(,"cost":10)");
    EXPECT_EQ(member(dearer.body, "expires_in"), "60");
    EXPECT_EQ(
        client_.post("/v1/commit", R"({"reservation":")" + member(dearer.body, "reservation") + R"(","actual":25})")
            .status,
        200);
    EXPECT_EQ(remaining(key, "42"), "60");

    const HttpAnswer cancelled = ask(client_, "reserve", key, "42", R"(,"cost":60)");
    EXPECT_EQ(ask(client_, "reserve", key, "42", R"(,"cost":1)").status, 429);
    EXPECT_EQ(
        client_.post("/v1/cancel", R"({"reservation":")" + member(cancelled.body, "reservation") + R"("})").status,
        200);
    EXPECT_EQ(remaining(key, "42"), "60");
  }
}

TEST_F(DaemonVerbs, AReservationThatHasEndedStaysCharged) {
  const HttpAnswer reserved = ask(client_, "reserve", "tokens", "7", R"(,"cost":40,"ttl":0.000001)");
  EXPECT_EQ(reserved.status, 200);
  std::this_thread::sleep_for(1ms);
  EXPECT_THAT(client_.post("/v1/cancel", R"({"reservation":")" + member(reserved.body, "reservation") + R"("})").body,
              HasSubstr(R"({"result":"not_held")"));
  EXPECT_EQ(remaining("tokens", "7"), "60");
}

TEST_F(DaemonVerbs, WhatIsNoHoldIsRefused) {
  for (const std::string body : {R"({"lease":"AAAA"})", R"({"lease":""})", R"({"lease":"?"})", R"({})"}) {
    EXPECT_EQ(client_.post("/v1/release", body).status, 400) << body;
  }
  const std::string reserved = member(ask(client_, "reserve", "tokens", "8", R"(,"cost":1)").body, "reservation");
  EXPECT_EQ(client_.post("/v1/release", R"({"lease":")" + reserved + R"("})").status, 400);
  std::string damaged = reserved;
  damaged[damaged.size() / 2] = damaged[damaged.size() / 2] == 'A' ? 'B' : 'A';
  EXPECT_EQ(client_.post("/v1/cancel", R"({"reservation":")" + damaged + R"("})").status, 400);
  EXPECT_EQ(client_.post("/v1/cancel", R"({"reservation":")" + reserved + R"("})").status, 200);
}

TEST_F(DaemonVerbs, ABanDeniesUntilItEnds) {
  EXPECT_EQ(ask(client_, "check", "tokens", "9").status, 200);
  const HttpAnswer banned = ask(client_, "ban", "tokens", "9", R"(,"for":3600)");
  EXPECT_EQ(banned.status, 200);
  EXPECT_EQ(banned.body, R"({"result":"done","descriptors":[{"result":"done","limit_name":"Tokens"}]})");
  const HttpAnswer denied = ask(client_, "check", "tokens", "9");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(member(denied.body, "reason"), "banned");
  EXPECT_EQ(member(denied.body, "remaining"), "99");  // nothing was taken
  const int wait = std::stoi(denied.fields.at("retry-after"));
  EXPECT_LE(wait, 3600);
  EXPECT_GT(wait, 3600 - 2 * sluice::test::kPatience.count());
  EXPECT_EQ(ask(client_, "check", "tokens", "10").status, 200);
  EXPECT_EQ(ask(client_, "check", "daily", "9").status, 200);
  EXPECT_EQ(member(ask(client_, "peek", "tokens", "9").body, "reason"), "banned");

  // Another takes the place of the first; and none ends it.
  EXPECT_EQ(ask(client_, "ban", "tokens", "9", R"(,"for":0.001)").status, 200);
  const auto deadline = std::chrono::steady_clock::now() + sluice::test::kPatience;
  while (ask(client_, "check", "tokens", "9").status != 200 && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_EQ(ask(client_, "ban", "tokens", "9", R"(,"for":86400)").status, 200);
  EXPECT_EQ(ask(client_, "check", "tokens", "9").status, 429);
  EXPECT_EQ(ask(client_, "ban", "tokens", "9", R"(,"for":0)").status, 200);
  EXPECT_EQ(ask(client_, "check", "tokens", "9").status, 200);
}

TEST_F(DaemonVerbs, ExplainTellsNumbersAndWhatShadowLimitsWouldSay) {
  const std::string both = R"({"domain":"shop","explain":true,"descriptors":[{"tokens":"5"},{"tried":"5"}]})";
  EXPECT_EQ(client_.post("/v1/check", both).status, 200);
  const HttpAnswer answer = client_.post("/v1/check", both);
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body,
              HasSubstr(R"("explain":{"mode":"enforce","path":"tokens","key":"5","cost":1,"algorithm":"token_bucket",)"
                        R"("rate":1,"period":31622400,"burst":100,"fits":true})"));
  EXPECT_THAT(answer.body, HasSubstr(R"("explain":{"mode":"shadow","path":"tried","key":"5","cost":1,)"
                                     R"("algorithm":"token_bucket","rate":1,"period":31622400,"burst":1,"fits":false,)"
                                     R"("retry_after":)"));
  EXPECT_THAT(ask(client_, "check", "tokens", "5").body, Not(HasSubstr("explain")));
}

// A limit in shadow mode without room was charged nothing, so it gets nothing back.
TEST_F(DaemonVerbs, AReservationGivesBackToThoseWhoWereCharged) {
  EXPECT_EQ(ask(client_, "check", "tried", "1").status, 200);
  const std::string both = R"({"domain":"shop","descriptors":[{"tokens":"1"},{"tried":"1"}],"cost":5})";
  const HttpAnswer reserved = client_.post("/v1/reserve", both);
  EXPECT_EQ(reserved.status, 200) << reserved.body;
  const std::string cancel = R"({"reservation":")" + member(reserved.body, "reservation") + R"("})";
  EXPECT_THAT(client_.post("/v1/cancel", cancel).body,
              HasSubstr(R"("remaining":100,"reset_after":0},{"result":"nothing_taken","limit_name":"Tried"}]})"));
  EXPECT_EQ(remaining("tried", "1"), "0");
}

TEST_F(DaemonVerbs, ALimitThatDeniesNobodyHasNoBans) {
  const HttpAnswer refused = ask(client_, "ban", "tried", "1", R"(,"for":60)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(member(refused.body, "error"), "not_enforced");
  // Nothing is done to the others of the request, either.
  EXPECT_EQ(
      client_.post("/v1/ban", R"({"domain":"shop","descriptors":[{"tokens":"1"},{"tried":"1"}],"for":60})").status,
      400);
  EXPECT_EQ(ask(client_, "check", "tokens", "1").status, 200);
  // One that was banned before its limit was put into shadow mode can be let go.
  EXPECT_EQ(ask(client_, "ban", "tried", "1", R"(,"for":0)").status, 200);
}

}  // namespace
