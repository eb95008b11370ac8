// The real binary on a real Redis: shared, restarted, broken and mended.
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
using sluice::test::post_request;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::HasSubstr;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";

// Nothing comes back while a test runs.
constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: Thirty, algorithm: token_bucket, period: 366d, requests_per_unit: 30 }
  - key: local
    rate_limit: { name: Local, algorithm: token_bucket, period: 366d, requests_per_unit: 2, on_store_failure: local }
  - key: open
    rate_limit: { name: Open, algorithm: token_bucket, period: 366d, requests_per_unit: 2, on_store_failure: allow }
  - key: closed
    rate_limit: { name: Closed, algorithm: token_bucket, period: 366d, requests_per_unit: 2, on_store_failure: deny }
)";

std::string request_of(const std::string& key, const std::string& value) {
  return R"({"domain":"shop","descriptors":[{")" + key + R"(":")" + value + R"("}]})";
}

// A timeout that a busy machine keeps as long as the server answers at all.
std::vector<std::string> on(const RedisServer& redis, const std::string& timeout = "5s") {
  return {"--store.redis.url", redis.url(), "--store.redis.timeout", timeout, "--store.redis.probe_interval", "20ms"};
}

bool becomes_ready(Daemon& daemon) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (HttpClient(daemon.http()).get("/healthcheck").status != 200) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

// Every thread has a connection of its own to Redis, so health alone may be another thread's.
bool answers_from_redis(Daemon& daemon) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int in_a_row = 0; in_a_row < 20;) {
    const HttpAnswer answer = HttpClient(daemon.http()).post("/v1/check", request_of("user", "probe"));
    in_a_row = answer.body.find(R"("source":"redis")") == std::string::npos ? 0 : in_a_row + 1;
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

class DaemonOnRedis : public testing::Test {
 protected:
  TempFolder folder_;
  std::string policy_ = folder_.write("p.yaml", kPolicy);
  RedisServer redis_;
};

TEST_F(DaemonOnRedis, TwoDaemonsShareOneLimit) {
  Daemon one(policy_, on(redis_));
  Daemon two(policy_, on(redis_));
  ASSERT_TRUE(one.ready() && two.ready() && answers_from_redis(one) && answers_from_redis(two));
  HttpClient first(one.http());
  HttpClient second(two.http());
  int allowed = 0;
  for (int i = 0; i < 31; ++i) {
    HttpClient& client = i % 2 == 0 ? first : second;
    if (client.post("/v1/check", request_of("user", "42")).status == 200) ++allowed;
  }
  EXPECT_EQ(allowed, 30);
}

TEST_F(DaemonOnRedis, SaysWhichRedisWithoutThePassword) {
  Daemon daemon(policy_, {"--store.redis.url", "redis://me:hush@127.0.0.1:1/3"});
  ASSERT_TRUE(daemon.ready());
  EXPECT_THAT(daemon.process().output(), HasSubstr(" info counters in Redis 127.0.0.1:1\n"));
  EXPECT_THAT(daemon.process().output(), testing::Not(HasSubstr("hush")));
}

TEST_F(DaemonOnRedis, ARestartKeepsTheLimit) {
  {
    Daemon daemon(policy_, on(redis_));
    ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
    EXPECT_EQ(HttpClient(daemon.http()).post("/v1/check", request_of("closed", "42")).status, 200);
    EXPECT_EQ(HttpClient(daemon.http()).post("/v1/check", request_of("closed", "42")).status, 200);
    daemon.process().signal(SIGTERM);
    EXPECT_EQ(daemon.process().wait(), 0);
  }
  Daemon daemon(policy_, on(redis_));
  ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
  const HttpAnswer denied = HttpClient(daemon.http()).post("/v1/check", request_of("closed", "42"));
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.body, HasSubstr(R"("source":"redis")"));
}

