// A token or leaky bucket decided where it lies.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "algorithm/cell.h"
#include "algorithm/int128.h"
#include "algorithm/leaky_bucket.h"
#include "algorithm/ticks.h"
#include "algorithm/token_bucket.h"
#include "sluice/decision.h"

namespace sluice::algorithm {

/// What CompiledLimit::decide() answers for buckets, for the common case only: numbers and a state that fit 64 bits,
/// and ticks of 1 ns. There it takes a third of the instructions, as nothing is unpacked, written back, or copied.
/// Immutable.
class NarrowBucket {
 public:
  /// Decides nothing.
  NarrowBucket() = default;
  explicit NarrowBucket(const TokenBucket& numbers) noexcept : NarrowBucket(numbers, false) {}
  explicit NarrowBucket(const LeakyBucket& numbers) noexcept : NarrowBucket(numbers.slots(), true) {}

  /// May decide() be asked about this cell?
  [[nodiscard]] bool decides(const Cell& cell) const noexcept {
    return is_narrow_ && ((cell.first_ >> 63U) | (cell.second_ & 1U)) == 0;
  }

  /// Precondition: decides(cell); and `now` within 146 years of 0.
  [[gnu::always_inline]] Decision decide(Cell& cell, std::int64_t now, std::uint64_t cost) const noexcept {
    // Times as the cell has them, as what has passed since it began to have any; of a cell never seen that is 0.
    const std::uint64_t last = cell.second_ >> 1U;
    const std::uint64_t at = std::max(last, ticks_between(Cell::kBeforeAll, now));
    const std::uint64_t before = cell.first_;
    std::uint64_t refilled = 0;
    if (__builtin_mul_overflow(at - last, c_, &refilled)) [[unlikely]]
      refilled = before;  // more than that
    const std::uint64_t missing = before > refilled ? before - refilled : 0;
    const std::uint64_t after = missing + cost * p_;  // at most 2^63 + 2^62, where it matters
    const bool fits = cost == 0 || (cost <= burst_ && after <= capacity_);
    if (fits && cost != 0) {
      cell.first_ = after;
      cell.second_ = at << 1U;
    }
    const std::uint64_t left = fits ? after : missing;
    return {.allowed = fits,
            .limit = burst_,
            .remaining = left < capacity_ ? (capacity_ - left) / p_ : 0,
            .retry_after = fits ? Wait() : retry_after(after, cost),
            .reset_after = refill(left),
            .delay = fits && is_queue_ ? refill(missing) : Wait()};
  }

 private:
  NarrowBucket(const TokenBucket& numbers, bool is_queue) noexcept;

  [[nodiscard]] Wait retry_after(std::uint64_t after, std::uint64_t cost) const noexcept {
    return cost > burst_ ? Wait::never() : refill(after - capacity_);
  }
  [[nodiscard]] Wait refill(std::uint64_t parts) const noexcept {
    std::uint64_t ticks = parts;
    if (c_ != 1) {
      if (parts == 0) return {};
      if (c_ == 0) return Wait::never();
      ticks = (parts - 1) / c_ + 1;
    }
    return Wait(std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(ticks, longest_))));
  }

  std::uint64_t c_ = 0;  // as TokenBucket's
  std::uint64_t p_ = 1;
  std::uint64_t burst_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t longest_ = 0;
  bool is_narrow_ = false;
  bool is_queue_ = false;
};

inline NarrowBucket::NarrowBucket(const TokenBucket& numbers, bool is_queue) noexcept
    : c_(numbers.parts_per_tick()),
      p_(numbers.parts_per_token()),
      burst_(numbers.limit()),
      capacity_(static_cast<std::uint64_t>(numbers.parts_when_full())),
      longest_(static_cast<std::uint64_t>(longest_wait(Tick::nanosecond))),
      is_narrow_(numbers.parts_when_full() < Uint128{1} << 62U),
      is_queue_(is_queue) {}

}  // namespace sluice::algorithm
