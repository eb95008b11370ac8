// Bans, leases and reservations in a real Redis, seen through two daemons that share it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/verbs.h"

namespace {

using sluice::test::ask;
using sluice::test::Daemon;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::kPatience;
using sluice::test::member;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::HasSubstr;

constexpr std::string_view kPolicy = R"(
domain: shop
leases: true
descriptors:
  - key: export
    rate_limit: { name: Exports, algorithm: concurrency, requests_per_unit: 2, ttl: 1h }
  - key: user
    rate_limit: { name: Users, algorithm: token_bucket, period: 366d, requests_per_unit: 1, burst: 100 }
  - key: open
    rate_limit: { name: Open, algorithm: token_bucket, period: 366d, requests_per_unit: 100, on_store_failure: allow }
  - key: day
    rate_limit: { name: Daily, algorithm: fixed_window, align: first_hit, period: 366d, requests_per_unit: 100 }
)";

class TwoDaemons : public testing::Test {
 protected:
  void SetUp() override {
    for (Daemon* daemon : {&one_, &two_}) {
      ASSERT_TRUE(daemon->ready());
      while (HttpClient(daemon->http()).get("/healthcheck").status == 503) {
      }
    }
  }
  [[nodiscard]] std::vector<std::string> flags(const std::string& timeout = "10s") const {
    return {"--store.redis.url", redis_.url(), "--store.redis.timeout", timeout, "--threads", "1"};
  }

  TempFolder folder_;
  std::string policy_ = folder_.write("p.yaml", kPolicy);
  RedisServer redis_;
  Daemon one_{policy_, flags()};
  Daemon two_{policy_, flags()};
};

// Who is asked first does not matter, nor who is told: the daemons remember nothing.
TEST_F(TwoDaemons, LeasesAndReservationsEndAtEither) {
  HttpClient one(one_.http());
  HttpClient two(two_.http());
  const HttpAnswer held = ask(one, "acquire", "export", "acme");
  ASSERT_EQ(held.status, 200) << held.body;
  EXPECT_EQ(ask(two, "acquire", "export", "acme").status, 200);
  EXPECT_EQ(ask(two, "acquire", "export", "acme").status, 429);
  const std::string release = R"({"lease":")" + member(held.body, "lease") + R"("})";
  EXPECT_THAT(two.post("/v1/release", release).body, HasSubstr(R"({"result":"done")"));
  EXPECT_THAT(one.post("/v1/release", release).body, HasSubstr(R"({"result":"not_held")"));

  const HttpAnswer reserved = ask(one, "reserve", "user", "42", R"(,"cost":70)");
  ASSERT_EQ(reserved.status, 200) << reserved.body;
  EXPECT_EQ(member(reserved.body, "source"), "redis");
  const std::string commit = R"({"reservation":")" + member(reserved.body, "reservation") + R"(","actual":5})";
  const HttpAnswer committed = two.post("/v1/commit", commit);
  EXPECT_THAT(committed.body, HasSubstr(R"({"result":"done")")) << committed.body;
  EXPECT_THAT(committed.body, HasSubstr(R"("remaining":95)"));
  EXPECT_THAT(one.post("/v1/commit", commit).body, HasSubstr(R"({"result":"not_held")"));
}

// The first charge opens the window, later by Redis' clock than the daemon's: what is given back still belongs to it.
TEST_F(TwoDaemons, AReservationThatOpenedAWindowIsGivenBack) {
  HttpClient one(one_.http());
  HttpClient two(two_.http());
  const HttpAnswer reserved = ask(one, "reserve", "day", "42", R"(,"cost":70)");
  ASSERT_EQ(reserved.status, 200) << reserved.body;
  EXPECT_EQ(member(reserved.body, "expires_in"), "60");
  const std::string commit = R"({"reservation":")" + member(reserved.body, "reservation") + R"(","actual":5})";
  EXPECT_THAT(two.post("/v1/commit", commit).body, HasSubstr(R"("remaining":95)"));
}

TEST_F(TwoDaemons, ABanHoldsAtBothAndAfterARestart) {
  HttpClient one(one_.http());
  HttpClient two(two_.http());
  EXPECT_EQ(ask(one, "check", "user", "42").status, 200);
  EXPECT_EQ(ask(two, "check", "user", "42").status, 200);
  ASSERT_EQ(ask(one, "ban", "user", "42", R"(,"for":3600)").status, 200);
  const HttpAnswer denied = ask(one, "check", "user", "42");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(member(denied.body, "reason"), "banned");
  EXPECT_EQ(ask(one, "check", "user", "43").status, 200);
  // The others hear of it within a second, and one that starts now before its first check is judged.
  Daemon three(policy_, flags());
  ASSERT_TRUE(three.ready());
  HttpClient third(three.http());
  EXPECT_EQ(member(ask(third, "check", "user", "42").body, "reason"), "banned");
  EXPECT_EQ(ask(third, "check", "user", "43").status, 200);
  const auto hears = [](HttpClient& client) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      if (member(ask(client, "peek", "user", "42").body, "reason") == "banned") return true;
    }
    return false;
  };
  EXPECT_TRUE(hears(two));
  EXPECT_EQ(ask(two, "check", "user", "42").status, 429);
  EXPECT_EQ(ask(two, "check", "user", "44").status, 200);

  ASSERT_EQ(ask(two, "ban", "user", "42", R"(,"for":0)").status, 200);
  EXPECT_EQ(ask(two, "check", "user", "42").status, 200);
}

