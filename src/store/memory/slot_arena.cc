#include "store/memory/slot_arena.h"

#include <sys/mman.h>

#include <memory>
#include <mutex>
#include <new>

namespace sluice::store::memory {
namespace {

constexpr std::size_t kPage = 4'096;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
/// Below this a store is better off with small pages.
constexpr std::size_t kLeastForHugePages = 4 * kHugePage;
/// MADV_COLLAPSE, which older headers don't have.
constexpr int kCollapse = 25;

}  // namespace

SlotArena::SlotArena(std::uint32_t shards, std::uint32_t rows_per_shard, std::size_t row_bytes)
    : shards_(shards), row_bytes_(row_bytes) {
  const std::size_t size = std::size_t{rows_per_shard} * shards * row_bytes;
  const bool huge = size >= kLeastForHugePages;
  block_ = huge ? kHugePage : kPage;
  blocks_ = (size + block_ - 1) / block_;
  rows_in_use_ = std::make_unique<std::uint32_t[]>(blocks_);
  if (huge) pages_ = std::make_unique<Pages[]>(blocks_);
  mapping_size_ = (blocks_ + 1) * block_;
  mapping_ = ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  void* aligned = mapping_;
  std::size_t space = mapping_size_;
  base_ = static_cast<std::byte*>(std::align(block_, blocks_ * block_, aligned, space));
  if (!huge) return;
  // All of what is asked for of pages are wishes: without them it is slower.
  ::madvise(base_, blocks_ * block_, MADV_NOHUGEPAGE);
  joined_at_ = static_cast<std::uint32_t>(block_ / row_bytes_);
}

SlotArena::~SlotArena() { ::munmap(mapping_, mapping_size_); }

void SlotArena::mark(std::size_t block, Pages pages) noexcept {
  const bool was_waiting = pages_[block] == Pages::to_be_joined;
  const bool waits = pages == Pages::to_be_joined;
  pages_[block] = pages;
  if (waits && !was_waiting) to_be_joined_.fetch_add(1, std::memory_order_relaxed);
  if (was_waiting && !waits) to_be_joined_.fetch_sub(1, std::memory_order_relaxed);
}

void SlotArena::want_huge_pages(std::size_t block) noexcept {
  if (pages_[block] != Pages::small) return;
  ::madvise(base_ + block * block_, block_, MADV_HUGEPAGE);
  mark(block, Pages::to_be_joined);
}

void SlotArena::give_back(std::size_t block) noexcept {
  ::madvise(base_ + block * block_, block_, MADV_DONTNEED);
  if (joined_at_ == 0) return;
  ::madvise(base_ + block * block_, block_, MADV_NOHUGEPAGE);
  mark(block, Pages::small);
}

void SlotArena::take(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept {
  const std::scoped_lock lock(lock_);
  for (std::uint32_t row = from_row; row < to_row; ++row) {
    const Blocks blocks = blocks_of(shard, row);
    for (std::size_t block = blocks.first; block <= blocks.last; ++block) {
      if (rows_in_use_[block]++ == 0) blocks_in_use_.fetch_add(1, std::memory_order_relaxed);
      if (rows_in_use_[block] == joined_at_) want_huge_pages(block);
    }
  }
}

void SlotArena::give_up(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept {
  const std::scoped_lock lock(lock_);
  for (std::uint32_t row = from_row; row < to_row; ++row) {
    const Blocks blocks = blocks_of(shard, row);
    for (std::size_t block = blocks.first; block <= blocks.last; ++block) {
      if (--rows_in_use_[block] != 0) continue;
      blocks_in_use_.fetch_sub(1, std::memory_order_relaxed);
      give_back(block);
    }
  }
}

bool SlotArena::join_next() noexcept {
  if (to_be_joined_.load(std::memory_order_relaxed) == 0) return false;
  std::size_t block = 0;
  {
    const std::scoped_lock lock(lock_);
    while (block < blocks_ && pages_[block] != Pages::to_be_joined) ++block;
    if (block == blocks_) return false;
    mark(block, Pages::joined);
  }
  // Without the lock, as it takes long. Older systems don't know it.
  ::madvise(base_ + block * block_, block_, kCollapse);
  const std::scoped_lock lock(lock_);
  if (rows_in_use_[block] == 0) give_back(block);  // given up meanwhile, and brought back by that
  return true;
}

}  // namespace sluice::store::memory