TEST_F(DaemonOnRedis, ArticleCreateAllowsThirtyAtOnceAndDeniesTheNext) {
  Daemon daemon(kArticle, on(redis_));
  ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
  // Redis' own clock rules: only a run within the 100 ms in which nothing comes back has a certain answer.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int user = 0;; ++user) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "no run of 31 requests took less than 100 ms";
    HttpClient client(daemon.http());
    std::string requests;
    for (int i = 0; i < 31; ++i) requests += post_request("/v1/check", request_of("user", std::to_string(user)));
    const auto begin = std::chrono::steady_clock::now();
    client.send(requests);
    std::vector<HttpAnswer> answers;
    answers.reserve(31);
    for (int i = 0; i < 31; ++i) answers.push_back(client.receive());
    if (std::chrono::steady_clock::now() - begin >= 100ms) continue;
    for (int i = 0; i < 30; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)].status, 200) << i;
    EXPECT_EQ(answers.back().status, 429);
    EXPECT_EQ(answers.back().fields.at("retry-after"), "1");
    EXPECT_THAT(answers.back().body, HasSubstr("ArticleCreate"));
    break;
  }
  EXPECT_THAT(HttpClient(daemon.admin()).get("/metrics").body, HasSubstr("ArticleCreate"));
}

TEST_F(DaemonOnRedis, AnswersAsThePolicySaysWhileRedisIsGoneAndRecoversByItself) {
  Daemon daemon(policy_, on(redis_));
  ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
  HttpClient client(daemon.http());
  EXPECT_EQ(client.post("/v1/check", request_of("local", "1")).status, 200);
  redis_.kill();

  const HttpAnswer local = client.post("/v1/check", request_of("local", "1"));
  EXPECT_EQ(local.status, 200);
  EXPECT_THAT(local.body, HasSubstr(R"("source":"fallback_local")"));
  EXPECT_EQ(client.post("/v1/check", request_of("local", "1")).status, 200);
  EXPECT_EQ(client.post("/v1/check", request_of("local", "1")).status, 429);
  for (int i = 0; i < 4; ++i) {
    const HttpAnswer open = client.post("/v1/check", request_of("open", "1"));
    EXPECT_EQ(open.status, 200);
    EXPECT_FALSE(open.fields.contains("x-ratelimit-limit"));
  }
  const HttpAnswer closed = client.post("/v1/check", request_of("closed", "1"));
  EXPECT_EQ(closed.status, 503);
  EXPECT_FALSE(closed.fields.contains("x-ratelimit-limit"));
  EXPECT_THAT(closed.body, HasSubstr("store_unavailable"));

  redis_.start();
  ASSERT_TRUE(answers_from_redis(daemon));
  EXPECT_TRUE(becomes_ready(daemon));
  EXPECT_EQ(HttpClient(daemon.http()).post("/v1/check", request_of("closed", "2")).status, 200);
}

TEST_F(DaemonOnRedis, ASilentRedisIsAnsweredForWithinTheTimeout) {
  Daemon daemon(policy_, on(redis_, "20ms"));
  ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
  redis_.pause();
  HttpClient client(daemon.http());
  // It stays stopped until the answers are here: nothing but the deadline can have made them.
  EXPECT_EQ(client.post("/v1/check", request_of("closed", "1")).status, 503);
  EXPECT_EQ(client.post("/v1/check", request_of("open", "1")).status, 200);
  redis_.resume();
  EXPECT_TRUE(answers_from_redis(daemon));
}

TEST_F(DaemonOnRedis, StartsWithoutRedisAndIsReadyWhenItComes) {
  redis_.kill();
  Daemon daemon(policy_, on(redis_));
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").status, 503);
  EXPECT_EQ(HttpClient(daemon.http()).post("/v1/check", request_of("open", "1")).status, 200);
  redis_.start();
  EXPECT_TRUE(becomes_ready(daemon));
  EXPECT_TRUE(answers_from_redis(daemon));
}

