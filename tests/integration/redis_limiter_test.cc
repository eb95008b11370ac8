// The library's limiter over a real Redis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "sluice/asio/async_check.h"
#include "sluice/limiter.h"
#include "tests/integration/redis_server.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: PerUser, algorithm: token_bucket, period: 366d, requests_per_unit: 100, on_store_failure: deny }
)";

LimiterRequest user(std::string name, std::uint64_t cost = 1) {
  return {.domain = "shop", .descriptors = {{{"user", std::move(name)}}}, .cost = cost};
}

class RedisLimiter : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  std::unique_ptr<Limiter> make(std::chrono::nanoseconds timeout = 5s) {
    auto limiter = std::make_unique<Limiter>(
        LimiterOptions{.policy_text = kPolicy, .redis_url = server_.url(), .redis_timeout = timeout});
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!limiter->ready() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    EXPECT_TRUE(limiter->ready());
    return limiter;
  }
  long long calls() {
    const auto reply = server_.command({"INFO", "commandstats"});
    const std::string text(store::redis::text_of(*reply));
    const std::size_t at = text.find("cmdstat_evalsha:calls=");
    return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + 22);
  }

  RedisServer server_;
};

TEST_F(RedisLimiter, LimitersShareALimit) {
  const auto one = make();
  const auto two = make();
  EXPECT_EQ(one->check(user("42")).decision.remaining, 99U);
  const LimiterAnswer answer = two->check(user("42"));
  EXPECT_EQ(answer.decision.remaining, 98U);
  EXPECT_EQ(answer.decision.source, Source::redis);
  EXPECT_EQ(answer.limit, "PerUser");
}

TEST_F(RedisLimiter, ManyDecisionsAreOneRoundTrip) {
  const auto limiter = make();
  std::vector<LimiterRequest> requests;
  for (int i = 0; i < 60; ++i) requests.push_back(user(std::to_string(i % 20)));
  const long long before = calls();
  const auto answers = limiter->check_many(requests);
  EXPECT_EQ(calls() - before, 1);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_TRUE(answers[i].allowed);
    EXPECT_EQ(answers[i].decision.remaining, 99U - i / 20) << i;
  }
  EXPECT_TRUE(limiter->check_many({}).empty());
}

TEST_F(RedisLimiter, ThreadsThatBlockShareCalls) {
  const auto limiter = make();
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 25; ++n) allowed += limiter->check(user("42")).allowed ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 100);
}

TEST_F(RedisLimiter, ACallersPatienceEndsBeforeTheStores) {
  const auto limiter = make();
  server_.pause();
  EXPECT_EQ(limiter->check(user("42"), 20ms).problem, LimiterAnswer::Problem::deadline);
  server_.resume();
}

TEST_F(RedisLimiter, AFailureIsAnsweredByThePolicy) {
  const auto limiter = make(50ms);
  server_.kill();
  const LimiterAnswer answer = limiter->check(user("42"));
  EXPECT_EQ(answer.problem, LimiterAnswer::Problem::none);
  EXPECT_FALSE(answer.allowed);
  EXPECT_FALSE(answer.has_figures);
  EXPECT_EQ(answer.decision.source, Source::fallback_deny);
}

TEST_F(RedisLimiter, VerbsAreShared) {
  const auto one = make();
  const auto two = make();
  ASSERT_TRUE(one->check(user("42", 100)).allowed);
  EXPECT_FALSE(two->check(user("42")).allowed);
  EXPECT_FALSE(one->check(user("42")).allowed);  // remembered
  const LimiterVerbAnswer answer = one->apply(user("42", 30), LimiterVerb::refund());
  EXPECT_TRUE(answer.done);
  EXPECT_EQ(answer.descriptors.at(0).decision.remaining, 30U);
  EXPECT_EQ(answer.descriptors[0].decision.source, Source::redis);
  EXPECT_EQ(one->check(user("42")).decision.remaining, 29U);
  LimiterRequest peek = user("42", 9);
  peek.peek = true;
  EXPECT_EQ(two->check(peek).decision.remaining, 20U);
  EXPECT_EQ(two->apply(user("42"), LimiterVerb::settle(0, 29)).descriptors.at(0).decision.remaining, 0U);
  EXPECT_TRUE(two->apply(user("42"), LimiterVerb::reset()).done);
  EXPECT_EQ(server_.integer({"DBSIZE"}), 0);
}

