// Every adapter for HTTP, in a server of its framework, over sockets: the same tests on memory and on a real Redis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include "tests/integration/adapter/article_shop.h"
#include "tests/integration/adapter/http_servers.h"
#include "tests/integration/support/http_client.h"

namespace sluice::testing {
namespace {

using test::HttpClient;
using ::testing::HasSubstr;
using ::testing::Not;

test::HttpAnswer ask(const LimitedServer& server, const std::string& method, const std::string& path,
                     const std::string& fields = {}) {
  HttpClient client(server.address());
  client.send(method + " " + path + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\nContent-Length: 0\r\n" +
              fields + "\r\n");
  return client.receive();
}

bool has_figures(const test::HttpAnswer& answer) {
  for (const auto& [name, value] : answer.fields) {
    if (name.find("ratelimit") != std::string::npos || name == "retry-after") return true;
  }
  return false;
}

using Case = std::tuple<Framework, bool>;

class HttpAdapters : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] std::unique_ptr<LimitedServer> start(KeysBy keys = KeysBy::mapping) {
    return std::get<Framework>(GetParam()).start(shop_, keys);
  }
  ArticleShop shop_{std::get<bool>(GetParam())};
};

TEST_P(HttpAdapters, LetInUpToTheLimitAndToldSo) {
  const auto server = start();
  for (const char* left : {"2", "1", "0"}) {
    const auto answer = ask(*server, "POST", "/articles", "X-User: 7\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "done");
    EXPECT_EQ(answer.fields.at("x-ratelimit-limit"), "3");
    EXPECT_EQ(answer.fields.at("x-ratelimit-remaining"), left);
    EXPECT_EQ(answer.fields.at("ratelimit-policy"), "\"ArticleCreate\";q=3;w=31622400");
  }
  const auto answer = ask(*server, "POST", "/articles", "X-User: 7\r\n");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.fields.at("content-type"), "application/json");
  EXPECT_EQ(answer.body, R"({"msg":"rate limit exceeded","retry_after":)" + answer.fields.at("retry-after") + "}");
  EXPECT_EQ(answer.fields.at("x-ratelimit-remaining"), "0");
  EXPECT_THAT(answer.fields.at("ratelimit"), HasSubstr("\"ArticleCreate\";r=0;t="));
  EXPECT_EQ(ask(*server, "POST", "/articles", "X-User: 8\r\n").status, 200);
  EXPECT_EQ(server->handled(), 4);
}

TEST_P(HttpAdapters, AProblemDocumentWhereItIsWanted) {
  const auto server = start();
  for (int i = 0; i < 3; ++i) (void)ask(*server, "GET", "/articles");
  const auto answer = ask(*server, "GET", "/articles", "Accept: application/problem+json\r\n");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.fields.at("content-type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr(R"("violated-policies":["ArticleRead"])"));
}

TEST_P(HttpAdapters, ALimitsOwnWords) {
  const auto server = start();
  const auto answer = ask(*server, "GET", "/worded");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, R"({"code":429,"message":"请求过于频繁"})");
  EXPECT_EQ(answer.fields.at("content-type"), "application/json");
}

TEST_P(HttpAdapters, WithoutAnIdentityIsUnauthorized) {
  for (const KeysBy keys : {KeysBy::mapping, KeysBy::program}) {
    const auto server = start(keys);
    const auto answer = ask(*server, "POST", "/articles");
    EXPECT_EQ(answer.status, 401);
    EXPECT_THAT(answer.body, HasSubstr(R"({"error":"unauthorized")"));
    EXPECT_FALSE(has_figures(answer));
    EXPECT_EQ(server->handled(), 0);
  }
}

TEST_P(HttpAdapters, KeysOfTheProgramAreTheSameCounters) {
  const auto mapped = start();
  const auto own = start(KeysBy::program);
  EXPECT_EQ(ask(*mapped, "POST", "/articles", "X-User: 7\r\n").fields.at("x-ratelimit-remaining"), "2");
  EXPECT_EQ(ask(*own, "POST", "/anything", "X-User: 7\r\n").fields.at("x-ratelimit-remaining"), "1");
}

TEST_P(HttpAdapters, WhatNothingLimitsIsFree) {
  const auto server = start();
  for (int i = 0; i < 5; ++i) {
    const auto answer = ask(*server, "GET", "/free");
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(has_figures(answer));
  }
}

// Never too early: a slot is never sooner than the one before it and the time between two.
TEST_P(HttpAdapters, HeldBackUntilItsSlot) {
  using namespace std::chrono_literals;
  const auto server = start();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ask(*server, "GET", "/paced").status, 200);
    // Redis goes by the machine's other clock, in whole microseconds.
    EXPECT_GE(std::chrono::steady_clock::now() - begin, i * 50ms - 1ms);
  }
}

TEST_P(HttpAdapters, WhatWouldBeHeldBackForTooLongIsDenied) {
  const auto server = start();
  EXPECT_EQ(ask(*server, "GET", "/crowded").status, 200);
  const auto answer = ask(*server, "GET", "/crowded");
  EXPECT_EQ(answer.status, 429);
  EXPECT_GT(std::stoi(answer.fields.at("retry-after")), 3000);
  EXPECT_EQ(server->handled(), 1);
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return std::string(std::get<Framework>(info.param).name) + (std::get<bool>(info.param) ? "Redis" : "Memory");
}

INSTANTIATE_TEST_SUITE_P(Frameworks, HttpAdapters,
                         ::testing::Combine(::testing::ValuesIn(http_frameworks()), ::testing::Bool()), name_of);

class HttpAdaptersWithoutRedis : public ::testing::TestWithParam<Framework> {
 protected:
  HttpAdaptersWithoutRedis() { shop_.redis().kill(); }
  ArticleShop shop_{true};
  std::unique_ptr<LimitedServer> server_ = GetParam().start(shop_, KeysBy::mapping);
};

TEST_P(HttpAdaptersWithoutRedis, TheWriteRouteIsClosed_public_report_39) {
  for (int i = 0; i < 3; ++i) {
    const auto answer = ask(*server_, "POST", "/articles", "X-User: 7\r\n");
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr(R"({"error":"store_unavailable")"));
    EXPECT_FALSE(has_figures(answer));
  }
  EXPECT_EQ(server_->handled(), 0);
}

TEST_P(HttpAdaptersWithoutRedis, TheReadRouteIsCountedInThisProcess) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(*server_, "GET", "/articles").status, 200);
  const auto answer = ask(*server_, "GET", "/articles");
  EXPECT_EQ(answer.status, 429);
  EXPECT_TRUE(has_figures(answer));
}

TEST_P(HttpAdaptersWithoutRedis, AnOpenRouteShowsNoFigures_public_report_38) {
  for (int i = 0; i < 20; ++i) {
    const auto answer = ask(*server_, "GET", "/open");
    EXPECT_EQ(answer.status, 200);
    EXPECT_FALSE(has_figures(answer));
  }
}

INSTANTIATE_TEST_SUITE_P(Frameworks, HttpAdaptersWithoutRedis, ::testing::ValuesIn(http_frameworks()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace sluice::testing
