#include "queue/ack_ledger.h"

#include <gtest/gtest.h>

namespace sluice::queue::rabbit {
namespace {

using Numbers = std::vector<std::uint64_t>;

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kStart = 5'000 * kMillisecond;

/// With the tags of messages 1 to `count`, in lanes that take turns.
struct Filled {
  explicit Filled(std::uint64_t count, std::size_t lanes = 2, std::size_t most_waiting = 100)
      : ledger(lanes, most_waiting) {
    for (std::uint64_t number = 1; number <= count; ++number) tags.push_back(ledger.add(number, number % lanes));
  }
  bool finish(std::uint64_t number) { return ledger.finish(tags[number - 1]); }

  AckLedger ledger;
  Numbers tags;
};

TEST(AckLedger, TellsWhatStandsBeforeTheFirstHeldOneByOneNumber) {
  Filled filled(4);
  EXPECT_EQ(filled.ledger.due(), AckLedger::kNever);
  for (const std::uint64_t number : Numbers{2, 1, 4}) EXPECT_TRUE(filled.finish(number));
  EXPECT_LE(filled.ledger.due(), kStart);
  const AckLedger::Due due = filled.ledger.take(kStart);
  EXPECT_EQ(due.all_up_to, 2U);
  EXPECT_EQ(due.alone, Numbers());
  EXPECT_TRUE(filled.finish(3));
  EXPECT_EQ(filled.ledger.take(kStart + kMillisecond).all_up_to, 4U);
  EXPECT_EQ(filled.ledger.due(), AckLedger::kNever);
}

TEST(AckLedger, WaitsAMillisecondForOthers) {
  Filled filled(3);
  filled.finish(1);
  EXPECT_EQ(filled.ledger.take(kStart).all_up_to, 1U);
  filled.finish(2);
  EXPECT_EQ(filled.ledger.due(), kStart + kMillisecond);
  EXPECT_EQ(filled.ledger.take(kStart + kMillisecond - 1).all_up_to, 0U);
  filled.finish(3);
  EXPECT_EQ(filled.ledger.take(kStart + kMillisecond).all_up_to, 3U);
}

TEST(AckLedger, TellsWhatStandsBehindAHeldOneByItselfAfterHalfASecond) {
  Filled filled(4);
  for (const std::uint64_t number : Numbers{2, 4}) filled.finish(number);
  EXPECT_EQ(filled.ledger.take(kStart).alone, Numbers());
  const std::int64_t late = kStart + 500 * kMillisecond;
  EXPECT_EQ(filled.ledger.due(), late);
  const AckLedger::Due due = filled.ledger.take(late);
  EXPECT_EQ(due.all_up_to, 0U);
  EXPECT_EQ(due.alone, Numbers({2, 4}));
  EXPECT_EQ(filled.ledger.due(), AckLedger::kNever);
  // The server knows 4 no more, so it must not be named again.
  for (const std::uint64_t number : Numbers{1, 3}) filled.finish(number);
  EXPECT_EQ(filled.ledger.take(late + kMillisecond).all_up_to, 3U);
}

TEST(AckLedger, TellsAllOnceALaneHasAsManyAsMayWait) {
  Filled filled(7, 2, 2);
  for (const std::uint64_t number : Numbers{2, 3}) filled.finish(number);
  EXPECT_EQ(filled.ledger.take(kStart).alone, Numbers());  // one of each lane
  filled.finish(5);
  EXPECT_LE(filled.ledger.due(), kStart);
  EXPECT_EQ(filled.ledger.take(kStart).alone, Numbers({2, 3, 5}));
  filled.finish(7);
  EXPECT_EQ(filled.ledger.take(kStart + kMillisecond).alone, Numbers());
}

TEST(AckLedger, TellsAllAtTheEnd) {
  Filled filled(3);
  filled.finish(2);
  EXPECT_EQ(filled.ledger.take(AckLedger::kNever).alone, Numbers({2}));
}

TEST(AckLedger, FinishesOnlyWhatIsHeldAndOnlyOnce) {
  Filled filled(3);
  EXPECT_TRUE(filled.finish(1));
  EXPECT_FALSE(filled.finish(1));
  EXPECT_EQ(filled.ledger.take(kStart).all_up_to, 1U);
  EXPECT_FALSE(filled.finish(1));
  EXPECT_FALSE(filled.ledger.finish(filled.tags.back() + 1));
  EXPECT_FALSE(filled.ledger.finish(0));
}

TEST(AckLedger, ForgetsALostConnectionAndCountsTheNextOneAnew) {
  Filled filled(3);
  filled.finish(2);
  filled.ledger.clear();
  EXPECT_EQ(filled.ledger.due(), AckLedger::kNever);
  const std::uint64_t tag = filled.ledger.add(1, 0);
  for (const std::uint64_t old : filled.tags) {
    EXPECT_NE(old, tag);
    EXPECT_FALSE(filled.ledger.holds(old));
    EXPECT_FALSE(filled.ledger.finish(old));
  }
  EXPECT_TRUE(filled.ledger.holds(tag));
  EXPECT_TRUE(filled.ledger.finish(tag));
  EXPECT_EQ(filled.ledger.take(kStart).all_up_to, 1U);
}

TEST(AckLedger, TakesNumbersThatAreLeftOut) {
  AckLedger ledger(1, 100);
  const std::uint64_t first = ledger.add(1, 0);
  const std::uint64_t second = ledger.add(5, 0);
  EXPECT_FALSE(ledger.holds(first + 1));
  ledger.finish(first);
  EXPECT_EQ(ledger.take(kStart).all_up_to, 1U);
  ledger.finish(second);
  EXPECT_EQ(ledger.take(kStart + kMillisecond).all_up_to, 5U);
}

}  // namespace
}  // namespace sluice::queue::rabbit
