// What holds of every algorithm holds of every key, whatever the others do. The model's traces are in tests/model.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sluice/keyed.h"
#include "tests/unit/keyed/keyed_test_util.h"

namespace sluice {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace)

template <typename Algorithm>
class KeyedLaws : public ::testing::Test {
 protected:
  [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_() % n; }
  [[nodiscard]] std::int64_t step() {
    constexpr std::array<std::int64_t, 6> kLongest = {0, 1, 1'000, kSecond / 100, kSecond, 5 * kSecond};
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(kLongest[below(6)] + 1));
  }
  [[nodiscard]] typename Algorithm::Numbers random_numbers() {
    auto made = numbers<Algorithm>(1 + below(20), std::chrono::microseconds(1'000 * (1 + below(4'000))));
    if constexpr (std::is_same_v<Algorithm, SlidingWindow>) made.slots = below(2) == 0 ? 1 : 10;
    if constexpr (std::is_same_v<Algorithm, FixedWindow>) made.align = below(2) == 0 ? Align::epoch : Align::first_hit;
    if constexpr (std::is_same_v<Algorithm, FixedWindow>) made.count_denied = below(4) == 0;
    return made;
  }
  std::mt19937_64 random_{20'260'101};
};
TYPED_TEST_SUITE(KeyedLaws, AllAlgorithms);

void expect_same(const Decision& got, const Decision& want, int step) {
  ASSERT_EQ(got.allowed, want.allowed) << step;
  ASSERT_EQ(got.mark, want.mark) << step;
  ASSERT_EQ(got.limit, want.limit) << step;
  ASSERT_EQ(got.remaining, want.remaining) << step;
  ASSERT_EQ(got.retry_after, want.retry_after) << step;
  ASSERT_EQ(got.reset_after, want.reset_after) << step;
  ASSERT_EQ(got.delay, want.delay) << step;
}

