// What a shard keeps of one key.
#pragma once

#include <cstdint>
#include <type_traits>

#include "algorithm/compiled_limit.h"
#include "store/memory/live_limit.h"
#include "store/memory/slot_key.h"

namespace sluice::store::memory {

/// One cache line: whatever a decision needs of a key is in one place. Bytes of zero are an empty slot.
struct alignas(64) Record {
  algorithm::CompiledLimit::State state;
  const LiveLimit* limit = nullptr;  ///< whose numbers made the state; one share of it. Null: an empty slot
  std::uint32_t hash = 0;
  SlotKey key;

  [[nodiscard]] bool is_empty() const noexcept { return limit == nullptr; }

  /// How long until the state equals one never seen, so that the record may go; 0 or less: it may go now;
  /// algorithm::kNever: at no time.
  [[nodiscard]] std::int64_t life_left(Time now) const noexcept {
    const std::int64_t end = limit->compiled.expires_at(state);
    if (end == algorithm::kNever || end == algorithm::kNeverSeen) return end;
    return end - limit->compiled.instant(now);
  }
};
static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

}  // namespace sluice::store::memory
