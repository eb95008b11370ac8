// Where the slots of all shards lie.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "store/memory/spin_lock.h"

namespace sluice::store::memory {

/// The slots of one shard, numbered from 0, each with a Record. A value.
template <typename Record>
class Slots {
 public:
  /// Slots in a row lie one after the other.
  static constexpr std::uint32_t kRow = 16;
  static constexpr std::size_t kRowBytes = kRow * sizeof(Record);

  Slots() = default;
  Slots(std::byte* first_row, std::size_t row_distance) : first_row_(first_row), row_distance_(row_distance) {}

  [[nodiscard]] Record& operator[](std::uint32_t slot) const noexcept {
    return at(slot / kRow * row_distance_ + slot % kRow * sizeof(Record));
  }
  /// The first slots of the group of that number, of kGroup slots each, and of the next.
  struct Groups {
    Record* first;
    Record* second;
  };
  template <std::uint32_t kGroup>
  [[nodiscard]] Groups groups(std::uint32_t number) const noexcept {
    static_assert(kRow % kGroup == 0);
    constexpr std::uint32_t a_row = kRow / kGroup;
    const std::size_t begin = number / a_row * row_distance_ + number % a_row * (kGroup * sizeof(Record));
    const bool is_last = number % a_row == a_row - 1;
    const std::size_t step = is_last ? row_distance_ - (kRow - kGroup) * sizeof(Record) : kGroup * sizeof(Record);
    return {&at(begin), &at(begin + step)};
  }

 private:
  [[nodiscard]] Record& at(std::size_t offset) const noexcept {
    void* place = first_row_ + offset;
    return *static_cast<Record*>(place);
  }

  std::byte* first_row_ = nullptr;
  std::size_t row_distance_ = 0;  // between a shard's rows
};

/// One range of address space for all shards: the first row of each, then the second row of each, and so on. As shards
/// grow alike, what is in use is dense however small each shard is, and so may lie in huge pages: where page walks are
/// slow (in virtual machines), they cost as much as the cache miss itself.
///
/// Memory is taken when touched, and given back by blocks in which no row is in use. It comes in small pages: making a
/// huge one takes some ms where a host has to find it first, and a call that grows a shard may touch many. An arena of
/// some MB asks for huge pages when all of a block is in use; the system joins the small ones later on by itself, or
/// join_next() does at once.
class SlotArena {
 public:
  /// `rows_per_shard` rows of `row_bytes`. Throws std::bad_alloc when there is no address space for it.
  SlotArena(std::uint32_t shards, std::uint32_t rows_per_shard, std::size_t row_bytes);
  ~SlotArena();
  SlotArena(const SlotArena&) = delete;
  SlotArena& operator=(const SlotArena&) = delete;

  template <typename Record>
  [[nodiscard]] Slots<Record> slots_of(std::uint32_t shard) const noexcept {
    assert(row_bytes_ == Slots<Record>::kRowBytes);
    return {base_ + shard * row_bytes_, shards_ * row_bytes_};
  }

  /// Rows that hold so many slots of a Record.
  template <typename Record>
  [[nodiscard]] static constexpr std::uint32_t rows_for(std::uint32_t slots) noexcept {
    return (slots + Slots<Record>::kRow - 1) / Slots<Record>::kRow;
  }

  /// Says that a shard uses rows [from, to) from now on, or no longer. Rows that are given up must hold empty slots
  /// (bytes of zero, or what the shard takes for such); rows taken do. Thread-safe.
  void take(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept;
  void give_up(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept;

  /// Joins the pages of one block that is all in use, if there is one whose pages have not been joined. Some ms at
  /// worst, for which others may wait in part: for a thread that decides nothing. False: there was none. Thread-safe.
  bool join_next() noexcept;

  /// Bytes of the blocks that have rows in use. Thread-safe.
  [[nodiscard]] std::size_t bytes() const noexcept { return blocks_in_use_.load(std::memory_order_relaxed) * block_; }

 private:
  // A row of which block reaches into? Rows may lie across two, when their size is no power of two.
  struct Blocks {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  [[nodiscard]] Blocks blocks_of(std::uint32_t shard, std::uint32_t row) const noexcept {
    const std::size_t begin = (std::size_t{row} * shards_ + shard) * row_bytes_;
    return {begin / block_, (begin + row_bytes_ - 1) / block_};
  }

  enum class Pages : std::uint8_t { small, to_be_joined, joined };

  void want_huge_pages(std::size_t block) noexcept;
  void give_back(std::size_t block) noexcept;
  void mark(std::size_t block, Pages pages) noexcept;

  std::uint32_t shards_;
  std::size_t row_bytes_;
  std::uint32_t joined_at_ = 0;  // rows in use in a block at which huge pages are asked for; 0: never
  std::size_t block_;
  std::size_t blocks_;
  std::byte* base_ = nullptr;
  void* mapping_ = nullptr;
  std::size_t mapping_size_ = 0;
  SpinLock lock_;
  std::unique_ptr<std::uint32_t[]> rows_in_use_;  // by block
  std::unique_ptr<Pages[]> pages_;                // by block
  std::atomic<std::size_t> to_be_joined_{0};      // blocks
  std::atomic<std::size_t> blocks_in_use_{0};
};

}  // namespace sluice::store::memory
