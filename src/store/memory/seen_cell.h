// What a call that changes nothing sees of a record.
#pragma once

#include <cstdint>
#include <utility>

#include "algorithm/cell.h"
#include "algorithm/compiled_limit.h"
#include "store/memory/shard.h"

namespace sluice::store::memory {

/// A record's cell as it is; where other numbers made that, a copy that has been brought up to date, as the record
/// stays what it was. By default a key never seen. Good as long as the shard's lock is held.
class SeenCell {
 public:
  SeenCell() = default;
  /// Throws std::bad_alloc when a copy needs memory.
  template <typename Record>
  SeenCell(Shard<Record>& shard, std::uint32_t slot, const typename Record::Numbers& numbers, std::int64_t instant) {
    if (slot == Shard<Record>::kNone) return;
    cell_ = shard[slot].cell;
    if (shard[slot].is_made_by(numbers)) return;
    cell_ = shard.copy_up_to_date(slot, numbers, instant);
    owner_ = &Record::compiled_of(numbers);
  }
  SeenCell(const SeenCell&) = delete;
  SeenCell& operator=(const SeenCell&) = delete;
  SeenCell(SeenCell&& other) noexcept : cell_(other.cell_), owner_(std::exchange(other.owner_, nullptr)) {}
  SeenCell& operator=(SeenCell&& other) noexcept {
    std::swap(cell_, other.cell_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~SeenCell() {
    if (owner_ != nullptr) owner_->clear(cell_);
  }

  [[nodiscard]] const algorithm::Cell& operator*() const noexcept { return cell_; }

 private:
  algorithm::Cell cell_;
  const algorithm::CompiledLimit* owner_ = nullptr;  // of a copy
};

}  // namespace sluice::store::memory
