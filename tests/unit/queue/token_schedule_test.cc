#include "queue/token_schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::queue {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

Limit limit(std::uint64_t rate) {
  Limit made;
  made.rate = rate;
  made.burst = 1;
  return made;
}

TEST(TokenSchedule, SpreadsWhatWasReservedAtOnce) {
  TokenSchedule schedule(limit(100));
  EXPECT_EQ(schedule.due(1), TokenSchedule::kNone);
  schedule.add(3, 50 * kMillisecond);
  EXPECT_EQ(schedule.due(1), 30 * kMillisecond);
  EXPECT_EQ(schedule.due(3), 50 * kMillisecond) << "several act when the last of them is there";
  schedule.use(1, 30 * kMillisecond);
  EXPECT_EQ(schedule.due(1), 40 * kMillisecond);
  EXPECT_EQ(schedule.left(), 2U);
  EXPECT_EQ(schedule.clear(), 2U);
  EXPECT_EQ(schedule.due(1), TokenSchedule::kNone);
}

TEST(TokenSchedule, LateOnesCatchUpAtTwiceTheRate) {
  TokenSchedule schedule(limit(100));
  schedule.add(100, kSecond);
  schedule.use(1, 500 * kMillisecond);
  EXPECT_EQ(schedule.due(1), 505 * kMillisecond);
}

TEST(TokenSchedule, NoSecondHasMoreThanASecondsWorthAndOne) {
  TokenSchedule schedule(limit(500));
  schedule.add(5'000, 10 * kSecond);
  std::vector<std::int64_t> times;
  std::int64_t now = 0;
  while (schedule.left() > 0) {
    now = std::max(now, schedule.due(1));
    // A stall now and then, a little lateness always.
    now += times.size() % 700 == 699 ? 300 * kMillisecond : kMillisecond / 5;
    schedule.use(1, now);
    times.push_back(now);
  }
  std::size_t first = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    while (times[i] - times[first] >= kSecond) ++first;
    EXPECT_LE(i - first + 1, 501U);
  }
}

TEST(TokenSchedule, ALittleLatenessDoesNotAddUp) {
  TokenSchedule schedule(limit(500));
  schedule.add(5'000, 10 * kSecond);
  std::int64_t now = 0;
  while (schedule.left() > 0) {
    now = std::max(now, schedule.due(1)) + kMillisecond / 2;
    schedule.use(1, now);
  }
  EXPECT_LE(now, 10 * kSecond + 2 * kMillisecond);
}

TEST(TokenSchedule, FastOnesMayComeTogether) {
  TokenSchedule schedule(limit(20'000));
  schedule.add(100, 5 * kMillisecond);
  std::int64_t now = 5 * kMillisecond;
  int together = 0;
  while (schedule.due(1) <= now) {
    schedule.use(1, now);
    ++together;
  }
  EXPECT_GE(together, 20);
  EXPECT_LE(together, 45);
}

TEST(TokenSchedule, ARunWithoutGapsIsNotHeldBackUntilItsEnd) {
  TokenSchedule schedule(limit(20'000));
  schedule.add(100'000, 5 * kSecond);
  // Late from the beginning; looked at so often that there is hardly ever a gap.
  std::int64_t now = 100 * kMillisecond;
  std::int64_t latest = 0;
  for (std::int64_t i = 1; schedule.left() > 0; ++i) {
    const std::int64_t due = schedule.due(1);
    if (due > now) now = std::max(due, now + kMillisecond / 10);
    schedule.use(1, now);
    now += 1'000;
    latest = std::max(latest, now - i * kSecond / 20'000);
  }
  EXPECT_LE(now, 5 * kSecond + 5 * kMillisecond);
  EXPECT_LE(latest, 105 * kMillisecond) << "the gap of the beginning comes again each second, and no more than that";
}

}  // namespace
}  // namespace sluice::queue
