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

}  // namespace

SlotArena::SlotArena(std::uint32_t shards, std::uint32_t rows_per_shard, std::size_t row_bytes, HugePages huge_pages)
    : shards_(shards), row_bytes_(row_bytes) {
  const std::size_t size = std::size_t{rows_per_shard} * shards * row_bytes;
  const bool huge = size >= kLeastForHugePages;
  block_ = huge ? kHugePage : kPage;
  const std::size_t blocks = (size + block_ - 1) / block_;
  rows_in_use_ = std::make_unique<std::uint32_t[]>(blocks);
  mapping_size_ = (blocks + 1) * block_;
  mapping_ = ::mmap(nullptr, mapping_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  void* aligned = mapping_;
  std::size_t space = mapping_size_;
  base_ = static_cast<std::byte*>(std::align(block_, blocks * block_, aligned, space));
  if (!huge) return;
  // All of these are wishes: without them it is slower.
  const bool at_once = huge_pages == HugePages::at_once;
  ::madvise(base_, blocks * block_, at_once ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (!at_once) joined_at_ = static_cast<std::uint32_t>(block_ / row_bytes_);
}

SlotArena::~SlotArena() { ::munmap(mapping_, mapping_size_); }

void SlotArena::ask_for_huge_pages(std::size_t block, bool wanted) const noexcept {
  ::madvise(base_ + block * block_, block_, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

void SlotArena::take(std::uint32_t shard, std::uint32_t from_row, std::uint32_t to_row) noexcept {
  const std::scoped_lock lock(lock_);
  for (std::uint32_t row = from_row; row < to_row; ++row) {
    const Blocks blocks = blocks_of(shard, row);
    for (std::size_t block = blocks.first; block <= blocks.last; ++block) {
      if (rows_in_use_[block]++ == 0) blocks_in_use_.fetch_add(1, std::memory_order_relaxed);
      if (rows_in_use_[block] == joined_at_) ask_for_huge_pages(block, true);
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
      ::madvise(base_ + block * block_, block_, MADV_DONTNEED);
      if (joined_at_ != 0) ask_for_huge_pages(block, false);
    }
  }
}

}  // namespace sluice::store::memory
