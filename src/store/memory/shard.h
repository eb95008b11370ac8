// One shard of a table in memory: a small hash table of keys with their states.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "algorithm/ticks.h"
#include "sluice/clock.h"
#include "store/memory/keyed_record.h"
#include "store/memory/policy_record.h"
#include "store/memory/select.h"
#include "store/memory/slot_arena.h"
#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// Open addressing in order of hash: the records lie in ascending order of their hashes, each at its home slot (its
/// hash as a fraction of the slots) or in an unbroken run after it. So a key is at a place known before the lock is
/// taken, one cache line, or close behind; a key that is not there is missed as early as one that is; and the table can
/// be stretched or shrunk to any number of slots in place, by two passes over memory: it is never copied elsewhere.
/// The slots lie in a SlotArena, which has memory for them when they are first touched.
///
/// A Record has a cell (the state), a hash, a key, and the numbers that made the cell; PolicyRecord and KeyedRecord are
/// those that there are. Homes are at multiples of Record::kGroup, so that as many records lie in one cache line. A
/// hundred records are laid out over Record::kSlotsForHundred slots, and again when Record::kMostFull of a hundred
/// slots are full.
///
/// All functions but those that say otherwise need lock() held.
template <typename Record>
class alignas(64) Shard {
 public:
  using Numbers = typename Record::Numbers;
  using Key = typename Record::Key;
  using Book = typename Record::Book;

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
  static constexpr std::int64_t kRest = 3 * kSoon;

  Shard() = default;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();

  /// Once, before all else. `arena` and `book`, kept by the caller, have most_slots(capacity) for each shard, and what
  /// records refer to; this is shard `number`.
  void init(SlotArena& arena, const Book& book, std::uint32_t number, std::uint32_t capacity,
            std::uint32_t seed) noexcept;

  void lock() { lock_.lock(); }
  [[nodiscard]] bool try_lock() { return lock_.try_lock(); }
  void unlock() { lock_.unlock(); }
  /// Brings near what lock() changes. Pays when that is some calls ahead.
  void prefetch_lock() const noexcept { __builtin_prefetch(&lock_, 1); }

  /// Brings near where a hash would be. Needs no lock: it is a hint.
  void prefetch(std::uint32_t hash) const noexcept {
    constexpr std::uint32_t a_line = (64 + sizeof(Record) - 1) / sizeof(Record);
    const std::uint32_t home = home_of(hash, slots());
    __builtin_prefetch(&slots_[home], 1);
    __builtin_prefetch(&slots_[home + a_line], 1);
  }

  /// The slot of a key (of the limit that the numbers are of), or kNone. `hash` is that of both.
  template <typename AnyKey>
  [[nodiscard]] std::uint32_t find(std::uint32_t hash, const Numbers& numbers, const AnyKey& key) const noexcept {
    for (std::uint32_t slot = home_of(hash, slots());; ++slot) {
      const Record& record = slots_[slot];
      if (record.is_empty() || record.hash > hash) return kNone;
      if (record.hash == hash && record.is_of(numbers, key)) return slot;
    }
  }
  [[nodiscard]] Record& operator[](std::uint32_t slot) noexcept { return slots_[slot]; }

  /// Where a hash's records begin, for find_quickly(): its home's group, and the one behind that. Needs no lock.
  struct Home {
    Record* first = nullptr;
    Record* second = nullptr;
    std::uint32_t slots = 0;
  };
  [[nodiscard]] Home home(std::uint32_t hash) const noexcept {
    const std::uint32_t all = slots();
    const auto [first, second] = slots_.template groups<Record::kGroup>(home_of(hash, all) / Record::kGroup);
    return {first, second, all};
  }
  /// The record of a head and a tail (see KeyedRecord), or null. Null, too, when `home`, asked for before the lock, no
  /// longer is that of the hash. Unlike find(), it looks at all records of both groups at once: which of them it is
  /// can't be foreseen, and a branch taken wrongly keeps the processor from going ahead while it waits for memory.
  [[nodiscard]] Record* find_quickly(const Home& home, std::uint64_t head, std::uint64_t tail) const noexcept
    requires(Record::kGroup == 2)
  {
    if (slots() != home.slots) [[unlikely]]
      return nullptr;
    Record* found = home.first;
    for (Record* const other : {home.first + 1, home.second, home.second + 1}) {
      // NOLINTNEXTLINE(readability-suspicious-call-argument): `other` where it is equal
      found = where_equal(other->head(), head, other, found);
    }
    if (found->head() == head && found->tail() == tail) [[likely]]
      return found;
    return find_behind(static_cast<std::uint32_t>(head), head, tail);
  }
  /// Turns a record's cell into one of `numbers`, if it was made by others. Throws std::bad_alloc and changes nothing
  /// when there is no memory for it.
  void bring_up_to_date(std::uint32_t slot, const Numbers& numbers, std::int64_t instant) {
    if (!slots_[slot].is_made_by(numbers)) convert(slot, numbers, instant);
  }
  /// What the cell would be then, for its receiver to clear(); the record stays as it is. Throws std::bad_alloc.
  [[nodiscard]] algorithm::Cell copy_up_to_date(std::uint32_t slot, const Numbers& numbers, std::int64_t instant) const;
  /// Calls function(cell) of a record, which may change it, and keeps count of what cells own.
  template <typename Function>
  auto change(std::uint32_t slot, const Numbers& numbers, Function&& function) {
    algorithm::Cell& cell = slots_[slot].cell;
    const algorithm::CompiledLimit& compiled = Record::compiled_of(numbers);
    const std::size_t before = compiled.memory(cell);
    if constexpr (std::is_void_v<decltype(function(cell))>) {
      function(cell);
      account(before, compiled.memory(cell));
    } else {
      auto answer = function(cell);
      account(before, compiled.memory(cell));
      return answer;
    }
  }
  /// After a change other than a charge: the record may go in `life_left`, if nothing else comes.
  void note_life(std::int64_t life_left, Time now) noexcept {
    if (life_left == algorithm::kNever) return;
    soonest_ = life_left > 0 ? std::min(soonest_, now.steady + life_left) : INT64_MIN;
  }

