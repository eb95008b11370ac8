// Where the slots of all shards lie.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "store/memory/record.h"
#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// The slots of one shard, numbered from 0. A value.
class Slots {
 public:
  /// Slots in a row lie one after the other.
  static constexpr std::uint32_t kRow = 16;
  static constexpr std::size_t kRowBytes = kRow * sizeof(Record);

  Slots() = default;
  Slots(std::byte* first_row, std::uint32_t row_shift) : first_row_(first_row), row_shift_(row_shift) {}

  [[nodiscard]] Record& operator[](std::uint32_t slot) const noexcept {
    const std::size_t row = slot / kRow;
    void* place = first_row_ + (row << row_shift_) + slot % kRow * sizeof(Record);
    return *static_cast<Record*>(place);
  }

 private:
  std::byte* first_row_ = nullptr;
  std::uint32_t row_shift_ = 0;  // log2 of the distance between a shard's rows
};

/// One range of address space for all shards: the first row of each, then the second row of each, and so on. As shards
/// grow alike, what is in use is dense however small each shard is, and so may lie in huge pages: where page walks are
/// slow (in virtual machines), they cost as much as the cache miss itself.
///
/// Memory is taken when touched, and given back by blocks in which no row is in use.
class SlotArena {
 public:
  /// Throws std::bad_alloc when there is no address space for it. `shards`: a power of two.
  SlotArena(std::uint32_t shards, std::uint32_t slots_per_shard);
  ~SlotArena();
  SlotArena(const SlotArena&) = delete;
  SlotArena& operator=(const SlotArena&) = delete;

  [[nodiscard]] Slots slots_of(std::uint32_t shard) const noexcept;

  /// Says that a shard uses rows [from, to) from now on, or no longer. Rows that are given up must hold empty slots;
  /// rows taken do. Thread-safe.
  void take(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept;
  void give_up(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept;

  /// Bytes of the blocks that have rows in use. Thread-safe.
  [[nodiscard]] std::size_t bytes() const noexcept { return blocks_in_use_.load(std::memory_order_relaxed) * block_; }

 private:
  [[nodiscard]] std::size_t block_of(std::uint32_t shard, std::uint32_t row) const noexcept {
    return (std::size_t{row} * shards_ + shard) * Slots::kRowBytes / block_;
  }

  std::uint32_t shards_;
  std::size_t block_;
  std::byte* base_ = nullptr;
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  SpinLock lock_;
  std::unique_ptr<std::uint32_t[]> rows_in_use_;  // by block
  std::atomic<std::size_t> blocks_in_use_{0};
};

}  // namespace sluice::store::memory
