// Many threads on one memory store. Worth most under the thread sanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "store/memory/live_limit.h"
#include "store/memory/memory_store.h"
#include "tests/unit/store/store_test_util.h"

namespace sluice::store {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)
using std::chrono::hours;
using std::chrono::milliseconds;

constexpr unsigned kThreads = 4;

template <typename Body>
void on_all_threads(const Body& body) {
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&start, &body, i] {
      start.arrive_and_wait();
      body(i);
    });
  }
}

TEST(MemoryStoreThreads, NeverAdmitMoreThanTheBound) {
  MemoryStore store;
  constexpr std::uint64_t kBurst = 5'000;
  const CountedLimit limit = counted("threads.bound", token_bucket(1, hours(1), kBurst));
  std::atomic<std::uint64_t> admitted{0};
  on_all_threads([&](unsigned) {
    AtOnce check;
    std::uint64_t mine = 0;
    for (int i = 0; i < 4'000; ++i) mine += check.ask_one(store, limit, "one", 1, at(kStart)).allowed ? 1U : 0U;
    admitted += mine;
  });
  EXPECT_EQ(admitted.load(), kBurst);
}

TEST(MemoryStoreThreads, AllOrNothingOverKeysInAnyOrder) {
  MemoryStore store;
  constexpr std::size_t kKeys = 12;
  constexpr std::uint64_t kBurst = 600;
  const CountedLimit limit = counted("threads.many", token_bucket(1, hours(1), kBurst));
  std::array<std::atomic<std::uint64_t>, kKeys> taken{};
  on_all_threads([&](unsigned thread) {
    AtOnce check;
    std::mt19937 random(thread);
    std::array<std::string, kKeys> keys;
    for (std::size_t i = 0; i < kKeys; ++i) keys[i] = std::to_string(i);
    for (int i = 0; i < 3'000; ++i) {
      std::ranges::shuffle(keys, random);  // so that threads would wait for each other, if locks had no order
      std::vector<Charge> charges;
      for (std::size_t n = 0; n < 2 + random() % 4; ++n) charges.push_back({&limit, keys[n], 1 + random() % 2});
      check.ask(store, charges, at(kStart));
      if (!check.admitted) continue;
      for (const Charge& charge : charges) taken[std::stoul(std::string(charge.key))] += charge.cost;
    }
  });
  AtOnce check;
  for (std::size_t i = 0; i < kKeys; ++i) {
    EXPECT_LE(taken[i].load(), kBurst);
    EXPECT_EQ(check.ask_one(store, limit, std::to_string(i), 0, at(kStart)).remaining, kBurst - taken[i].load());
  }
}

TEST(MemoryStoreThreads, GrowingCleaningEvictingAndReloadingAtOnce) {
  const std::size_t limits_before = memory::live_limit_count();
  {
    MemoryStore store(9'000);
    std::atomic<std::int64_t> clock{kStart};
    std::atomic<std::uint64_t> admitted{0};
    constexpr std::uint64_t kBurst = 2'000;
    const CountedLimit forever = counted("threads.forever", token_bucket(0, hours(1), kBurst));
    on_all_threads([&](unsigned thread) {
      AtOnce check;
      std::mt19937 random(thread);
      std::uint64_t mine = 0;
      for (int i = 0; i < 10'000; ++i) {
        const std::int64_t now = clock += 100'000;
        // A reload: the same limit, with other numbers from time to time.
        const CountedLimit churned =
            counted("threads.churn", token_bucket(10 + static_cast<std::uint64_t>(i / 1'000), milliseconds(500), 20));
        const std::string key = std::string(random() % 2 * 30, 'x') + std::to_string(random() % 20'000);
        check.ask(store, {{&churned, key}, {&forever, "hot"}}, at(now));
        mine += check.admitted ? 1U : 0U;
        static_cast<void>(check.ask_one(store, churned, key + "y", 1, at(now)));
        if (i % 1'000 == 0) {
          EXPECT_LE(store.figures().keys, 9'000U);
        }
      }
      admitted += mine;
    });
    EXPECT_EQ(admitted.load(), kBurst);
    EXPECT_GT(store.figures().expired, 0U);
  }
  EXPECT_EQ(memory::live_limit_count(), limits_before);
}

}  // namespace
}  // namespace sluice::store