  /// Adds a key that find() does not know and takes over its cell, which has `life_left`: how long until it equals one
  /// never seen; algorithm::kNever: at no time. A full shard drops another key first: one that equals a fresh one, or
  /// else the one nearest to that among some. Other records move.
  void insert(std::uint32_t hash, const Numbers& numbers, const Key& key, const algorithm::Cell& cell,
              std::int64_t life_left, Time now) noexcept;
  /// Forgets a key. Other records move.
  void erase(std::uint32_t slot) noexcept;
  /// Forgets all keys.
  void clear() noexcept;
  /// Calls function(slot) for each record.
  template <typename Function>
  void for_each(Function&& function) {
    for (std::uint32_t slot = 0; slot < used_end(); ++slot) {
      if (!slots_[slot].is_empty()) function(slot);
    }
  }

  /// Looks through the shard, if anything can be expected, drops what equals a fresh key, and gives memory back.
  /// Returns how many slots it looked at.
  std::uint32_t clean(Time now) noexcept;

  // Figures; no lock needed for these.
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t expired() const noexcept { return expired_.load(std::memory_order_relaxed); }
  /// Slots looked at or moved by insert() and clean(), for ever.
  [[nodiscard]] std::uint64_t work() const noexcept { return work_.load(std::memory_order_relaxed); }
  /// Bytes that the cells own besides their slots.
  [[nodiscard]] std::uint64_t owned() const noexcept { return owned_.load(std::memory_order_relaxed); }

 private:
  /// The slots, tail not counted, for a number of records, as the Record says. It shrinks when three fifths as many
  /// would do.
  [[nodiscard]] static constexpr std::uint32_t slots_for(std::uint32_t records) {
    const auto slots = static_cast<std::uint32_t>(std::uint64_t{records} * Record::kSlotsForHundred / 100) + 5;
    return slots / Record::kGroup * Record::kGroup;
  }
  [[nodiscard]] bool is_full_with(std::uint32_t records) const noexcept {
    return std::uint64_t{records} * 100 > std::uint64_t{slots()} * Record::kMostFull;
  }
  [[nodiscard]] bool is_loose() const noexcept {
    return std::uint64_t{size()} * Record::kSlotsForHundred < std::uint64_t{slots()} * 60;
  }
  [[nodiscard]] static std::uint32_t home_of(std::uint32_t hash, std::uint32_t slots) noexcept {
    return static_cast<std::uint32_t>(std::uint64_t{hash} * (slots / Record::kGroup) >> 32U) * Record::kGroup;
  }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slot_count_.load(std::memory_order_relaxed); }
  /// The first slot that is always empty, behind the tail.
  [[nodiscard]] std::uint32_t end() const noexcept { return slots() + kTail - 1; }
  /// All records lie before this one.
  [[nodiscard]] std::uint32_t used_end() const noexcept { return std::min(end(), taken_); }

  [[nodiscard]] std::int64_t life_left(const Record& record, Time now) const noexcept;
  [[nodiscard, gnu::noinline, gnu::cold]] Record* find_behind(std::uint32_t hash, std::uint64_t head,
                                                              std::uint64_t tail) const noexcept
    requires(Record::kGroup == 2);
  void convert(std::uint32_t slot, const Numbers& numbers, std::int64_t instant);
  [[nodiscard]] bool try_insert(const Record& record) noexcept;
  void drop(Record& record) noexcept;
  void evict_one(Time now) noexcept;
  void drop_fresh(Time now) noexcept;
  void spread(std::uint32_t new_slots) noexcept;
  void take(std::uint32_t slots) noexcept;
  void shift_right(std::uint32_t from, std::uint32_t past, std::uint32_t by) noexcept;
  void give_back() noexcept;
  // A rest that ends later than it can is of a clock that went back since.
  [[nodiscard]] bool may_drop(Time now) const noexcept {
    return now.steady >= soonest_ && (now.steady >= rest_until_ || rest_until_ - now.steady > kRest);
  }
  [[nodiscard]] std::uint32_t draw(std::uint32_t below) noexcept;

  template <typename T, typename N>
  static void bump(std::atomic<T>& counter, N n) noexcept {
    counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + static_cast<T>(n)),
                  std::memory_order_relaxed);
  }

  // Both are unsigned, so that a difference may be below 0.
  void account(std::size_t before, std::size_t after) noexcept {
    if (before != after) bump(owned_, std::uint64_t{after} - before);
  }

  // What every call reads lies apart from what the calls of other threads change.
  Slots<Record> slots_;
  std::atomic<std::uint32_t> slot_count_{0};
  std::uint32_t capacity_ = 0;
  SlotArena* arena_ = nullptr;
  const Book* book_ = nullptr;
  std::uint32_t number_ = 0;

  alignas(64) SpinLock lock_;
  std::atomic<std::uint32_t> size_{0};
  std::int64_t soonest_ = algorithm::kNever;  // steady time before which no record may go
  std::int64_t rest_until_ = INT64_MIN;       // steady time before which nobody looks
  std::uint32_t random_ = 1;
  std::uint32_t taken_ = 0;  // slots in the rows that are in use
  std::atomic<std::uint64_t> evicted_{0};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> work_{0};
  std::atomic<std::uint64_t> owned_{0};
};

extern template class Shard<PolicyRecord>;
extern template class Shard<KeyedRecord>;

}  // namespace sluice::store::memory