TEST_F(RedisLimiter, AVerbThatFailsIsTold) {
  const auto limiter = make(50ms);
  server_.kill();
  const LimiterVerbAnswer answer = limiter->apply(user("42"), LimiterVerb::refund());
  EXPECT_EQ(answer.problem, LimiterAnswer::Problem::none);
  EXPECT_FALSE(answer.done);
  EXPECT_TRUE(answer.descriptors.at(0).found);
  EXPECT_FALSE(answer.descriptors[0].done);
  EXPECT_NE(answer.descriptors[0].failure, "");
  LimiterRequest peek = user("42");
  peek.peek = true;
  EXPECT_EQ(limiter->check(peek).problem, LimiterAnswer::Problem::store_failed);
}

TEST_F(RedisLimiter, AVerbAsAnAsioOperation) {
  const auto limiter = make();
  boost::asio::io_context io;
  auto future =
      async_apply(*limiter, io.get_executor(), user("42", 7), LimiterVerb::penalize(), boost::asio::use_future);
  io.run();
  EXPECT_EQ(future.get().descriptors.at(0).decision.remaining, 93U);
  server_.pause();
  boost::asio::cancellation_signal signal;
  auto cancelled = LimiterAnswer::Problem::none;
  async_apply(*limiter, io.get_executor(), user("42"), LimiterVerb::reset(),
              boost::asio::bind_cancellation_slot(
                  signal.slot(), [&](const LimiterVerbAnswer& answer) { cancelled = answer.problem; }));
  signal.emit(boost::asio::cancellation_type::total);
  io.restart();
  io.run();
  EXPECT_EQ(cancelled, LimiterAnswer::Problem::stopped);
  server_.resume();
}

TEST_F(RedisLimiter, AsioOperations) {
  const auto limiter = make();
  boost::asio::io_context io;
  std::vector<std::uint64_t> remaining;
  for (int i = 0; i < 3; ++i) {
    async_check(*limiter, io.get_executor(), user("42"),
                [&](const LimiterAnswer& answer) { remaining.push_back(answer.decision.remaining); });
  }
  io.run();
  EXPECT_THAT(remaining, ::testing::ElementsAre(99U, 98U, 97U));
  auto future = async_check(*limiter, io.get_executor(), user("42"), boost::asio::use_future);
  io.restart();
  io.run();
  EXPECT_EQ(future.get().decision.remaining, 96U);
}

TEST_F(RedisLimiter, ACancelledOperationCompletesAsStopped) {
  const auto limiter = make();
  server_.pause();
  boost::asio::io_context io;
  boost::asio::cancellation_signal signal;
  int completed = 0;
  async_check(*limiter, io.get_executor(), user("42"),
              boost::asio::bind_cancellation_slot(signal.slot(), [&](const LimiterAnswer& answer) {
                EXPECT_EQ(answer.problem, LimiterAnswer::Problem::stopped);
                ++completed;
              }));
  signal.emit(boost::asio::cancellation_type::total);
  io.run();
  EXPECT_EQ(completed, 1);
  server_.resume();
}

TEST_F(RedisLimiter, WhatIsPendingIsToldWhenTheLimiterEnds) {
  auto limiter = make();
  server_.pause();
  std::atomic<int> stopped{0};
  std::vector<Limiter::Pending> pending;
  for (int i = 0; i < 5; ++i) {
    pending.push_back(limiter->start(user("42"), [&](const LimiterAnswer& answer) {
      stopped += answer.problem == LimiterAnswer::Problem::stopped ? 1 : 0;
    }));
  }
  limiter.reset();
  EXPECT_EQ(stopped, 5);
  for (const Limiter::Pending& one : pending) one.cancel();
  server_.resume();
}

}  // namespace
}  // namespace sluice::testing
