// Races on a bucket's word, each forced: at a sync point the test does what another thread might do just then. The
// bucket is compiled with its sync points for this program.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/leaky_bucket.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'767'225'600 * kSecond;
constexpr int kGenerations = 62;  // renumberings until a word's generation comes again

Time at(std::int64_t ns) { return {.steady = kStart + ns, .utc = 0}; }

// What is to happen the next time that a point is reached.
std::map<std::string, std::function<void()>, std::less<>>& traps() {
  static std::map<std::string, std::function<void()>, std::less<>> all;
  return all;
}

class Races : public testing::Test {
 protected:
  void SetUp() override { traps().clear(); }
  // Every trap must have been sprung.
  void TearDown() override {
    for (const auto& [point, event] : traps()) ADD_FAILURE() << point << " was not reached";
    traps().clear();
  }
  static void once_at(const std::string& point, std::function<void()> event) { traps()[point] = std::move(event); }
};

TEST_F(Races, ALostTokenIsNotGivenTwice) {
  TokenBucket bucket({.rate = 10, .burst = 1});
  static_cast<void>(bucket.try_acquire(0, at(0)));
  bool rival = false;
  once_at("bucket.swap", [&] { rival = bucket.try_acquire(1, at(0)).allowed; });
  const Decision decision = bucket.try_acquire(1, at(0));
  EXPECT_TRUE(rival);
  EXPECT_FALSE(decision.allowed);
  EXPECT_EQ(decision.retry_after.value(), milliseconds(100));
}

TEST_F(Races, WhoLosesIsToldTheStateAfterBoth) {
  TokenBucket bucket({.rate = 10, .burst = 5});
  static_cast<void>(bucket.try_acquire(0, at(0)));
  once_at("bucket.swap", [&] { EXPECT_EQ(bucket.try_acquire(2, at(0)).remaining, 3U); });
  const Decision decision = bucket.try_acquire(1, at(0));
  EXPECT_EQ(decision.remaining, 2U);
  EXPECT_EQ(decision.reset_after.value(), milliseconds(300));
}

TEST_F(Races, AcquireUpToTakesWhatTheRivalLeft) {
  TokenBucket bucket({.rate = 10, .burst = 5});
  static_cast<void>(bucket.try_acquire(0, at(0)));
  once_at("bucket.swap", [&] { bucket.try_acquire(4, at(0)); });
  EXPECT_EQ(bucket.acquire_up_to(5, at(0)).tokens, 1U);
}

TEST_F(Races, ChargesGoByTheNumbersThatAreInForceWhenTheyAreMade) {
  TokenBucket bucket({.rate = 10, .burst = 5});
  bucket.try_acquire(2, at(0));
  once_at("bucket.swap", [&] { bucket.set_limit({.rate = 1, .burst = 2}, at(0)); });
  const Decision decision = bucket.try_acquire(1, at(0));
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.limit, 2U);
  EXPECT_EQ(decision.remaining, 1U);
  EXPECT_EQ(decision.reset_after.value(), seconds(1));
}

TEST_F(Races, NewNumbersAfterTheOldOnesWereRead) {
  TokenBucket bucket({.rate = 10, .burst = 5});
  bucket.try_acquire(2, at(0));
  once_at("bucket.look", [&] { bucket.set_limit({.rate = 1, .burst = 1}, at(0)); });
  const Decision decision = bucket.try_acquire(3, at(0));
  EXPECT_FALSE(decision.allowed);
  EXPECT_TRUE(decision.retry_after.is_never());
  EXPECT_EQ(decision.limit, 1U);
}

TEST_F(Races, BothSlotsWereWrittenAfterTheNumbersWereRead) {
  TokenBucket bucket({.rate = 10, .burst = 100});
  bucket.try_acquire(1, at(0));
  once_at("bucket.look", [&] {
    for (std::uint64_t burst = 1; burst <= 3; ++burst) bucket.set_limit({.rate = 10, .burst = burst}, at(0));
  });
  EXPECT_EQ(bucket.peek(0, at(0)).limit, 3U);
}

