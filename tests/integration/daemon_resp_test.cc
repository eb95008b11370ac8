// The real binary over the Redis protocol, by a C client: on memory and on a real Redis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::HttpClient;
using sluice::test::kPatience;
using sluice::test::run_sluice;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";

std::string resp_address(Daemon& daemon) {
  return daemon.process().line_after("listening resp ").value_or("127.0.0.1:1");
}

/// A connection that sends now and reads later.
class RespClient {
 public:
  explicit RespClient(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    context_.reset(redisConnectWithTimeout(address.substr(0, colon).c_str(), std::stoi(address.substr(colon + 1)),
                                           {.tv_sec = std::chrono::seconds(kPatience).count(), .tv_usec = 0}));
    if (context_ == nullptr || context_->err != 0) throw std::runtime_error("cannot connect to " + address);
  }
  void send(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data());
  }
  /// The integers of a reply; of another one its text, as an exception.
  std::vector<long long> integers() {
    const Reply reply = receive();
    if (reply->type != REDIS_REPLY_ARRAY) throw std::runtime_error(std::string(reply->str, reply->len));
    std::vector<long long> numbers;
    for (std::size_t i = 0; i < reply->elements; ++i) numbers.push_back(reply->element[i]->integer);
    return numbers;
  }
  std::vector<long long> integers(const std::vector<std::string>& words) {
    send(words);
    return integers();
  }
  std::string text(const std::vector<std::string>& words) {
    send(words);
    const Reply reply = receive();
    return reply->str == nullptr ? std::to_string(reply->integer) : std::string(reply->str, reply->len);
  }
  bool ended() {
    void* reply = nullptr;
    const bool failed = redisGetReply(context_.get(), &reply) != REDIS_OK;
    if (reply != nullptr) freeReplyObject(reply);
    return failed;
  }

 private:
  struct Free {
    void operator()(redisContext* context) const { redisFree(context); }
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;
  Reply receive() {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) throw std::runtime_error(context_->errstr);
    return Reply(static_cast<redisReply*>(reply));
  }
  std::unique_ptr<redisContext, Free> context_;
};

const std::vector<std::string> kOnResp = {"--listen.resp", "127.0.0.1:0"};

std::vector<std::string> on(const RedisServer& redis) {
  return {"--listen.resp",
          "127.0.0.1:0",
          "--store.redis.url",
          redis.url(),
          "--store.redis.timeout",
          "5s",
          "--store.redis.probe_interval",
          "20ms"};
}

TEST(DaemonResp, LimitsInMemory) {
  Daemon daemon(kArticle, kOnResp);
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  RespClient client(resp_address(daemon));
  const std::vector<std::string> throttle = {"CL.THROTTLE", "k", "4", "1", "86400"};
  // In one write, as a pipeline sends them.
  for (int i = 0; i < 1000; ++i) client.send(throttle);
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) allowed += client.integers()[0] == 0 ? 1 : 0;
  EXPECT_EQ(allowed, 5);
  EXPECT_EQ(client.text({"RESET", "k"}), "OK");
  EXPECT_THAT(client.integers(throttle), ElementsAre(0, 5, 4, -1, 86400));
  EXPECT_THAT(client.text({"CL.THROTTLE", "k", "x", "1", "1"}), HasSubstr("ERR max_burst must be a whole number"));
  client.send({"SLUICE", "CHECK", "shop", "1", "user", "42"});
  EXPECT_EQ(client.integers().size(), 2U);
  HttpClient admin(daemon.admin());
  EXPECT_THAT(admin.get("/metrics").body, HasSubstr("sluice_throttle_decisions_total{verdict=\"denied\"} 995"));
}

TEST(DaemonResp, NeedsNoPolicy) {
  sluice::test::Process process({sluice::test::sluice_binary(), "serve", "--listen.http", "off", "--listen.grpc", "off",
                                 "--listen.admin", "off", "--listen.resp", "127.0.0.1:0"});
  const auto address = process.line_after("listening resp ");
  ASSERT_TRUE(address) << process.output();
  RespClient client(*address);
  EXPECT_THAT(client.integers({"THROTTLE", "k", "1", "1", "60"}), ElementsAre(1, 1, 0, 60, 0));
  EXPECT_EQ(client.text({"SLUICE", "CHECK", "shop", "1", "user", "42"}), "ERR no policy is loaded");
}

