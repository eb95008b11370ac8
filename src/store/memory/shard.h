// One shard of the memory store: a small hash table of keys with their states.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "algorithm/ticks.h"
#include "sluice/clock.h"
#include "store/memory/live_limit.h"
#include "store/memory/record.h"
#include "store/memory/slot_arena.h"
#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// Open addressing in order of hash: the records lie in ascending order of their hashes, each at its home slot (its
/// hash as a fraction of the slots) or in an unbroken run after it. So a key is at a place known before the lock is
/// taken, one cache line, or close behind; a key that is not there is missed as early as one that is; and the table can
/// be stretched or shrunk to any number of slots in place, by two passes over memory: it is never copied elsewhere.
/// The slots lie in a SlotArena, which has memory for them when they are first touched.
///
/// All functions but those that say otherwise need lock() held.
class alignas(64) Shard {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Room behind the last home, for records that don't find a place before it.
  static constexpr std::uint32_t kTail = 96;
  /// Slots that a shard of so many records at most may come to use.
  [[nodiscard]] static constexpr std::uint32_t most_slots(std::uint32_t capacity) {
    return slots_for(capacity) + kTail;
  }
  /// A full shard drops the best of so many that it draws at random, or of all up to kExact.
  static constexpr std::uint32_t kSample = 8;
  static constexpr std::uint32_t kExact = 16;
  /// After a look that found less than a sixteenth to drop, now or within `kSoon`, the next is `kRest` away.
  static constexpr std::int64_t kSoon = 500'000'000;
  static constexpr std::int64_t kRest = 4 * kSoon;

  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  /// Once, before all else. `arena`, kept by the caller, has most_slots(capacity) for each shard; this is shard
  /// `number`.
  void init(SlotArena& arena, std::uint32_t number, std::uint32_t capacity, std::uint32_t seed) noexcept;

  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

  /// Brings near where a hash would be. Needs no lock: it is a hint.
  void prefetch(std::uint32_t hash) const noexcept {
    const std::uint32_t home = home_of(hash, slots());
    __builtin_prefetch(&slots_[home], 1);
    __builtin_prefetch(&slots_[home + 1], 1);
    __builtin_prefetch(&slots_[home + 2], 1);
    __builtin_prefetch(&slots_[home + 3], 1);
  }

  /// The slot of (limit's id, key), or kNone. `hash` is that of both.
  [[nodiscard]] std::uint32_t find(std::uint32_t hash, const LiveLimit& limit, const SlotKey& key) const noexcept {
    for (std::uint32_t slot = home_of(hash, slots());; ++slot) {
      const Record& record = slots_[slot];
      if (record.is_empty() || record.hash > hash) return kNone;
      if (record.hash != hash || record.key != key) continue;
      if (record.limit == &limit || record.limit->id == limit.id) return slot;
    }
  }
  [[nodiscard]] Record& operator[](std::uint32_t slot) noexcept { return slots_[slot]; }
  /// Turns a record's state into one of `limit`, if it was made by other numbers.
  void bring_up_to_date(std::uint32_t slot, const LiveLimit& limit, std::int64_t instant) noexcept {
    if (slots_[slot].limit != &limit) convert(slot, limit, instant);
  }

  /// Adds a key that find() does not know, whose state has `life_left` (see Record). A full shard drops another first:
  /// one that equals a fresh one, or else the one nearest to that among some. Other records move.
  void insert(std::uint32_t hash, const LiveLimit& limit, const SlotKey& key,
              const algorithm::CompiledLimit::State& state, std::int64_t life_left, Time now) noexcept;

  /// Looks through the shard, if anything can be expected, drops what equals a fresh key, and gives memory back.
  /// Returns how many slots it looked at.
  std::uint32_t clean(Time now) noexcept;

  // Figures; no lock needed for these.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t expired() const noexcept { return expired_.load(std::memory_order_relaxed); }
  /// Slots looked at or moved by insert() and clean(), for ever.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_.load(std::memory_order_relaxed); }

 private:
  /// The slots, tail not counted, for a number of records: five sixths full. It grows when nine tenths are full and
  /// shrinks when less than half are.
  [[nodiscard]] static constexpr std::uint32_t slots_for(std::uint32_t records) { return records + records / 5 + 4; }
  [[nodiscard]] bool is_full_with(std::uint32_t records) const noexcept {
    return std::uint64_t{records} * 10 > std::uint64_t{slots()} * 9;
  }
  [[nodiscard]] static std::uint32_t home_of(std::uint32_t hash, std::uint32_t slots) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * slots >> 32U);
  }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slot_count_.load(std::memory_order_relaxed); }
  /// The first slot that is always empty, behind the tail.
  [[nodiscard]] std::uint32_t end() const noexcept { return slots() + kTail - 1; }
  /// All records lie before this one.
  [[nodiscard]] std::uint32_t used_end() const noexcept { return std::min(end(), taken_); }

  void convert(std::uint32_t slot, const LiveLimit& limit, std::int64_t instant) noexcept;
  [[nodiscard]] bool try_insert(const Record& record) noexcept;
  void erase(std::uint32_t slot) noexcept;
  void drop(Record& record) noexcept;
  void evict_one(Time now) noexcept;
  void drop_fresh(Time now) noexcept;
  void spread(std::uint32_t new_slots) noexcept;
  void take(std::uint32_t slots) noexcept;
  void shift_right(std::uint32_t from, std::uint32_t past, std::uint32_t by) noexcept;
  void give_back() noexcept;
  [[nodiscard]] bool may_drop(Time now) const noexcept { return now.steady >= std::max(soonest_, rest_until_); }
  [[nodiscard]] std::uint32_t draw(std::uint32_t below) noexcept;

  template <typename T, typename N>
  static void bump(std::atomic<T>& counter, N n) noexcept {
    counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + static_cast<T>(n)),
                  std::memory_order_relaxed);
  }

  SpinLock lock_;
  std::atomic<std::uint32_t> slot_count_{0};
  Slots slots_;
  std::atomic<std::uint32_t> size_{0};
  std::uint32_t capacity_ = 0;
  std::int64_t soonest_ = algorithm::kNever;  // steady time before which no record may go
  std::int64_t rest_until_ = INT64_MIN;       // steady time before which nobody looks
  std::uint32_t random_ = 1;
  std::uint32_t taken_ = 0;  // slots in the rows that are in use

  SlotArena* arena_ = nullptr;
  std::uint32_t number_ = 0;
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> work_{0};
};

}  // namespace sluice::store::memory