// A thousand keys are told from a thousand limiters by nothing.
TYPED_TEST(KeyedLaws, EachKeyAnswersAsALimiterOfItsOwn) {
  using Held = std::pair<std::uint64_t, std::uint64_t>;  // the same lease's id in both
  constexpr int kSteps = 60'000;
  for (int round = 0; round < 3; ++round) {
    auto now_numbers = this->random_numbers();
    Keyed<TypeParam> keyed(now_numbers, {.max_keys = 2'000});
    std::map<std::string, std::unique_ptr<TypeParam>> single;
    std::map<std::string, std::deque<Held>> held;
    std::int64_t now = kStart;
    for (int i = 0; i < kSteps / 3; ++i) {
      now += this->step() / 50;
      const std::string key = std::to_string(this->below(1'000)) + std::string(this->below(2) * 20, '.');
      auto& one = single[key];
      if (one == nullptr) one = std::make_unique<TypeParam>(now_numbers);
      const std::uint64_t cost = this->below(5);
      expect_same(keyed.peek(key, cost, at(now)), one->peek(cost, at(now)), i);
      if constexpr (std::is_same_v<TypeParam, Concurrency>) {
        auto& leases = held[key];
        if (this->below(3) == 0 && !leases.empty()) {
          const Held lease = leases.front();
          leases.pop_front();
          ASSERT_EQ(keyed.release(key, lease.first, at(now)), one->release(lease.second, at(now)));
        }
        auto got = keyed.try_acquire(key, cost, at(now));
        auto want = one->try_acquire(cost, at(now));
        expect_same(got.decision(), want.decision(), i);
        const Held lease{got.detach(), want.detach()};
        if (lease.first != 0) leases.push_back(lease);
      } else {
        expect_same(keyed.try_acquire(key, cost, at(now)), one->try_acquire(cost, at(now)), i);
        switch (this->below(8)) {
          case 0:
            if constexpr (!std::is_same_v<TypeParam, LeakyBucket>) {
              expect_same(keyed.refund(key, cost, at(now)), one->refund(cost, at(now)), i);
            }
            break;
          case 1:
            expect_same(keyed.settle(key, cost, 2, at(now)), one->settle(cost, 2, at(now)), i);
            break;
          case 2:
            expect_same(keyed.penalize(key, cost, at(now)), one->penalize(cost, at(now)), i);
            break;
          case 3:
            expect_same(keyed.reset(key, at(now)), one->reset(at(now)), i);
            break;
          case 4:
            if constexpr (!std::is_same_v<TypeParam, LeakyBucket>) {
              const Granted got = keyed.acquire_up_to(key, 3, at(now));
              const Granted want = one->acquire_up_to(3, at(now));
              ASSERT_EQ(got.tokens, want.tokens);
              expect_same(got.decision, want.decision, i);
            }
            break;
          default:
            break;
        }
      }
      if (this->HasFatalFailure()) return;
    }
    EXPECT_EQ(keyed.figures().evicted, 0U);
  }
}

TYPED_TEST(KeyedLaws, ADenialChangesNothingAndItsRetryIsExact) {
  for (int round = 0; round < 300; ++round) {
    auto limit = this->random_numbers();
    if constexpr (std::is_same_v<TypeParam, FixedWindow>) limit.count_denied = false;
    Keyed<TypeParam> keyed(limit, {.max_keys = 100});
    std::int64_t now = kStart + this->step();
    for (int i = 0; i < 10; ++i) static_cast<void>(check(keyed, "k", this->below(4), now += this->step() / 100));
    const std::uint64_t cost = 1 + this->below(limit.rate);
    const Decision denied = check(keyed, "k", cost, now);
    if (denied.allowed) continue;
    expect_same(keyed.peek("k", cost, at(now)), denied, round);
    ASSERT_FALSE(denied.retry_after.is_never());
    const std::int64_t then = now + denied.retry_after.value().count();
    EXPECT_FALSE(keyed.peek("k", cost, at(then - 1)).allowed);
    EXPECT_TRUE(check(keyed, "k", cost, then).allowed);
  }
}

TYPED_TEST(KeyedLaws, WhatRemainsCanBeTakenAtOnceAndNoMore) {
  for (int round = 0; round < 300; ++round) {
    Keyed<TypeParam> keyed(this->random_numbers(), {.max_keys = 100});
    std::int64_t now = kStart + this->step();
    for (int i = 0; i < 5; ++i) static_cast<void>(check(keyed, "k", this->below(4), now += this->step() / 100));
    const std::uint64_t left = keyed.peek("k", 0, at(now)).remaining;
    EXPECT_FALSE(keyed.peek("k", left + 1, at(now)).allowed);
    EXPECT_TRUE(check(keyed, "k", left, now).allowed);
    EXPECT_EQ(keyed.peek("k", 0, at(now)).remaining, 0U);
  }
}

// In any window at most burst + rate × window, over a greedy hour; a fixed window twice the rate at worst.
TYPED_TEST(KeyedLaws, NoKeyGetsMoreThanItsLimitInAnyWindow) {
  constexpr std::uint64_t kRate = 7;
  Keyed<TypeParam> keyed(numbers<TypeParam>(kRate), {.max_keys = 100});
  for (const char* key : {"short", "a key of more than eleven bytes"}) {
    std::deque<std::int64_t> taken;
    std::int64_t now = kStart;
    for (int i = 0; i < 30'000; ++i) {
      now += this->step() / 40;
      while (!taken.empty() && taken.front() <= now - kSecond) taken.pop_front();
      const Decision decision = check(keyed, key, 1, now);
      if (decision.allowed) taken.push_back(now + (decision.delay.is_never() ? 0 : decision.delay.value().count()));
      ASSERT_LE(taken.size(), 2 * kRate);
      if constexpr (std::is_same_v<TypeParam, SlidingLog>) {
        ASSERT_LE(taken.size(), kRate);
      }
    }
  }
}

// An older clock gives nothing and takes nothing.
TYPED_TEST(KeyedLaws, AnOlderTimeIsAnsweredAsTheNewest) {
  for (int round = 0; round < 100; ++round) {
    auto limit = this->random_numbers();
    if constexpr (std::is_same_v<TypeParam, FixedWindow>) limit.count_denied = false;
    Keyed<TypeParam> keyed(limit, {.max_keys = 100});
    static_cast<void>(check(keyed, "k", 1, kStart));
    const std::int64_t older = kStart - 1 - this->step();
    expect_same(keyed.peek("k", 1, at(older)), keyed.peek("k", 1, at(kStart)), round);
    while (check(keyed, "k", 1, older).allowed) {
    }
    EXPECT_FALSE(keyed.peek("k", 1, at(kStart)).allowed);
  }
}

}  // namespace
}  // namespace sluice
