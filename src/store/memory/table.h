// Keys with their states, in shards: bounded, self-cleaning, shared by all threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "sluice/clock.h"
#include "store/memory/key_hash.h"
#include "store/memory/shard.h"
#include "store/memory/slot_arena.h"
#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// Sums over all shards.
struct TableFigures {
  std::uint64_t keys = 0;
  std::uint64_t evicted = 0;  ///< dropped for want of room, not yet as fresh; never falls
  std::uint64_t expired = 0;  ///< dropped because they equalled fresh ones; never falls
  std::uint64_t bytes = 0;    ///< memory held, in all
  std::uint64_t work = 0;     ///< slots looked at or moved to make room and to clean, for ever
};

/// The shards of a kind of record, the memory they share, and the cleaning of both.
///
/// Each call of clean() may look through a shard and drop the keys in it that equal fresh ones: about half a second
/// after a key does (at most two, when few do), its memory is free again, if there are calls. No thread, no
/// timer. One call looks at no more than kMostLooked slots and one shard.
///
/// Thread-safe; a shard's own functions need its lock.
template <typename Record>
class Table {
 public:
  using Shards = Shard<Record>;
  static constexpr std::uint64_t kMostKeys = 1'000'000'000;
  static constexpr std::uint32_t kMostLooked = 1'024;
  static constexpr std::uint64_t kKeysPerShard = 4'096;
  /// No later time, and no earlier one than that below 0, may be handed over: far from the ends of what the algorithms
  /// can reckon with, by more than any of the table's own waits.
  static constexpr std::int64_t kLatestNow = algorithm::kLatest - (std::int64_t{1} << 34U);

  /// `max_keys` 1 … kMostKeys: below 2 × kKeysPerShard there is one shard, and the bound is exact; else a shard may be
  /// full when 19/20 of them are there. `book` is kept by the caller. Throws std::bad_alloc when there is no address
  /// space (1.6 to 1.9 records a key).
  Table(std::uint64_t max_keys, const typename Record::Book& book) {
    assert(max_keys >= 1 && max_keys <= kMostKeys);
    const auto shards =
        static_cast<std::uint32_t>(std::bit_floor(std::max<std::uint64_t>(1, max_keys / kKeysPerShard)));
    const auto capacity = static_cast<std::uint32_t>(max_keys / shards);
    arena_ = std::make_unique<SlotArena>(shards, SlotArena::rows_for<Record>(Shards::most_slots(capacity)),
                                         Slots<Record>::kRowBytes);
    shards_ = std::make_unique<Shards[]>(shards);
    shard_mask_ = shards - 1;
    for (std::uint32_t i = 0; i < shards; ++i) {
      shards_[i].init(*arena_, book, i, capacity, static_cast<std::uint32_t>(hash_(i, "eviction")));
    }
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table() = default;

  [[nodiscard]] const KeyHash& hash() const noexcept { return hash_; }
  /// Of a key's place (see KeyHash), the upper half tells the shard and the lower one is the hash in it.
  [[nodiscard]] std::uint32_t shard_number(std::uint64_t place) const noexcept {
    return shard_number_of(static_cast<std::uint32_t>(place >> 32U));
  }
  [[nodiscard]] std::uint32_t shard_number_of(std::uint32_t upper_half) const noexcept {
    return upper_half & shard_mask_;
  }
  [[nodiscard]] std::uint32_t shards() const noexcept { return shard_mask_ + 1; }
  [[nodiscard]] Shards& shard(std::uint32_t number) const noexcept { return shards_[number]; }

  /// Once in each call, with no lock held.
  void clean(Time now) {
    if (is_clean_due(now.steady)) clean_some(now);
  }
  /// Would clean() do anything? If not, `now` is not beyond ± kLatestNow. Cost: a load and a comparison.
  [[nodiscard]] bool is_clean_due(std::int64_t now) const noexcept {
    // A time that is due too far ahead is of a clock that went back since.
    const std::int64_t due = clean_due_.load(std::memory_order_relaxed);
    return algorithm::ticks_between(now, due) - 1 >= std::uint64_t{2 * Shards::kSoon};
  }
  /// See SlotArena::join_next().
  bool join_pages() noexcept { return arena_->join_next(); }
  [[nodiscard]] TableFigures figures() const noexcept {
    TableFigures sum;
    for (std::uint32_t i = 0; i <= shard_mask_; ++i) {
      const Shards& shard = shards_[i];
      sum.keys += shard.size();
      sum.evicted += shard.evicted();
      sum.expired += shard.expired();
      sum.work += shard.work();
      sum.bytes += sizeof(Shards) + shard.owned();
    }
    sum.bytes += arena_->bytes();
    return sum;
  }

 private:
  void clean_some(Time now) {
    const std::unique_lock cleaner(cleaning_, std::try_to_lock);
    if (!cleaner.owns_lock()) return;
    const std::uint32_t shards = shard_mask_ + 1;
    const std::int64_t per_shard = std::max<std::int64_t>(1, Shards::kSoon / shards);
    if (cursor_ == shards || !pass_begun_ || pass_start_ - now.steady > Shards::kSoon) {
      pass_begun_ = true;
      pass_start_ = now.steady;
      cursor_ = 0;
    }
    // The pass should be here by now. A thread with an older clock finds it ahead and does nothing.
    const std::int64_t elapsed = std::max<std::int64_t>(0, now.steady - pass_start_);
    const auto target = static_cast<std::uint32_t>(std::min<std::int64_t>(shards, elapsed / per_shard + 1));
    for (std::uint32_t looked = 0; cursor_ < target && looked < kMostLooked; ++cursor_) {
      constexpr std::uint32_t as_slots = 8;  // what going to a shard costs
      Shards& shard = shards_[cursor_];
      const std::scoped_lock lock(shard);
      looked += shard.clean(now) + as_slots;
    }
    const std::int64_t due = cursor_ < target ? now.steady : pass_start_ + cursor_ * per_shard;
    set_clean_due(cursor_ == shards ? std::max(now.steady, pass_start_ + Shards::kSoon) : due);
  }

  // All that is_clean_due() lets pass lies within ± kLatestNow.
  static constexpr std::int64_t kFirstCleanDue = -kLatestNow + 2 * Shards::kSoon;
  void set_clean_due(std::int64_t due) noexcept {
    clean_due_.store(std::clamp(due, kFirstCleanDue, kLatestNow), std::memory_order_relaxed);
  }

  KeyHash hash_;
  std::unique_ptr<SlotArena> arena_;
  std::unique_ptr<Shards[]> shards_;                     // in the arena, so they go first
  std::atomic<std::int64_t> clean_due_{kFirstCleanDue};  // steady time
  SpinLock cleaning_;                                    // guards where the pass is
  std::uint32_t cursor_ = 0;
  std::int64_t pass_start_ = 0;
  bool pass_begun_ = false;
  std::uint32_t shard_mask_ = 0;
};

}  // namespace sluice::store::memory
