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
    return is_narrow_ && cell.first_ < kMostMissing && !cell.is_elsewhere();
  }

  /// Precondition: decides(cell); and `now` within 146 years of 0.
  [[gnu::always_inline]] Decision decide(Cell& cell, std::int64_t now, std::uint64_t cost) const noexcept {
    // Times as the cell has them, as what has passed since it began to have any; of a cell never seen that is 0.
    const std::uint64_t last = cell.second_ >> 1U;
    const std::uint64_t at = std::max(last, ticks_between(Cell::kBeforeAll, now));
    const std::uint64_t missing = missing_after(cell.first_, at - last);
    const std::uint64_t price = cost * p_;
    if (cost - 1 < burst_ && missing <= capacity_ - price) [[likely]] {
      const std::uint64_t after = missing + price;
      cell.first_ = after;
      cell.second_ = at << 1U;
      const std::uint64_t remaining = (capacity_ - after) / p_;
      const Wait reset_after = refill(after);
      if (is_queue_) [[unlikely]]
        return {.limit = burst_, .remaining = remaining, .reset_after = reset_after, .delay = refill(missing)};
      return {.limit = burst_, .remaining = remaining, .reset_after = reset_after};
    }
    return take_nothing(missing, cost);
  }

 private:
  NarrowBucket(const TokenBucket& numbers, bool is_queue) noexcept;

  [[nodiscard]] std::uint64_t missing_after(std::uint64_t before, std::uint64_t ticks) const noexcept {
    if (ticks > refills_all_) [[unlikely]]
      return 0;
    // Both are below 2^63. Which is larger can't be foreseen; this is no branch.
    return static_cast<std::uint64_t>(std::max<std::int64_t>(static_cast<std::int64_t>(before - ticks * c_), 0));
  }
  // Denied, or of cost 0.
  [[nodiscard]] Decision take_nothing(std::uint64_t missing, std::uint64_t cost) const noexcept {
    Decision decision{.allowed = cost == 0,
                      .limit = burst_,
                      .remaining = missing < capacity_ ? (capacity_ - missing) / p_ : 0,
                      .reset_after = refill(missing)};
    if (cost == 0) {
      if (is_queue_) decision.delay = decision.reset_after;
    } else {
      decision.retry_after = cost > burst_ ? Wait::never() : refill(missing - (capacity_ - cost * p_));
    }
    return decision;
  }
  [[nodiscard]] Wait refill(std::uint64_t parts) const noexcept {
    std::uint64_t ticks = parts;
    if (c_ != 1) [[unlikely]] {
      if (parts == 0) return {};
      if (c_ == 0) return Wait::never();
      ticks = (parts - 1) / c_ + 1;
    }
    return Wait(std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(ticks, longest_))));
  }

  static constexpr std::uint64_t kMostMissing = std::uint64_t{1} << 63U;  // decides() knows that there is less
  std::uint64_t c_ = 0;                                                   // as TokenBucket's
  std::uint64_t p_ = 1;
  std::uint64_t burst_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t longest_ = 0;
  std::uint64_t refills_all_ = 0;  // so many ticks do, and more, whatever is missing
  bool is_narrow_ = false;
  bool is_queue_ = false;
};

inline NarrowBucket::NarrowBucket(const TokenBucket& numbers, bool is_queue) noexcept
    : c_(numbers.parts_per_tick()),
      p_(numbers.parts_per_token()),
      burst_(numbers.limit()),
      capacity_(static_cast<std::uint64_t>(numbers.parts_when_full())),
      longest_(static_cast<std::uint64_t>(longest_wait(Tick::nanosecond))),
      refills_all_(c_ == 0 ? UINT64_MAX : (kMostMissing - 1) / c_),
      is_narrow_(numbers.parts_when_full() < Uint128{1} << 62U),
      is_queue_(is_queue) {}

}  // namespace sluice::algorithm