TEST(DaemonResp, ThePasswordMayLieInAFile) {
  const TempFolder folder;
  Daemon daemon(kArticle, {"--listen.resp", "127.0.0.1:0", "--resp.password_file", folder.write("p", "secret\n")});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  RespClient client(resp_address(daemon));
  EXPECT_THAT(client.text({"PING"}), HasSubstr("NOAUTH"));
  EXPECT_EQ(client.text({"AUTH", "secret"}), "OK");
  EXPECT_EQ(client.text({"PING"}), "PONG");
  const auto missing = run_sluice({"serve", "--policy", kArticle, "--listen.resp", "127.0.0.1:0",
                                   "--resp.password_file", (folder.path() / "none").string()});
  EXPECT_NE(missing.exit_code, 0);
  EXPECT_THAT(missing.output, HasSubstr("resp.password_file: "));
}

// One file of tokens for all ports.
TEST(DaemonResp, WhatChangesCountersAsksForAToken) {
  const TempFolder folder;
  Daemon daemon(kArticle,
                {"--listen.resp", "127.0.0.1:0", "--access.token_file", folder.write("tokens", "ops let-me-in\n")});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  RespClient client(resp_address(daemon));
  EXPECT_EQ(client.integers({"CL.THROTTLE", "k", "4", "1", "86400", "3"})[2], 2);
  EXPECT_THAT(client.text({"CL.THROTTLE", "k", "4", "1", "86400", "-2"}), HasSubstr("NOAUTH this command changes"));
  EXPECT_THAT(client.text({"SLUICE", "BAN", "shop", "1000", "user", "42"}), HasSubstr("NOAUTH this command changes"));
  EXPECT_THAT(client.text({"AUTH", "let-me-out"}), HasSubstr("WRONGPASS"));
  EXPECT_EQ(client.text({"AUTH", "ops", "let-me-in"}), "OK");
  EXPECT_EQ(client.integers({"CL.THROTTLE", "k", "4", "1", "86400", "-2"})[2], 4);
  EXPECT_EQ(client.text({"RESET", "k"}), "OK");

  HttpClient http(daemon.http());
  const std::string reset = R"({"domain":"shop","descriptors":[{"user":"42"}]})";
  EXPECT_EQ(http.post("/v1/check", reset).status, 200);
  EXPECT_EQ(http.post("/v1/reset", reset).status, 401);
  http.send("POST /v1/reset HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer let-me-in\r\nContent-Length: " +
            std::to_string(reset.size()) + "\r\n\r\n" + reset);
  EXPECT_EQ(http.receive().status, 200);
  EXPECT_EQ(HttpClient(daemon.admin()).get("/metrics").status, 401);
}

TEST(DaemonResp, StopAnswersWhatHasCome) {
  Daemon daemon(kArticle, kOnResp);
  ASSERT_TRUE(daemon.ready());
  RespClient client(resp_address(daemon));
  EXPECT_EQ(client.text({"PING"}), "PONG");
  daemon.process().signal(SIGTERM);
  EXPECT_TRUE(client.ended());
  EXPECT_EQ(daemon.process().wait(), 0);
}

TEST(DaemonResp, DaemonsShareALimitInRedis) {
  RedisServer redis;
  Daemon one(kArticle, on(redis));
  Daemon other(kArticle, on(redis));
  ASSERT_TRUE(one.ready() && other.ready());
  std::vector<RespClient> clients;
  clients.emplace_back(resp_address(one));
  clients.emplace_back(resp_address(other));
  constexpr int kAsked = 200;
  for (int i = 0; i < kAsked; ++i) {
    for (RespClient& client : clients) client.send({"CL.THROTTLE", "k", "99", "1", "86400"});
  }
  int allowed = 0;
  for (int i = 0; i < kAsked; ++i) {
    for (RespClient& client : clients) allowed += client.integers()[0] == 0 ? 1 : 0;
  }
  EXPECT_EQ(allowed, 100);
  // A give-back by one is had by the other, and no denial that was remembered hides it.
  EXPECT_THAT(clients[0].integers({"CL.THROTTLE", "k", "99", "1", "86400", "-2"})[2], 2);
  EXPECT_EQ(clients[0].integers({"CL.THROTTLE", "k", "99", "1", "86400", "2"})[0], 0);
  EXPECT_EQ(clients[0].text({"RESET", "k"}), "OK");
  EXPECT_THAT(clients[0].integers({"PEEK", "k", "99", "1", "86400"}), ElementsAre(0, 100, 100, -1, 0));
  EXPECT_EQ(redis.integer({"DBSIZE"}), 0);
}

