#include "algorithm/concurrency.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kStart = kNewYear;

TEST(Concurrency, HoldsUntilReleasedOrTimedOut) {
  const Concurrency limit(2, kMinute);
  Concurrency::State state;
  EXPECT_EQ(limit.take(state, kStart, 1), 1U);
  EXPECT_EQ(limit.take(state, kStart + 5, 1), 2U);
  EXPECT_EQ(limit.judge(state, kStart + 5, 1).retry_after, kMinute - 5);
  EXPECT_EQ(limit.judge(state, kStart + 5, 2).retry_after, kMinute);
  EXPECT_TRUE(limit.release(state, kStart + 6, 1));
  EXPECT_TRUE(limit.judge(state, kStart + 6, 1).fits);
  EXPECT_EQ(limit.view(state, kStart + 6).reset_after, kMinute - 1);
  EXPECT_FALSE(limit.judge(state, kStart + 5 + kMinute - 1, 2).fits);
  EXPECT_TRUE(limit.judge(state, kStart + 5 + kMinute, 2).fits);
}

TEST(Concurrency, ReleasesOnlyWhatIsHeld) {
  const Concurrency limit(2, kMinute);
  Concurrency::State state;
  const std::uint64_t lease = limit.take(state, kStart, 2);
  EXPECT_FALSE(limit.release(state, kStart, lease + 1));
  EXPECT_FALSE(limit.release(state, kStart, 0));
  EXPECT_TRUE(limit.release(state, kStart, lease));
  EXPECT_FALSE(limit.release(state, kStart, lease));
  const std::uint64_t late = limit.take(state, kStart, 2);
  EXPECT_FALSE(limit.release(state, kStart + kMinute, late));
  EXPECT_TRUE(limit.judge(state, kStart + kMinute, 2).fits);
}

TEST(Concurrency, LeasesKeepTheirEndsUnderANewTtl) {
  const Concurrency minute(3, kMinute);
  const Concurrency second(3, kSecond);
  Concurrency::State state;
  static_cast<void>(minute.take(state, kStart, 1));
  const std::uint64_t shorter = second.take(state, kStart, 2);
  EXPECT_EQ(second.judge(state, kStart, 1).retry_after, kSecond);
  EXPECT_EQ(second.judge(state, kStart, 3).retry_after, kMinute);
  EXPECT_EQ(second.view(state, kStart + kSecond).remaining, 2U);
  EXPECT_FALSE(second.release(state, kStart + kSecond, shorter));
  EXPECT_EQ(second.expires_at(state), kStart + kMinute);
}

TEST(Concurrency, ManyLeasesReleasedInAnyOrder) {
  const Concurrency limit(10'000, kHour);
  Concurrency::State state;
  std::vector<std::uint64_t> leases;
  for (int i = 0; i < 10'000; ++i) leases.push_back(limit.take(state, kStart + i, 1));
  EXPECT_FALSE(limit.judge(state, kStart + 10'000, 1).fits);
  for (std::size_t i = 0; i < leases.size(); i += 2) ASSERT_TRUE(limit.release(state, kStart + 10'000, leases[i]));
  EXPECT_EQ(limit.view(state, kStart + 10'000).remaining, 5'000U);
  for (std::size_t i = leases.size(); i > 0; --i) {
    ASSERT_EQ(limit.release(state, kStart + 10'000, leases[i - 1]), (i - 1) % 2 == 1);
  }
  EXPECT_TRUE(limit.is_initial(state, kStart + 10'000));
}

TEST(Concurrency, LeasesThatAreOverGiveTheirMemoryBack) {
  const Concurrency limit(10'000, kMinute);
  Concurrency::State state;
  std::vector<std::uint64_t> leases;
  for (int i = 0; i < 10'000; ++i) leases.push_back(limit.take(state, kStart, 1));
  EXPECT_GE(state.memory(), 240'000U);
  static_cast<void>(limit.take(state, kStart + kMinute, 1));  // all the others have timed out
  EXPECT_LE(state.memory(), 1'000U);
  leases.clear();
  for (int i = 1; i < 10'000; ++i) leases.push_back(limit.take(state, kStart + kMinute, 1));
  EXPECT_GE(state.memory(), 240'000U);
  for (const std::uint64_t lease : leases) ASSERT_TRUE(limit.release(state, kStart + kMinute, lease));
  EXPECT_LE(state.memory(), 1'000U);
  EXPECT_EQ(limit.view(state, kStart + kMinute).remaining, 9'999U);
}

TEST(Concurrency, ResetEndsAllLeasesAndIdsGoOn) {
  const Concurrency limit(1, kHour);
  Concurrency::State state;
  const std::uint64_t lease = limit.take(state, kStart, 1);
  Concurrency::reset(state);
  EXPECT_FALSE(limit.release(state, kStart, lease));
  EXPECT_EQ(limit.take(state, kStart, 1), lease + 1);
}

}  // namespace
}  // namespace sluice::algorithm
