// What a shard of the memory store keeps of one key of one of many limits.
#pragma once

#include <cstdint>
#include <type_traits>

#include "algorithm/cell.h"
#include "algorithm/compiled_limit.h"
#include "store/memory/live_limit.h"
#include "store/memory/slot_key.h"

namespace sluice::store::memory {

/// 48 bytes; bytes of zero are an empty slot. See Shard for what it must be able to do.
struct PolicyRecord {
  using Numbers = LiveLimit;
  using Key = SlotKey;
  /// What all records of a table need to know; nothing here.
  struct Book {};
  static constexpr std::uint32_t kGroup = 1;
  static constexpr std::uint32_t kSlotsForHundred = 150;
  static constexpr std::uint32_t kMostFull = 80;

  algorithm::Cell cell;
  const LiveLimit* limit = nullptr;  ///< whose numbers made the cell; one share of it. Null: an empty slot
  std::uint32_t hash = 0;
  SlotKey key;

  PolicyRecord() = default;
  /// Shares `numbers`, takes over the cell.
  PolicyRecord(std::uint32_t hash_of_key, const LiveLimit& numbers, const SlotKey& of,
               const algorithm::Cell& state) noexcept
      : cell(state), limit(&numbers), hash(hash_of_key), key(of) {
    numbers.share();
  }

  [[nodiscard]] bool is_empty() const noexcept { return limit == nullptr; }
  /// Makes the slot empty, without giving up what it holds.
  void make_empty() noexcept { limit = nullptr; }
  /// Is it that limit's, whatever its numbers, and that key's?
  [[nodiscard]] bool is_of(const LiveLimit& numbers, const SlotKey& other) const noexcept {
    return key == other && (limit == &numbers || limit->id == numbers.id);
  }
  [[nodiscard]] bool is_made_by(const LiveLimit& numbers) const noexcept { return limit == &numbers; }
  [[nodiscard]] const algorithm::CompiledLimit& compiled(const Book& /*book*/) const noexcept {
    return limit->compiled;
  }
  void now_made_by(const LiveLimit& numbers) noexcept {
    numbers.share();
    limit->release();
    limit = &numbers;
  }
  [[nodiscard]] static const algorithm::CompiledLimit& compiled_of(const LiveLimit& numbers) noexcept {
    return numbers.compiled;
  }
  /// Gives up what it holds.
  void forget(const Book& /*book*/) const noexcept {
    algorithm::Cell last = cell;
    limit->compiled.clear(last);
    limit->release();
  }
};
static_assert(sizeof(PolicyRecord) == 48 && std::is_trivially_copyable_v<PolicyRecord>);

}  // namespace sluice::store::memory
