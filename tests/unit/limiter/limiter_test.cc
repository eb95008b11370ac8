#include "sluice/limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/asio/async_check.h"
#include "sluice/limit.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: PerUser, algorithm: token_bucket, period: 366d, requests_per_unit: 3 }
)";

LimiterRequest user(std::string name, std::uint64_t cost = 1) {
  return {.domain = "shop", .descriptors = {{{"user", std::move(name)}}}, .cost = cost};
}

TEST(Limiter, DecidesByPolicyInMemory) {
  Limiter limiter({.policy_text = kPolicy});
  EXPECT_TRUE(limiter.ready());
  for (unsigned left = 3; left-- > 0;) {
    const LimiterAnswer answer = limiter.check(user("42"));
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.decision.remaining, left);
    EXPECT_EQ(answer.decision.source, Source::memory);
    EXPECT_EQ(answer.limit, "PerUser");
  }
  EXPECT_FALSE(limiter.check(user("42")).allowed);
  EXPECT_TRUE(limiter.check(user("43")).allowed);
  EXPECT_FALSE(limiter.check({.domain = "elsewhere", .descriptors = {{{"user", "42"}}}}).known_domain);
}

TEST(Limiter, VerbsByPolicyInMemory) {
  Limiter limiter({.policy_text = kPolicy});
  ASSERT_TRUE(limiter.check(user("42", 3)).allowed);
  LimiterRequest peek = user("42");
  peek.peek = true;
  EXPECT_FALSE(limiter.check(peek).allowed);
  const auto remaining = [&](const LimiterVerb& verb, std::uint64_t cost = 1) {
    const LimiterVerbAnswer answer = limiter.apply(user("42", cost), verb);
    EXPECT_TRUE(answer.done);
    EXPECT_EQ(answer.descriptors.at(0).limit, "PerUser");
    EXPECT_TRUE(answer.descriptors[0].done);
    return answer.descriptors[0].decision.remaining;
  };
  EXPECT_EQ(remaining(LimiterVerb::refund()), 1U);
  EXPECT_EQ(limiter.check(peek).decision.remaining, 0U);
  EXPECT_EQ(remaining(LimiterVerb::settle(2, 1)), 2U);
  EXPECT_EQ(remaining(LimiterVerb::settle(1, 2)), 1U);
  EXPECT_EQ(remaining(LimiterVerb::penalize(), 3), 0U);
  EXPECT_EQ(remaining(LimiterVerb::refund(std::chrono::system_clock::now()), 3), 1U);
  EXPECT_EQ(remaining(LimiterVerb::reset()), 3U);
  LimiterVerbAnswer told;
  limiter.start(user("42"), LimiterVerb::penalize(), [&](LimiterVerbAnswer answer) { told = std::move(answer); });
  EXPECT_EQ(told.descriptors.at(0).decision.remaining, 2U);
}

TEST(Limiter, VerbsWithoutACounter) {
  Limiter limiter({.policy_text = kPolicy});
  const LimiterVerbAnswer nothing =
      limiter.apply({.domain = "shop", .descriptors = {{{"team", "1"}}}}, LimiterVerb::reset());
  EXPECT_FALSE(nothing.done);
  EXPECT_FALSE(nothing.descriptors.at(0).found);
  EXPECT_FALSE(limiter.apply({.domain = "else", .descriptors = {{{"user", "1"}}}}, LimiterVerb::reset()).known_domain);
  EXPECT_EQ(limiter.apply({}, LimiterVerb::reset()).problem, LimiterAnswer::Problem::empty_domain);
  EXPECT_EQ(limiter.apply(user("1"), LimiterVerb::settle(1, kMaxTokens + 1)).problem,
            LimiterAnswer::Problem::cost_out_of_range);
}

TEST(Limiter, TellsWhatIsWrongWithARequest) {
  Limiter limiter({.policy_text = kPolicy});
  EXPECT_EQ(limiter.check({}).problem, LimiterAnswer::Problem::empty_domain);
  EXPECT_EQ(limiter.check({.domain = "shop", .descriptors = {}}).problem, LimiterAnswer::Problem::no_descriptors);
  EXPECT_EQ(limiter.check(user("42", 1'000'000'000'000'001)).problem, LimiterAnswer::Problem::cost_out_of_range);
}

TEST(Limiter, TellsAllThatIsWrongWithAPolicy) {
  try {
    const Limiter limiter({.policy_text = "domain: shop\ndescriptors:\n  - key: a\n    rate_limit: { unit: x }\n"});
    FAIL();
  } catch (const std::invalid_argument& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("policy:4:"));
  }
  EXPECT_THROW(Limiter({.policy_text = kPolicy, .redis_url = "http://x"}), std::invalid_argument);
  EXPECT_THROW(Limiter({}), std::invalid_argument);
}

TEST(Limiter, ManyDecisionsAreIndependentAndInOrder) {
  Limiter limiter({.policy_text = kPolicy});
  const std::vector<LimiterRequest> requests = {user("a", 3), user("a"), user("b"), user("c", 4)};
  std::vector<bool> allowed;
  for (const LimiterAnswer& answer : limiter.check_many(requests)) allowed.push_back(answer.allowed);
  EXPECT_EQ(allowed, (std::vector<bool>{true, false, true, false}));
}

TEST(Limiter, ThreadsShareALimit) {
  Limiter limiter({.policy_text = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { algorithm: token_bucket, period: 366d, requests_per_unit: 1000 }
)"});
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) allowed += limiter.check(user("42")).allowed ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 1'000);
}

TEST(Limiter, AnAsioOperationCompletesOnItsExecutor) {
  Limiter limiter({.policy_text = kPolicy});
  boost::asio::io_context io;
  int completed = 0;
  async_check(limiter, io.get_executor(), user("42"), [&](const LimiterAnswer& answer) {
    EXPECT_EQ(answer.decision.remaining, 2U);
    ++completed;
  });
  EXPECT_EQ(completed, 0);
  io.run();
  EXPECT_EQ(completed, 1);
  auto future = async_check(limiter, io.get_executor(), user("42"), boost::asio::use_future);
  io.restart();
  io.run();
  EXPECT_EQ(future.get().decision.remaining, 1U);
}

}  // namespace
}  // namespace sluice
