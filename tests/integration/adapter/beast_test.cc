// What the Beast adapter does beyond the tests of all adapters: tokens, cancellation, clients that leave.
#include "sluice/adapter/beast.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "tests/integration/adapter/article_shop.h"

namespace sluice::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Request = http::request<http::empty_body>;

class BeastAdapter : public ::testing::Test {
 protected:
  BeastAdapter() {
    Tcp::acceptor acceptor(io_, Tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    client_.connect(acceptor.local_endpoint());
    stream_.emplace(acceptor.accept());
    request_.set("X-User", "7");
  }

  asio::io_context io_{1};
  Tcp::socket client_{io_};
  std::optional<boost::beast::tcp_stream> stream_;
  Request request_{http::verb::post, "/articles", 11};
};

TEST_F(BeastAdapter, AnyCompletionToken) {
  for (const bool on_redis : {false, true}) {
    ArticleShop shop(on_redis);
    auto future = async_limit(shop.limits(), *stream_, request_, "192.0.2.7", asio::use_future);
    io_.restart();
    io_.run();
    const HttpAnswer answer = future.get();
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.answer.decision.remaining, 2U);
    EXPECT_EQ(answer.answer.limit, "ArticleCreate");
  }
}

TEST_F(BeastAdapter, NeverCompletesWithinTheCall) {
  ArticleShop shop(false);
  int calls = 0;
  async_limit(shop.limits(), *stream_, request_, "192.0.2.7", [&](const HttpAnswer& /*answer*/) { ++calls; });
  EXPECT_EQ(calls, 0);
  io_.run();
  EXPECT_EQ(calls, 1);
}

// Whoever comes second has its slot in an hour.
class BeastAdapterHolding : public BeastAdapter, public ::testing::WithParamInterface<bool> {
 protected:
  BeastAdapterHolding() {
    HttpAnswer first;
    limits_.check(keys(), {}, first);
    EXPECT_EQ(first.hold.count(), 0);
  }
  static LimiterRequest keys() { return {.domain = "shop", .descriptors = {{{"route", "GET /crowded"}}}}; }
  template <typename Token>
  void ask(Token&& token) {
    async_limit(limits_, *stream_, request_, std::optional(keys()), std::forward<Token>(token));
  }

  ArticleShop shop_{GetParam()};
  HttpLimits limits_{shop_.limiter(), {.max_hold = std::chrono::hours(2)}};
  std::optional<HttpAnswer> answer_;
};

TEST_P(BeastAdapterHolding, AClientThatLeavesEndsItsWait) {
  ask([&](HttpAnswer answer) { answer_ = std::move(answer); });
  client_.shutdown(Tcp::socket::shutdown_both);
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_FALSE(answer_->allowed);
  EXPECT_EQ(answer_->status, 503U);
  EXPECT_EQ(answer_->answer.problem, LimiterAnswer::Problem::stopped);
}

TEST_P(BeastAdapterHolding, CancellationEndsTheWait) {
  asio::cancellation_signal signal;
  ask(asio::bind_cancellation_slot(signal.slot(), [&](HttpAnswer answer) { answer_ = std::move(answer); }));
  io_.poll();
  EXPECT_FALSE(answer_);
  signal.emit(asio::cancellation_type::total);
  io_.restart();
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->answer.problem, LimiterAnswer::Problem::stopped);
}

TEST_P(BeastAdapterHolding, TheAnswerSaysForHowLong) {
  HttpAnswer second;
  limits_.check(keys(), {}, second);
  EXPECT_TRUE(second.allowed);
  EXPECT_GT(second.hold, std::chrono::minutes(50));
  EXPECT_LE(second.hold, std::chrono::hours(1));
  EXPECT_EQ(second.answer.decision.delay, Wait());
  // The one after it would be held back beyond its patience.
  HttpAnswer third;
  limits_.check(keys(), {}, third, std::chrono::minutes(90));
  EXPECT_EQ(third.reason, HttpAnswer::Reason::over_limit);
  EXPECT_EQ(third.hold.count(), 0);
  // One who only looks has no slot to wait for.
  LimiterRequest look = keys();
  look.peek = true;
  limits_.check(look, {}, third);
  EXPECT_EQ(third.hold.count(), 0);
  EXPECT_GT(third.answer.decision.delay, Wait(std::chrono::minutes(150)));
}

INSTANTIATE_TEST_SUITE_P(Stores, BeastAdapterHolding, ::testing::Bool(),
                         [](const auto& one) { return std::string(one.param ? "Redis" : "Memory"); });

// A Redis that does not answer, until the test is over.
class BeastAdapterWaiting : public BeastAdapter {
 protected:
  BeastAdapterWaiting() { shop_.redis().pause(); }
  ~BeastAdapterWaiting() override { shop_.redis().resume(); }

  ArticleShop shop_{true};
  std::optional<HttpAnswer> answer_;
};

TEST_F(BeastAdapterWaiting, AClientThatLeavesEndsItsWait) {
  async_limit(shop_.limits(), *stream_, request_, "192.0.2.7", [&](HttpAnswer answer) { answer_ = std::move(answer); });
  client_.shutdown(Tcp::socket::shutdown_both);  // close() alone: the Redis of the test holds a copy
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_FALSE(answer_->allowed);
  EXPECT_EQ(answer_->answer.problem, LimiterAnswer::Problem::stopped);
}

TEST_F(BeastAdapterWaiting, CancellationEndsTheWait) {
  asio::cancellation_signal signal;
  async_limit(shop_.limits(), *stream_, request_, "192.0.2.7",
              asio::bind_cancellation_slot(signal.slot(), [&](HttpAnswer answer) { answer_ = std::move(answer); }));
  signal.emit(asio::cancellation_type::total);
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->answer.problem, LimiterAnswer::Problem::stopped);
}

TEST_F(BeastAdapterWaiting, BytesOfTheNextRequestAreNoFarewell) {
  async_limit(shop_.limits(), *stream_, request_, "192.0.2.7", [&](HttpAnswer answer) { answer_ = std::move(answer); });
  asio::write(client_, asio::buffer("GET ", 4));
  ASSERT_GE(io_.run_one(), 1U);  // it was looked at
  EXPECT_FALSE(answer_);
  shop_.redis().resume();
  io_.run();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->answer.problem, LimiterAnswer::Problem::none);
}

}  // namespace
}  // namespace sluice::testing