TEST_F(TwoDaemons, AReservationThatEndsAfterAResetGivesBackWhatWasLostSince) {
  HttpClient one(one_.http());
  const auto left = [&](const std::string& key) {
    const HttpAnswer reserved = ask(one, "reserve", key, "9", R"(,"cost":70)");
    EXPECT_EQ(ask(one, "reset", key, "9").status, 200);
    EXPECT_EQ(ask(one, "check", key, "9", R"(,"cost":50)").status, 200);
    return member(one.post("/v1/cancel", R"({"reservation":")" + member(reserved.body, "reservation") + R"("})").body,
                  "remaining");
  };
  EXPECT_EQ(left("user"), "100");
  EXPECT_EQ(left("day"), "50");
}

// Nobody who is banned slips through between the outage and the first word of bans.
TEST_F(TwoDaemons, OneThatStartsInAnOutageKnowsOfBansWithTheFirstAnswer) {
  HttpClient one(one_.http());
  ASSERT_EQ(ask(one, "ban", "user", "42", R"(,"for":3600)").status, 200);
  redis_.pause();
  Daemon three(policy_, flags("20ms"));
  ASSERT_TRUE(three.ready());
  HttpClient third(three.http());
  const HttpAnswer meanwhile = ask(third, "check", "user", "42");
  EXPECT_EQ(meanwhile.status, 200);
  EXPECT_EQ(member(meanwhile.body, "source"), "fallback_local");
  redis_.resume();
  HttpAnswer answer;
  do {
    answer = ask(third, "check", "user", "42");
  } while (member(answer.body, "source") == "fallback_local");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(member(answer.body, "reason"), "banned");
}

// What stands in for Redis gives leases and reservations of its own; they end there, whatever Redis does meanwhile.
TEST_F(TwoDaemons, WhatWasTakenInAnOutageIsGivenBackWhereItWasTaken) {
  HttpClient one(one_.http());
  HttpClient two(two_.http());
  const auto release = [](HttpClient& client, const HttpAnswer& held) {
    return client.post("/v1/release", R"({"lease":")" + member(held.body, "lease") + R"("})");
  };
  const auto commit = [](HttpClient& client, const HttpAnswer& held, int actual) {
    return client.post("/v1/commit", R"({"reservation":")" + member(held.body, "reservation") + R"(","actual":)" +
                                         std::to_string(actual) + "}");
  };
  EXPECT_EQ(ask(one, "check", "user", "42", R"(,"cost":10)").status, 200);
  redis_.kill();
  const HttpAnswer first = ask(one, "acquire", "export", "acme");
  const HttpAnswer second = ask(one, "acquire", "export", "acme");
  EXPECT_EQ(member(first.body, "source"), "fallback_local") << first.body;
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(ask(one, "acquire", "export", "acme").status, 429);
  const HttpAnswer released = release(one, first);
  EXPECT_THAT(released.body, HasSubstr(R"({"result":"done")"));
  EXPECT_EQ(member(released.body, "source"), "fallback_local");
  EXPECT_THAT(release(one, first).body, HasSubstr(R"({"result":"not_held")"));
  EXPECT_THAT(release(two, second).body, HasSubstr(R"({"result":"not_held")"));
  const HttpAnswer third = ask(one, "acquire", "export", "acme");
  EXPECT_EQ(third.status, 200);

  const HttpAnswer reserved = ask(one, "reserve", "user", "42", R"(,"cost":70)");
  EXPECT_EQ(member(reserved.body, "source"), "fallback_local") << reserved.body;
  EXPECT_EQ(ask(one, "check", "user", "42", R"(,"cost":31)").status, 429);
  const HttpAnswer committed = commit(one, reserved, 5);
  EXPECT_THAT(committed.body, HasSubstr(R"({"result":"done")"));
  EXPECT_THAT(committed.body, HasSubstr(R"("source":"fallback_local","limit":100,"remaining":95)"));
  EXPECT_THAT(commit(one, reserved, 5).body, HasSubstr(R"({"result":"not_held")"));
  // One who lets all through took nothing.
  const HttpAnswer open = ask(one, "reserve", "open", "42", R"(,"cost":70)");
  EXPECT_EQ(open.status, 200);
  EXPECT_THAT(commit(one, open, 0).body, HasSubstr(R"({"result":"nothing_taken")"));

  const HttpAnswer later = ask(one, "reserve", "user", "42", R"(,"cost":60)");
  redis_.start();
  while (member(ask(one, "check", "user", "42", R"(,"cost":0)").body, "source") != "redis") {
  }
  EXPECT_THAT(release(one, second).body, HasSubstr(R"({"result":"done")"));
  EXPECT_THAT(release(one, third).body, HasSubstr(R"({"result":"done")"));
  EXPECT_THAT(commit(one, later, 0).body, HasSubstr(R"("source":"fallback_local","limit":100,"remaining":95)"));
  // Nothing was given back to the shared counter, which had lost nothing meanwhile.
  EXPECT_EQ(ask(one, "check", "user", "43", R"(,"cost":10)").status, 200);
  EXPECT_EQ(member(ask(two, "peek", "user", "43", R"(,"cost":0)").body, "remaining"), "90");
}

}  // namespace
