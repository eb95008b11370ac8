#include "algorithm/sliding_window.h"

#include <algorithm>

#include "algorithm/int128.h"
#include "sluice/limit.h"

namespace sluice::algorithm {

namespace {

constexpr std::int64_t kFitsInHalf = std::int64_t{1} << 31;

// a·b/c, rounded down, for a, b >= 0 and c > 0. In 64 bits when it can be.
std::int64_t multiply_divide(std::int64_t a, std::int64_t b, std::int64_t c) {
  if (a < kFitsInHalf && b < kFitsInHalf) return a * b / c;
  return static_cast<std::int64_t>(static_cast<Int128>(a) * b / c);
}

}  // namespace

std::size_t SlidingWindow::place_of(std::int64_t slot) const noexcept {
  if (slots_ == 1) return static_cast<std::size_t>(slot & 1);
  const std::int64_t size = std::int64_t{slots_} + 1;
  const std::int64_t place = slot % size;
  return static_cast<std::size_t>(place < 0 ? place + size : place);
}

// The tokens of a slot, 0 for one that the state does not hold.
std::int64_t SlidingWindow::count(const Counts& counts, std::int64_t last_slot, std::int64_t slot) const noexcept {
  if (slot > last_slot || last_slot - slot > slots_) return 0;
  return static_cast<std::int64_t>(counts.ring[place_of(slot)]);
}

SlidingWindow::Now SlidingWindow::look(const Counts& counts, std::int64_t now) const noexcept {
  Now current;
  current.at = std::max(now, counts.last);
  current.slot = slot_of(current.at);
  current.into = current.at - current.slot * width_;
  if (counts.last == kNeverSeen) {
    current.last_slot = current.slot - slots_ - 1;
    return current;
  }
  current.last_slot = counts.last >= current.slot * width_ ? current.slot : slot_of(counts.last);
  if (current.slot - current.last_slot > slots_) return current;
  // All that is held, without the slots that have left since the newest change.
  for (const std::uint64_t taken : counts.ring) current.whole += static_cast<std::int64_t>(taken);
  for (std::int64_t slot = current.last_slot - slots_; slot < current.slot - slots_; ++slot) {
    current.whole -= count(counts, current.last_slot, slot);
  }
  current.old = count(counts, current.last_slot, current.slot - slots_);
  current.whole -= current.old;
  return current;
}

// Whole tokens free, below 0 when more than the rate are taken.
std::int64_t SlidingWindow::free(const Now& current) const noexcept {
  // What is left of the leaving slot, rounded up.
  const std::int64_t old = current.old == 0 ? 0 : current.old - multiply_divide(current.old, current.into, width_);
  return static_cast<std::int64_t>(rate_) - current.whole - old;
}

std::int64_t SlidingWindow::newest_counted(const Now& current, const Counts& counts) const noexcept {
  for (std::int64_t slot = std::min(current.slot, current.last_slot); slot >= current.slot - slots_; --slot) {
    if (count(counts, current.last_slot, slot) != 0) return slot;
  }
  return kNeverSeen;
}

Verdict SlidingWindow::judge_in(Now current, const Counts& counts, std::uint64_t cost) const noexcept {
  if (cost == 0) return {};
  if (cost > rate_) return {.fits = false, .retry_after = kNever};
  // The estimate falls from now on, so the first slot with a moment that fits has the answer. The last such slot is the
  // one in which the window is empty.
  for (std::int64_t slot = current.slot;; ++slot) {
    const std::int64_t spare = static_cast<std::int64_t>(rate_ - cost) - current.whole;
    if (spare >= 0) {
      const std::int64_t begins = slot * width_;
      const std::int64_t enough = current.old <= spare ? 0 : width_ - multiply_divide(spare, width_, current.old);
      const std::int64_t when = std::max(current.at, begins + enough);
      if (when < begins + width_) return {.fits = when == current.at, .retry_after = when - current.at};
    }
    current.old = count(counts, current.last_slot, slot + 1 - slots_);
    current.whole -= current.old;
  }
}

View SlidingWindow::view_in(const Now& current, const Counts& counts) const noexcept {
  const std::int64_t newest = newest_counted(current, counts);
  return {.limit = rate_,
          .remaining = static_cast<std::uint64_t>(std::max<std::int64_t>(0, free(current))),
          .reset_after = newest == kNeverSeen ? 0 : end_of(newest) - current.at};
}

// Empties the places of the slots that began since the newest change.
void SlidingWindow::rotate(const OpenCounts& counts, const Now& current) const noexcept {
  if (current.slot - current.last_slot > slots_) {
    std::ranges::fill(counts.ring, 0);
    return;
  }
  for (std::int64_t slot = current.last_slot + 1; slot <= current.slot; ++slot) counts.ring[place_of(slot)] = 0;
}

void SlidingWindow::put(const OpenCounts& counts, std::int64_t now, std::uint64_t cost) const noexcept {
  const Now current = look({counts.ring, counts.last}, now);
  rotate(counts, current);
  counts.ring[place_of(current.slot)] += cost;
  counts.last = current.at;
}

void SlidingWindow::give(const OpenCounts& counts, std::int64_t now, std::uint64_t cost,
                         std::optional<std::int64_t> at) const noexcept {
  const Now current = look({counts.ring, counts.last}, now);
  if (current.whole + current.old == 0) return;
  if (at.has_value() && current.slot - slot_of(*at) > slots_) return;
  rotate(counts, current);
  for (std::int64_t slot = current.slot; slot >= current.slot - slots_ && cost > 0; --slot) {
    std::uint64_t& taken = counts.ring[place_of(slot)];
    const std::uint64_t back = std::min(cost, taken);
    taken -= back;
    cost -= back;
  }
  counts.last = current.at;
}

// Takes as much of `cost` as leaves at most `room` tokens above the rate.
void SlidingWindow::force(const OpenCounts& counts, std::int64_t now, std::uint64_t cost,
                          std::uint64_t room) const noexcept {
  const std::int64_t most = free(look({counts.ring, counts.last}, now)) + static_cast<std::int64_t>(room);
  if (most <= 0 || cost == 0) return;
  put(counts, now, std::min(cost, static_cast<std::uint64_t>(most)));
}

}  // namespace sluice::algorithm