// The same key with other numbers: no more passes than the greater bound.
TEST(DaemonResp, NumbersMayChangeFromCallToCallInRedis) {
  RedisServer redis;
  Daemon daemon(kArticle, on(redis));
  ASSERT_TRUE(daemon.ready());
  RespClient client(resp_address(daemon));
  int allowed = 0;
  for (int i = 0; i < 200; ++i) {
    client.send({"CL.THROTTLE", "k", "9", "1", "86400"});
    client.send({"CL.THROTTLE", "k", "19", "1", "86400"});
  }
  for (int i = 0; i < 400; ++i) allowed += client.integers()[0] == 0 ? 1 : 0;
  EXPECT_GE(allowed, 10);
  EXPECT_LE(allowed, 20);
  // Tokens stay as they are: other numbers give none at once.
  const std::vector<long long> peek = client.integers({"PEEK", "k", "49", "1", "86400"});
  EXPECT_EQ(peek[1], 50);
  EXPECT_EQ(peek[2], 0);
}

TEST(DaemonResp, ALocalBucketStandsInForAFailedRedis) {
  RedisServer redis;
  Daemon daemon(kArticle, on(redis));
  ASSERT_TRUE(daemon.ready());
  RespClient client(resp_address(daemon));
  const std::vector<std::string> throttle = {"CL.THROTTLE", "k", "4", "1", "86400"};
  EXPECT_EQ(client.integers(throttle)[0], 0);
  redis.kill();
  int allowed = 0;
  for (int i = 0; i < 20; ++i) allowed += client.integers(throttle)[0] == 0 ? 1 : 0;
  EXPECT_EQ(allowed, 5);
  EXPECT_THAT(client.text({"RESET", "k"}), HasSubstr("ERR the store failed: "));
  redis.start();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (client.text({"RESET", "k"}) != "OK" && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_THAT(client.integers(throttle), ElementsAre(0, 5, 4, -1, 86400));
}

// Redis behind the daemon holds something else under the key.
TEST(DaemonResp, AKeyOfAnotherTypeIsNotABucket) {
  RedisServer redis;
  Daemon daemon(kArticle, on(redis));
  ASSERT_TRUE(daemon.ready());
  RespClient client(resp_address(daemon));
  const std::vector<std::string> throttle = {"CL.THROTTLE", "k", "4", "1", "86400"};
  ASSERT_EQ(client.integers(throttle)[0], 0);
  const sluice::store::redis::Reply keys = redis.command({"KEYS", "*"});
  ASSERT_EQ(keys->elements, 1U);
  const std::string key(keys->element[0]->str, keys->element[0]->len);
  redis.command({"DEL", key});
  redis.command({"RPUSH", key, "x"});
  EXPECT_EQ(client.integers(throttle)[0], 0);  // by the local bucket
  EXPECT_EQ(redis.integer({"LLEN", key}), 1);
  EXPECT_EQ(client.text({"PING"}), "PONG");
}

// Rows of the collection of reports, over the wire and with a real Redis behind.
TEST(DaemonResp, public_report_1_state_below_a_millisecond_a_token_is_kept) {
  RedisServer redis;
  Daemon daemon(kArticle, on(redis));
  RespClient client(resp_address(daemon));
  for (long long left = 1000; left > 997; --left) {
    const std::vector<long long> reply = client.integers({"CL.THROTTLE", "u", "1000", "1000", "60"});
    EXPECT_EQ(reply[0], 0);
    EXPECT_EQ(reply[1], 1001);
    EXPECT_GE(reply[2], left);  // more when the machine is slow
  }
}

TEST(DaemonResp, public_report_3_zero_rates_leave_the_server_up) {
  Daemon daemon(kArticle, {"--listen.resp", "127.0.0.1:0"});
  RespClient client(resp_address(daemon));
  EXPECT_THAT(client.text({"CL.THROTTLE", "k", "0", "0", "60", "1"}), HasSubstr("count must be"));
  EXPECT_THAT(client.text({"CL.THROTTLE", "k", "0", "5", "0", "1"}), HasSubstr("period must be"));
  EXPECT_EQ(client.text({"PING"}), "PONG");
}

TEST(DaemonResp, public_report_7_a_foreign_value_stays_as_it_is) {
  RedisServer redis;
  Daemon daemon(kArticle, on(redis));
  RespClient client(resp_address(daemon));
  const std::vector<std::string> throttle{"CL.THROTTLE", "k", "5", "1", "86400"};
  ASSERT_EQ(client.integers(throttle)[0], 0);
  const sluice::store::redis::Reply keys = redis.command({"KEYS", "*"});
  ASSERT_EQ(keys->elements, 1U);
  const std::string key(keys->element[0]->str, keys->element[0]->len);
  for (const std::string foreign : {"hello", ""}) {
    redis.command({"SET", key, foreign});
    EXPECT_EQ(client.integers(throttle)[0], 0);  // by the local bucket
    EXPECT_EQ(sluice::store::redis::text_of(*redis.command({"GET", key})), foreign);
    EXPECT_EQ(client.text({"PING"}), "PONG");
  }
}

}  // namespace