// A user who may use other keys alone: operators are told why there is no store, and clients that there is none.
TEST_F(DaemonOnRedis, HealthTellsOperatorsWhatTheServerSays) {
  redis_.command({"ACL", "SETUSER", "limiter", "on", ">pw", "~other:*", "+@all"});
  std::vector<std::string> flags = on(redis_);
  flags.insert(flags.end(), {"--store.redis.username", "limiter", "--store.redis.password", "pw"});
  Daemon daemon(policy_, flags);
  ASSERT_TRUE(daemon.ready());
  ASSERT_TRUE(daemon.process().has_printed("redis: not available"));
  const HttpAnswer told = HttpClient(daemon.admin()).get("/healthcheck");
  EXPECT_EQ(told.status, 503);
  EXPECT_THAT(told.body, testing::AllOf(HasSubstr("the store has not been reached yet\n"), HasSubstr("NOPERM"),
                                        HasSubstr("store.redis.prefix")));
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").body, "the store has not been reached yet\n");
  redis_.command({"ACL", "SETUSER", "limiter", "~sluice:*"});
  EXPECT_TRUE(becomes_ready(daemon));
  // Every thread has a connection of its own, and tells its own trouble until that is over.
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (HttpClient(daemon.admin()).get("/healthcheck").body != "OK") {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << HttpClient(daemon.admin()).get("/healthcheck").body;
    std::this_thread::sleep_for(5ms);
  }
  redis_.command({"ACL", "SETUSER", "limiter", "-set"});
  deadline = std::chrono::steady_clock::now() + kPatience;
  std::string body;
  for (int user = 0; body.find("limits are answered by on_store_failure") == std::string::npos; ++user) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << body;
    (void)HttpClient(daemon.http()).post("/v1/check", request_of("user", std::to_string(user)));
    const HttpAnswer now = HttpClient(daemon.admin()).get("/healthcheck");
    EXPECT_EQ(now.status, 200);
    body = now.body;
  }
  EXPECT_THAT(body, testing::AllOf(testing::StartsWith("OK\n"), HasSubstr("script"), HasSubstr("store.redis.prefix")));
}

TEST_F(DaemonOnRedis, StopsInGoodOrderWhetherRedisAnswersOrNot) {
  for (const bool answering : {true, false}) {
    Daemon daemon(policy_, on(redis_));
    ASSERT_TRUE(daemon.ready() && answers_from_redis(daemon));
    HttpClient client(daemon.http());
    EXPECT_EQ(client.get("/healthcheck").status, 200);
    if (!answering) redis_.kill();
    daemon.process().signal(SIGTERM);
    EXPECT_EQ(daemon.process().wait(), 0);
  }
}

// Two daemons, one of which has the script's literal text, share each limit.
TEST_F(DaemonOnRedis, EveryAlgorithmIsShared) {
  const std::string policy = folder_.write("all.yaml", R"(
domain: shop
descriptors:
  - key: leaky
    rate_limit: { algorithm: leaky_bucket, period: 366d, requests_per_unit: 1, queue: 2 }
  - key: fixed
    rate_limit: { algorithm: fixed_window, align: first_hit, period: 366d, requests_per_unit: 3 }
  - key: sliding
    rate_limit: { algorithm: sliding_window, period: 366d, requests_per_unit: 3 }
  - key: slots
    rate_limit: { algorithm: sliding_window, period: 366d, slots: 8, requests_per_unit: 3 }
  - key: log
    rate_limit: { algorithm: sliding_log, period: 366d, requests_per_unit: 3 }
)");
  std::vector<std::string> literal = on(redis_);
  literal.insert(literal.end(), {"--store.redis.script_style", "literal"});
  Daemon one(policy, on(redis_));
  Daemon two(policy, literal);
  ASSERT_TRUE(one.ready() && two.ready() && becomes_ready(one) && becomes_ready(two));
  HttpClient first(one.http());
  HttpClient second(two.http());
  for (const std::string key : {"leaky", "fixed", "sliding", "slots", "log"}) {
    for (int i = 0; i < 5; ++i) {
      const HttpAnswer answer = (i % 2 == 0 ? first : second).post("/v1/check", request_of(key, "42"));
      EXPECT_EQ(answer.status, i < 3 ? 200 : 429) << key << ' ' << answer.body;
      EXPECT_THAT(answer.body, HasSubstr(R"("source":"redis")")) << key;
    }
  }
}

}  // namespace
