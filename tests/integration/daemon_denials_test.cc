// What a daemon on Redis says when Redis fails, and when it need not be asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::kPatience;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::HasSubstr;
using testing::Not;

// Nothing comes back while a test runs.
constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: open
    rate_limit: { name: Open, algorithm: token_bucket, period: 366d, requests_per_unit: 2, on_store_failure: allow }
  - key: closed
    rate_limit: { name: Closed, algorithm: token_bucket, period: 366d, requests_per_unit: 2, on_store_failure: deny }
)";

std::string body_of(const std::string& key) { return R"({"domain":"shop","descriptors":[{")" + key + R"(":"1"}]})"; }

class DaemonDenials : public testing::Test {
 protected:
  // A daemon whose one io thread is connected to Redis.
  std::unique_ptr<Daemon> start(const std::string& timeout, const std::string& remembered) {
    auto daemon = std::make_unique<Daemon>(
        policy_, std::vector<std::string>{"--threads", "1", "--store.redis.url", redis_.url(), "--store.redis.timeout",
                                          timeout, "--store.redis.denial_cache_max", remembered});
    EXPECT_TRUE(daemon->ready());
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (HttpClient(daemon->http()).get("/healthcheck").status != 200) {
      if (std::chrono::steady_clock::now() > end) return nullptr;
      std::this_thread::sleep_for(5ms);
    }
    return daemon;
  }
  static HttpAnswer check(const Daemon& daemon, const std::string& key) {
    return HttpClient(daemon.http()).post("/v1/check", body_of(key));
  }
  static double metric(const Daemon& daemon, const std::string& name) {
    const std::string text = "\n" + HttpClient(daemon.http()).get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::atof(text.c_str() + at + name.size() + 2);
  }
  static void expect_no_figures(const HttpAnswer& answer) {
    for (const auto& [name, value] : answer.fields) EXPECT_THAT(name, Not(HasSubstr("ratelimit")));
    EXPECT_THAT(answer.body, HasSubstr(R"("reason":"store_unavailable")"));
    EXPECT_THAT(answer.body, Not(HasSubstr("remaining")));
  }

  TempFolder folder_;
  const std::string policy_ = folder_.write("p.yaml", kPolicy);
  RedisServer redis_;
};

// Connections are refused, and the policy lets pass: each is counted once.
TEST_F(DaemonDenials, public_report_38) {
  const auto daemon = start("5s", "1s");
  ASSERT_TRUE(daemon);
  redis_.kill();
  for (int i = 0; i < 20; ++i) {
    const HttpAnswer answer = check(*daemon, "open");
    EXPECT_EQ(answer.status, 200);
    expect_no_figures(answer);
  }
  EXPECT_EQ(metric(*daemon, R"(sluice_fallback_decisions_total{answer="allow"})"), 20);
}

// The server is silent, and the policy denies: it stays so until the answer is there, so the deadline alone made that.
TEST_F(DaemonDenials, public_report_39) {
  const auto daemon = start("20ms", "1s");
  ASSERT_TRUE(daemon);
  redis_.pause();
  const HttpAnswer answer = check(*daemon, "closed");
  redis_.resume();
  EXPECT_EQ(answer.status, 503);
  expect_no_figures(answer);
  EXPECT_FALSE(answer.fields.contains("retry-after"));
}

// A denial is remembered for longer than this test takes. What others do is not noticed; this daemon's own verbs, and a
// reload, end it at once.
TEST_F(DaemonDenials, AreForgottenWithAVerbAndAReload) {
  const auto daemon = start("5s", "60s");
  ASSERT_TRUE(daemon);
  const std::string cached = "sluice_store_cached_denials_total";
  const auto spend = [&] {
    while (check(*daemon, "closed").status == 200) {
    }
    const double before = metric(*daemon, cached);
    EXPECT_EQ(check(*daemon, "closed").status, 429);
    EXPECT_EQ(metric(*daemon, cached), before + 1);
  };
  spend();
  EXPECT_EQ(HttpClient(daemon->http()).post("/v1/refund", body_of("closed")).status, 200);
  EXPECT_EQ(check(*daemon, "closed").status, 200);
  spend();
  EXPECT_EQ(HttpClient(daemon->http()).post("/v1/reset", body_of("closed")).status, 200);
  EXPECT_EQ(check(*daemon, "closed").status, 200);
  spend();
  redis_.command({"FLUSHALL"});
  EXPECT_EQ(check(*daemon, "closed").status, 429);
  daemon->process().signal(SIGHUP);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (metric(*daemon, R"(sluice_policy_reloads_total{result="ok"})") != 1) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(check(*daemon, "closed").status, 200);
}

TEST_F(DaemonDenials, AreNotRememberedWhereThatIsOff) {
  const auto daemon = start("5s", "0s");
  ASSERT_TRUE(daemon);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(check(*daemon, "closed").status, i < 2 ? 200 : 429);
  EXPECT_LE(metric(*daemon, "sluice_store_cached_denials_total"), 0);
  redis_.command({"FLUSHALL"});
  EXPECT_EQ(check(*daemon, "closed").status, 200);
}

}  // namespace
