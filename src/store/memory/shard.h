// One shard of the memory store: a small hash table of keys with their states.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "algorithm/ticks.h"
#include "sluice/clock.h"
#include "store/memory/live_limit.h"
#include "store/memory/record.h"
#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// Records lie densely, in order of arrival, in room for the most there may be: a range of address space whose pages
/// are taken when first touched, so growing moves no record. An index of 4 bytes a slot, at most three quarters full,
/// finds them: 19 bits of hash beside the record's number, open addressing. Doubling it reads the index alone (at most
/// 8 192 slots).
///
/// All functions but those that say otherwise need lock() held.
class alignas(128) Shard {
 public:
  static constexpr std::uint32_t kMaxRecords = 8'190;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Each shard is looked through for what may go about this often, if there are calls and anything may go.
  static constexpr std::int64_t kPass = 500'000'000;
  /// A pass that finds less than a sixteenth to drop, now or before the next pass, is followed by a rest.
  static constexpr std::int64_t kRest = 4 * kPass;

  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  /// Once, before all else. `records`: zeroed pages, room for `capacity` (1 … kMaxRecords), kept by the caller.
  void init(Record* records, std::uint32_t capacity, std::uint32_t seed) noexcept;

  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

  /// The record of (limit's id, key), or kNone. `hash` is that of both.
  [[nodiscard]] std::uint32_t find(std::uint32_t hash, const LiveLimit& limit, std::string_view key) const noexcept {
    if (size() == 0) return kNone;
    for (std::uint32_t slot = hash >> shift_;; slot = (slot + 1) & mask()) {
      const std::uint32_t entry = index_[slot];
      if (entry == 0) return kNone;
      if (((entry ^ hash) & kTag) != 0) continue;
      const Record& found = records_[(entry & kNumber) - 1];
      if (found.hash == hash && found.key.view() == key && (found.limit == &limit || found.limit->id == limit.id)) {
        return (entry & kNumber) - 1;
      }
    }
  }
  [[nodiscard]] Record& operator[](std::uint32_t record) noexcept { return records_[record]; }
  /// Turns the record's state into one of `limit`, if it was made by other numbers.
  void bring_up_to_date(std::uint32_t record, const LiveLimit& limit, std::int64_t instant) noexcept {
    if (records_[record].limit != &limit) convert(record, limit, instant);
  }

  /// Adds a key that find() does not know, whose state has `life_left` (see Record). A full shard drops another first:
  /// one that equals a fresh one, or else the one nearest to that among kSample drawn at random (among all, up to
  /// kExact). Without memory nothing is added. Numbers of other records don't stay.
  void insert(std::uint32_t hash, const LiveLimit& limit, std::string_view key,
              const algorithm::CompiledLimit::State& state, std::int64_t life_left, Time now) noexcept;
  static constexpr std::uint32_t kSample = 8;
  static constexpr std::uint32_t kExact = 16;

  /// Goes on looking for records that equal fresh ones and drops them, at most `budget` steps (a record looked at: 1; a
  /// record dropped: 4 more); at the end of a pass gives memory back. Returns the steps taken; `done` when the pass is
  /// over or none is due.
  struct Swept {
    std::uint32_t steps = 0;
    bool done = true;
  };
  Swept sweep(Time now, std::uint32_t budget) noexcept;

  /// Brings the shard near; needs no lock.
  void prefetch() const noexcept { __builtin_prefetch(this); }
  /// Brings the index entry of a hash near.
  void prefetch_index(std::uint32_t hash) const noexcept {
    if (size() != 0) __builtin_prefetch(&index_[hash >> shift_]);
  }

  // Figures; no lock needed for these.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t expired() const noexcept { return expired_.load(std::memory_order_relaxed); }
  /// Records looked at, dropped or moved and index slots moved by insert() and sweep(), for ever.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_.load(std::memory_order_relaxed); }
  /// Pages of records that were touched, the index, and long keys; without the shard itself.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  // An index entry: the upper 19 bits of the hash, and 1 + the record's number. 0: an empty slot. As the place of an
  // entry follows from those bits, the index can be rebuilt without looking at records.
  static constexpr std::uint32_t kNumberBits = 13;
  static constexpr std::uint32_t kNumber = (1U << kNumberBits) - 1;
  static constexpr std::uint32_t kTag = ~kNumber;
  static constexpr std::uint32_t kSmallestIndex = 8;
  static_assert(kMaxRecords < kNumber);

  [[nodiscard]] std::uint32_t mask() const noexcept { return UINT32_MAX >> shift_; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return index_ == nullptr ? 0 : mask() + 1; }
  [[nodiscard]] std::uint32_t slot_of(std::uint32_t record) const noexcept;
  [[nodiscard]] bool resize_index(std::uint32_t new_slots) noexcept;
  void place(std::uint32_t entry) noexcept;
  void convert(std::uint32_t record, const LiveLimit& limit, std::int64_t instant) noexcept;
  void erase(std::uint32_t record) noexcept;
  void evict_one(Time now) noexcept;
  void touch(std::uint32_t records) noexcept;
  void give_back() noexcept;
  [[nodiscard]] std::uint32_t draw() noexcept;

  template <typename T, typename N>
  static void bump(std::atomic<T>& counter, N n) noexcept {
    counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + static_cast<T>(n)),
                  std::memory_order_relaxed);
  }

  SpinLock lock_;
  std::atomic<std::uint32_t> size_{0};
  std::uint32_t* index_ = nullptr;
  Record* records_ = nullptr;
  std::uint32_t shift_ = 0;  // 32 − log2 of the index' slots
  std::uint32_t capacity_ = 0;
  std::int64_t soonest_ = algorithm::kNever;  // steady time before which no record may go
  std::int64_t rest_until_ = INT64_MIN;       // steady time before which no pass begins
  std::uint32_t hand_ = 0;                    // records below it are still to be looked at in this pass
  std::uint32_t touched_ = 0;                 // records whose pages have been touched

  std::uint32_t pass_seen_ = 0;
  std::uint32_t pass_due_ = 0;
  std::uint32_t random_ = 1;
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> work_{0};
  std::atomic<std::size_t> bytes_{0};
};
static_assert(sizeof(Shard) == 128);

}  // namespace sluice::store::memory