TEST_F(Races, TheGenerationCameAgainAfterTheNumbersWereRead) {
  TokenBucket bucket({.rate = 10, .burst = 1'000});
  bucket.try_acquire(1, at(0));
  once_at("bucket.look", [&] {
    for (int i = 1; i <= kGenerations; ++i) {
      bucket.set_limit({.rate = 10, .burst = static_cast<std::uint64_t>(1'000 - 10 * i)}, at(0));
    }
  });
  const Decision decision = bucket.try_acquire(380, at(0));
  EXPECT_TRUE(decision.allowed);
  EXPECT_EQ(decision.limit, 380U);
  EXPECT_EQ(decision.remaining, 0U);
  EXPECT_FALSE(bucket.try_acquire(1, at(0)).allowed);
}

TEST_F(Races, TheGenerationCameAgainBeforeTheSwap) {
  TokenBucket bucket({.rate = 10, .burst = 1'000});
  bucket.try_acquire(1, at(0));
  once_at("bucket.swap", [&] {
    for (int i = 1; i <= kGenerations; ++i) {
      bucket.set_limit({.rate = 10, .burst = static_cast<std::uint64_t>(1'000 - 10 * i)}, at(0));
    }
  });
  EXPECT_FALSE(bucket.try_acquire(500, at(0)).allowed);
  EXPECT_EQ(bucket.peek(0, at(0)).remaining, 380U);
}

TEST_F(Races, TheGenerationCameAgainByWayOfDebtsThatNoWordHolds) {
  constexpr std::int64_t kLater = 3'600 * kSecond;
  TokenBucket bucket({.rate = 10, .burst = 1'000});
  bucket.try_acquire(1'000, at(0));
  bucket.reset(at(0));
  once_at("bucket.swap", [&] {
    for (int i = 0; i < kGenerations; ++i) {
      bucket.settle(0, 1'000'000'000'000, at(kLater));  // out of the word
      bucket.reset(at(kLater));                         // and back
    }
  });
  EXPECT_EQ(bucket.try_acquire(1, at(kLater)).remaining, 999U);
  EXPECT_EQ(bucket.peek(0, at(kLater)).remaining, 999U);
}

TEST_F(Races, AChargeAgainstAReset) {
  TokenBucket bucket({.rate = 0, .burst = 3});
  bucket.try_acquire(3, at(0));
  once_at("bucket.exact.swap", [&] { EXPECT_FALSE(bucket.try_acquire(1, at(0)).allowed); });
  EXPECT_EQ(bucket.reset(at(0)).remaining, 3U);
  once_at("bucket.swap", [&] { bucket.reset(at(0)); });
  EXPECT_EQ(bucket.try_acquire(2, at(0)).remaining, 1U);
}

TEST_F(Races, AChargeWhileNewNumbersAreWorkedOut) {
  TokenBucket bucket({.rate = 10, .burst = 5});
  bucket.try_acquire(1, at(0));
  bool rival = false;
  once_at("bucket.exact.swap", [&] { rival = bucket.try_acquire(3, at(0)).allowed; });
  const Decision decision = bucket.set_limit({.rate = 7, .period = hours(1), .burst = 50}, at(0));
  EXPECT_TRUE(rival);
  EXPECT_EQ(decision.remaining, 1U);
  EXPECT_EQ(bucket.peek(0, at(0)).remaining, 1U);
}

TEST_F(Races, AChargeWhileARefundIsWorkedOut) {
  TokenBucket bucket({.rate = 0, .burst = 5});
  bucket.try_acquire(4, at(0));
  once_at("bucket.exact.swap", [&] { EXPECT_TRUE(bucket.try_acquire(1, at(0)).allowed); });
  EXPECT_EQ(bucket.refund(2, at(0)).remaining, 2U);
}

TEST_F(Races, APenaltyAgainstACharge) {
  TokenBucket bucket({.rate = 0, .burst = 5});
  bucket.try_acquire(1, at(0));
  once_at("bucket.exact.swap", [&] { EXPECT_TRUE(bucket.try_acquire(4, at(0)).allowed); });
  EXPECT_EQ(bucket.penalize(3, at(0)).remaining, 0U);
  EXPECT_EQ(bucket.refund(4, at(0)).remaining, 1U);
}

TEST_F(Races, TheWordWasRenewedAsItsClockRanOut) {
  // 10^9 parts a nanosecond: readings end after a seventh of a second.
  TokenBucket bucket({.rate = 1'000'000'000'000, .period = nanoseconds(1'000), .burst = 2'000'000'000});
  bucket.try_acquire(2'000'000'000, at(0));
  once_at("bucket.swap", [&] { EXPECT_TRUE(bucket.try_acquire(2'000'000'000, at(kSecond)).allowed); });
  EXPECT_FALSE(bucket.try_acquire(2'000'000'000, at(kSecond / 20)).allowed);
  EXPECT_TRUE(bucket.try_acquire(2'000'000'000, at(kSecond + 2)).allowed);
}

TEST_F(Races, TwoRequestsNeverGetOneSlot) {
  LeakyBucket queue({.rate = 10, .queue = 2});
  static_cast<void>(queue.try_acquire(0, at(0)));
  once_at("bucket.swap", [&] { EXPECT_EQ(queue.try_acquire(1, at(0)).delay.value(), nanoseconds(0)); });
  EXPECT_EQ(queue.try_acquire(1, at(0)).delay.value(), milliseconds(100));
  once_at("bucket.swap",
          [&] { EXPECT_EQ(queue.set_limit({.rate = 20, .queue = 4}, at(0)).reset_after.value(), milliseconds(200)); });
  EXPECT_EQ(queue.try_acquire(1, at(0)).delay.value(), milliseconds(200));
}

}  // namespace

namespace internal {
void reach(const char* point) {
  const auto found = traps().find(std::string_view(point));
  if (found == traps().end()) return;
  const std::function<void()> event = std::move(found->second);
  traps().erase(found);
  event();
}
}  // namespace internal
}  // namespace sluice
