// Keyed limiters shared by threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::seconds;

constexpr int kThreads = 4;

template <typename Function>
void in_threads(Function function) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&function, i] { function(i); });
  for (std::thread& thread : threads) thread.join();
}

template <typename Algorithm>
class KeyedThreads : public ::testing::Test {};
TYPED_TEST_SUITE(KeyedThreads, AllAlgorithms);

TYPED_TEST(KeyedThreads, TogetherTheyGetWhatThereIsAndNoMore) {
  constexpr int kKeys = 50;
  constexpr std::uint64_t kTokens = 100;
  Keyed<TypeParam, int> limits(numbers<TypeParam>(kTokens, hours(1)), {.max_keys = 10'000});
  std::array<std::atomic<std::uint64_t>, kKeys> granted{};
  in_threads([&](int /*thread*/) {
    for (int i = 0; i < 60 * kKeys; ++i) {
      const int key = i % kKeys;
      if (check(limits, key, 1, kStart).allowed) granted[static_cast<std::size_t>(key)].fetch_add(1);
    }
  });
  for (const auto& of_one : granted) EXPECT_EQ(of_one.load(), kTokens);
}

TYPED_TEST(KeyedThreads, KeysComeAndGoWhileOthersAreAsked) {
  Keyed<TypeParam> limits(numbers<TypeParam>(5), {.max_keys = 9'000});
  std::atomic<std::int64_t> now{kStart};
  std::atomic<std::uint64_t> made{0};
  in_threads([&](int thread) {
    for (int i = 0; i < 8'000; ++i) {
      const std::int64_t moment = now.fetch_add(kSecond / 2'000);
      const std::string key = std::to_string(thread) + "/" + std::to_string(i);
      if (check(limits, key, 1, moment).allowed) made.fetch_add(1);
      static_cast<void>(limits.peek("shared", 1, at(moment)));
      static_cast<void>(check(limits, "shared", 1, moment));
      if (i % 64 == 0) limits.reset(key, at(moment));
      if (i % 512 == 0) {
        EXPECT_LE(limits.figures().keys, 9'000U);
      }
    }
  });
  EXPECT_EQ(made.load(), kThreads * 8'000U);
  EXPECT_GT(limits.figures().expired, 0U);
}

TYPED_TEST(KeyedThreads, NumbersChangeWhileCallsGoOn) {
  Keyed<TypeParam, int> limits(numbers<TypeParam>(10, hours(1)), {.max_keys = 5'000});
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (std::uint64_t i = 0; i < 400; ++i) limits.set_limit(numbers<TypeParam>(10 + i % 50, hours(1)), at(kStart));
    done.store(true);
  });
  in_threads([&](int thread) {
    for (int i = 0; !done.load() || i < 1'000; ++i) {
      const Decision decision = check(limits, (thread * 1'000 + i) % 2'000, 1, kStart);
      ASSERT_GE(decision.limit, 10U);
      ASSERT_LE(decision.limit, 59U);
    }
  });
  setter.join();
  limits.set_limit(numbers<TypeParam>(7, hours(1)), at(kStart));
  EXPECT_EQ(limits.peek(1, 0, at(kStart)).limit, 7U);
}

TEST(KeyedThreads, WindowsChangeTheirClockWhileCallsGoOn) {
  Keyed<FixedWindow, int> limits({.rate = 5, .period = seconds(10)}, {.max_keys = 20'000});
  std::atomic<bool> done{false};
  std::thread setter([&] {
    for (int i = 0; i < 100; ++i) {
      limits.set_limit({.rate = 5, .period = seconds(10), .align = i % 2 == 0 ? Align::first_hit : Align::epoch},
                       {.steady = kSecond, .utc = kStart});
    }
    done.store(true);
  });
  in_threads([&](int thread) {
    for (int i = 0; !done.load() || i < 1'000; ++i) {
      const Decision decision = limits.try_acquire(thread * 100 + i % 100, 1, {.steady = kSecond, .utc = kStart});
      ASSERT_LE(decision.retry_after, Wait(seconds(10)));
    }
  });
  setter.join();
}

TEST(KeyedConcurrencyThreads, NeverMoreHeldThanThereAre) {
  constexpr std::uint64_t kMost = 3;
  Keyed<Concurrency, int> limits({.rate = kMost});
  std::array<std::atomic<std::uint64_t>, 4> held{};
  std::atomic<std::uint64_t> granted{0};
  in_threads([&](int thread) {
    for (int i = 0; i < 5'000; ++i) {
      const int key = (thread + i) % 4;
      auto lease = limits.try_acquire(key);
      if (!lease) continue;
      granted.fetch_add(1);
      EXPECT_LE(held[static_cast<std::size_t>(key)].fetch_add(1) + 1, kMost);
      held[static_cast<std::size_t>(key)].fetch_sub(1);
    }
  });
  EXPECT_GE(granted.load(), kThreads * 4'000U);
  EXPECT_EQ(limits.figures().keys, 0U);
}

}  // namespace
}  // namespace sluice
