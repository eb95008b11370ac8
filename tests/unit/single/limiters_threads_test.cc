// Every limiter under threads: whatever the interleaving, at one instant exactly as much as one thread would get.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/unit/single/any_limiter.h"

namespace sluice {
namespace {

constexpr int kThreads = 4;
constexpr std::uint64_t kTokens = 9'000;
constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr Time kNow{.steady = kStart, .utc = kStart};

Limit limit_of(Algorithm algorithm) {
  return {.algorithm = algorithm, .rate = kTokens, .burst = kTokens, .queue = kTokens - 1};
}

class LimitersThreads : public testing::TestWithParam<Algorithm> {
 protected:
  template <typename Work>
  static void in_threads(Work work) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
    for (std::thread& thread : threads) thread.join();
  }
};

TEST_P(LimitersThreads, ExactlyWhatThereIsAtOneInstant) {
  const auto limiter = any_limiter(limit_of(GetParam()));
  std::atomic<std::uint64_t> admitted{0};
  in_threads([&](int thread) {
    for (std::uint64_t i = 0; i < 2'000; ++i) {
      const std::uint64_t cost = 1 + (i + static_cast<std::uint64_t>(thread)) % 3;
      if (limiter->check(cost, kNow).allowed) admitted += cost;
    }
  });
  EXPECT_LE(admitted, kTokens);
  EXPECT_EQ(limiter->peek(0, kNow).remaining, kTokens - admitted);
  EXPECT_LT(kTokens - admitted, 3U);  // 16 000 were asked for
}

// Nobody sees a state that no order of the calls has: of what is taken and given back at once, all or nothing.
TEST_P(LimitersThreads, NumbersAndStateChangeAsOne) {
  const auto limiter = any_limiter(limit_of(GetParam()));
  Limit doubled = limit_of(GetParam());
  doubled.rate *= 2;
  doubled.burst *= 2;
  doubled.queue = doubled.queue * 2 + 1;
  std::atomic<bool> done{false};
  std::atomic<bool> wrong{false};
  std::thread changer([&] {
    for (int i = 0; i < 500; ++i) limiter->set_limit(i % 2 == 0 ? doubled : limit_of(GetParam()), kNow);
    done = true;
  });
  in_threads([&](int) {
    while (!done) {
      const Decision decision = limiter->peek(0, kNow);
      const bool old_numbers = decision.limit == kTokens && decision.remaining == kTokens;
      const bool new_numbers = decision.limit == 2 * kTokens && decision.remaining == 2 * kTokens;
      if (!old_numbers && !new_numbers) wrong = true;
    }
  });
  changer.join();
  EXPECT_FALSE(wrong);
}

INSTANTIATE_TEST_SUITE_P(All, LimitersThreads,
                         testing::Values(Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                         Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency));

}  // namespace
}  // namespace sluice
