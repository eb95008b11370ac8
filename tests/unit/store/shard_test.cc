// The table of one shard, with hashes chosen by the test.
#include "store/memory/shard.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "store/memory/slot_arena.h"
#include "tests/unit/store/store_test_util.h"

namespace sluice::store::memory {
namespace {

using namespace store::testing;  // NOLINT(google-build-using-namespace)
using algorithm::Cell;
using PolicyShard = Shard<PolicyRecord>;
using std::chrono::seconds;

using PolicySlots = Slots<PolicyRecord>;
using KeyedSlots = Slots<KeyedRecord>;

class ShardTest : public ::testing::Test {
 protected:
  explicit ShardTest(std::uint32_t capacity = 4'000)
      : arena_(1, SlotArena::rows_for<PolicyRecord>(PolicyShard::most_slots(capacity)), PolicySlots::kRowBytes) {
    shard_.init(arena_, book_, 0, capacity, 7);
  }

  /// A spent state that lasts `life`, told apart by the amount.
  void insert(std::uint32_t hash, const std::string& key, std::int64_t life = 1'000 * kSecond) {
    Cell cell;
    limit_->compiled.take(cell, now_, static_cast<std::uint64_t>(life) / 1'000);
    shard_.insert(hash, *limit_, SlotKey(key), cell, life, at(now_));
  }
  [[nodiscard]] bool holds(std::uint32_t hash, const std::string& key) {
    const std::uint32_t slot = shard_.find(hash, *limit_, SlotKey(key));
    return slot != PolicyShard::kNone && shard_[slot].key == SlotKey(key) && shard_[slot].hash == hash;
  }

  std::int64_t now_ = kStart;
  PolicyRecord::Book book_;
  SlotArena arena_;
  PolicyShard shard_;
  // One token a second in whole ns: a missing token lasts a second.
  CountedLimit counted_ = counted("shard_test", token_bucket(1, std::chrono::nanoseconds(1'000), 1'000'000'000));
  const LiveLimit* limit_ = LiveLimit::of(counted_);
};

TEST_F(ShardTest, KeysOfOneHashAreToldApart) {
  for (int i = 0; i < 20; ++i) insert(0x80000000U, "key" + std::to_string(i));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(holds(0x80000000U, "key" + std::to_string(i)));
  EXPECT_FALSE(holds(0x80000000U, "key20"));
  EXPECT_FALSE(holds(0x80000001U, "key1"));
}

TEST_F(ShardTest, HashesAtTheEdges) {
  for (const std::uint32_t hash : {0U, 1U, 0x7FFFFFFFU, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    for (int i = 0; i < 10; ++i) insert(hash, std::to_string(hash) + "/" + std::to_string(i));
  }
  for (const std::uint32_t hash : {0U, 1U, 0x7FFFFFFFU, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(holds(hash, std::to_string(hash) + "/" + std::to_string(i)));
  }
  EXPECT_EQ(shard_.evicted(), 0U);
}

TEST_F(ShardTest, HashesThatAllFallTogetherCostKeysButNothingElse) {
  for (const std::uint32_t hash : {0xFFFFFFFFU, 0U, 0x80000000U}) {
    for (int i = 0; i < 1'000; ++i) {
      insert(hash, std::to_string(hash) + "/" + std::to_string(i));
      ASSERT_TRUE(holds(hash, std::to_string(hash) + "/" + std::to_string(i)));
    }
  }
  std::uint64_t held = 0;
  for (const std::uint32_t hash : {0xFFFFFFFFU, 0U, 0x80000000U}) {
    for (int i = 0; i < 1'000; ++i) held += holds(hash, std::to_string(hash) + "/" + std::to_string(i)) ? 1U : 0U;
  }
  EXPECT_EQ(held, shard_.size());
  EXPECT_EQ(held + shard_.evicted(), 3'000U);
}

class ShardTrace : public ShardTest, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  ShardTrace() : ShardTest(600) {}
};

// Random hashes of few values, so that runs are long, with lives that end.
TEST_P(ShardTrace, HoldsWhatAMapHolds) {
  std::mt19937 engine(GetParam());
  const auto random = [&engine] { return static_cast<std::uint32_t>(engine()); };
  const std::uint32_t spread = GetParam();  // hashes are multiples of 2^32 / spread, and the two ends
  struct Known {
    std::int64_t end;
  };
  std::map<std::pair<std::uint32_t, std::string>, Known> known;
  for (int step = 0; step < 20'000; ++step) {
    now_ += static_cast<std::int64_t>(random() % 3) * kSecond;
    std::uint32_t hash = random() % spread * static_cast<std::uint32_t>((std::uint64_t{1} << 32U) / spread);
    if (random() % 50 == 0) hash = UINT32_MAX;
    const std::string key(random() % 3 * 9, 'k');
    const auto id = std::pair(hash, key + std::to_string(random() % 3));
    if (!holds(id.first, id.second)) {
      const auto found = known.find(id);
      if (found != known.end()) {
        ASSERT_LE(found->second.end, now_) << "lost before its time, step " << step;
      }
      const std::int64_t life = static_cast<std::int64_t>(1 + random() % 300) * kSecond;
      insert(id.first, id.second, life);
      known[id] = {now_ + life};
    }
    if (random() % 100 == 0) static_cast<void>(shard_.clean(at(now_)));
  }
  EXPECT_EQ(shard_.evicted(), 0U);
  EXPECT_GT(shard_.expired(), 0U);
  std::uint32_t live = 0;
  for (const auto& [id, one] : known) {
    if (one.end <= now_) continue;
    EXPECT_TRUE(holds(id.first, id.second));
    ++live;
  }
  EXPECT_GE(shard_.size(), live);
  now_ += 10'000 * kSecond;
  static_cast<void>(shard_.clean(at(now_)));
  EXPECT_EQ(shard_.size(), 0U);
  EXPECT_EQ(arena_.bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Spreads, ShardTrace, ::testing::Values(37U, 50U, 64U));

TEST_F(ShardTest, GrowsAndShrinksInPlace) {
  std::mt19937 random(3);
  std::vector<std::uint32_t> hashes;
  for (int i = 0; i < 4'000; ++i) {
    hashes.push_back(static_cast<std::uint32_t>(random()));
    insert(hashes.back(), std::to_string(i), (i % 100 == 0 ? 1'000 : 1) * kSecond);
  }
  EXPECT_EQ(shard_.size(), 4'000U);
  for (std::size_t i = 0; i < hashes.size(); ++i) ASSERT_TRUE(holds(hashes[i], std::to_string(i))) << i;
  EXPECT_LE(arena_.bytes(), 4'000U * sizeof(PolicyRecord) * 3 / 2 + 8'192);
  now_ += kSecond;
  static_cast<void>(shard_.clean(at(now_)));
  EXPECT_EQ(shard_.size(), 40U);
  for (std::size_t i = 0; i < hashes.size(); ++i) ASSERT_EQ(holds(hashes[i], std::to_string(i)), i % 100 == 0) << i;
  EXPECT_LE(arena_.bytes(), 2U * 4'096);
}

TEST_F(ShardTest, GivesMemoryBackWhenAnInsertionDidTheDropping) {
  std::uint32_t hash = 0;
  const auto next = [&hash] { return hash += 2'654'435'761U; };
  for (int i = 0; i < 2'000; ++i) insert(next(), std::to_string(i), kSecond);
  const std::size_t full = arena_.bytes();
  now_ += kSecond;
  std::uint32_t kept = 0;
  while (shard_.expired() == 0) insert(next(), "late" + std::to_string(kept++), 1'000 * kSecond);
  static_cast<void>(shard_.clean(at(now_)));
  EXPECT_EQ(shard_.size(), kept);
  EXPECT_LE(arena_.bytes(), full / 2);
}

TEST(SlotArena, GivesBlocksBackWhenNoRowOfThemIsInUse) {
  constexpr std::uint32_t kShards = 16;
  SlotArena arena(kShards, 10, KeyedSlots::kRowBytes);  // a layer of rows is two pages
  EXPECT_EQ(arena.bytes(), 0U);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) arena.take(shard, 0, 2);
  EXPECT_EQ(arena.bytes(), 2 * kShards * KeyedSlots::kRowBytes);
  const auto slots = arena.slots_of<KeyedRecord>(5);
  slots[17].hash = 99;
  EXPECT_EQ(slots[17].hash, 99U);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) arena.give_up(shard, 1, 2);
  EXPECT_EQ(arena.bytes(), kShards * KeyedSlots::kRowBytes);
  EXPECT_EQ(slots[17].hash, 0U);  // fresh memory
}

TEST(SlotArena, RowsMayLieAcrossBlocks) {
  constexpr std::uint32_t kShards = 16;  // a row is 768 bytes, so the sixth lies in the first page and the second
  SlotArena arena(kShards, 10, PolicySlots::kRowBytes);
  arena.take(5, 0, 1);
  EXPECT_EQ(arena.bytes(), 2U * 4'096);
  arena.take(0, 0, 1);
  arena.give_up(5, 0, 1);
  EXPECT_EQ(arena.bytes(), 4'096U);
  arena.give_up(0, 0, 1);
  EXPECT_EQ(arena.bytes(), 0U);
}

TEST(SlotArena, JoinsThePagesOfBlocksThatAreAllInUse) {
  constexpr std::uint32_t kShards = 4'096;  // a layer of rows is a block of 2 MB
  constexpr std::size_t kBlock = kShards * KeyedSlots::kRowBytes;
  static_assert(kBlock == 2U << 20U);
  SlotArena arena(kShards, 8, KeyedSlots::kRowBytes);
  EXPECT_FALSE(arena.join_next());
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    EXPECT_FALSE(arena.join_next());
    arena.take(shard, 0, 1);
    arena.slots_of<KeyedRecord>(shard)[3].hash = shard + 1;
  }
  arena.take(7, 1, 2);  // of the second block, only this row
  EXPECT_TRUE(arena.join_next());
  EXPECT_FALSE(arena.join_next());
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    ASSERT_EQ(arena.slots_of<KeyedRecord>(shard)[3].hash, shard + 1);
    arena.give_up(shard, 0, 1);
  }
  EXPECT_EQ(arena.bytes(), kBlock);
  EXPECT_EQ(arena.slots_of<KeyedRecord>(9)[3].hash, 0U);  // fresh memory
  // Given up before its turn came, a block has none.
  for (std::uint32_t shard = 0; shard < kShards; ++shard) arena.take(shard, 0, 1);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) arena.give_up(shard, 0, 1);
  EXPECT_FALSE(arena.join_next());
}

template <typename Record>
void expect_no_overlap() {
  constexpr std::uint32_t kShards = 8;
  SlotArena arena(kShards, SlotArena::rows_for<Record>(100), Slots<Record>::kRowBytes);
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    for (std::uint32_t slot = 0; slot < 100; ++slot) {
      arena.slots_of<Record>(shard)[slot].hash = shard * 100 + slot + 1;
    }
  }
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    for (std::uint32_t slot = 0; slot < 100; ++slot) {
      ASSERT_EQ(arena.slots_of<Record>(shard)[slot].hash, shard * 100 + slot + 1);
    }
  }
}

TEST(SlotArena, SlotsDoNotOverlap) {
  expect_no_overlap<PolicyRecord>();
  expect_no_overlap<KeyedRecord>();
}

}  // namespace
}  // namespace sluice::store::memory
