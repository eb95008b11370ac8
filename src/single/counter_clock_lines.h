// CounterClock's rare part: comparing the counter with the steady clock, and the line that follows from it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "algorithm/int128.h"
#include "sluice/internal/counter_clock.h"

namespace sluice::internal {

// The counter and the time at one moment, as near together as can be had: a thread may be put to sleep in between. The
// counter is read first, so that time by it is never behind times that were told by the steady clock before.
template <typename Source>
typename CounterClock<Source>::Pair CounterClock<Source>::pair() noexcept {
  constexpr int kTries = 4;
  Pair best;
  std::uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = Source::ticks();
    const std::int64_t ns = Source::steady();
    const std::uint64_t took = Source::ticks() - before;
    if (took < narrowest) {
      narrowest = took;
      best = {before, ns};
    }
  }
  return best;
}

template <typename Source>
void CounterClock<Source>::publish(const Pair& begin, std::uint64_t rate, std::uint64_t length) noexcept {
  const std::uint64_t generation = generation_.load(std::memory_order_relaxed) + 1;
  Line& line = lines_[generation % 2];
  line.begin.store(begin.ticks, std::memory_order_release);
  line.length.store(length, std::memory_order_release);
  line.rate.store(rate, std::memory_order_release);
  line.ns.store(begin.ns, std::memory_order_release);
  generation_.store(generation, std::memory_order_release);
}

// The line has ended, or there is none.
template <typename Source>
std::int64_t CounterClock<Source>::slow_now() noexcept {
  if (off_.load(std::memory_order_acquire)) return std::max(Source::steady(), floor_);
  if (!comparing_.exchange(true, std::memory_order_acquire)) {
    const std::int64_t ns = compare();
    comparing_.store(false, std::memory_order_release);
    return ns;
  }
  // Another thread is at it: meanwhile the line goes on a little.
  for (;;) {
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    const Line& line = lines_[generation % 2];
    const std::uint64_t begin = line.begin.load(std::memory_order_acquire);
    const std::uint64_t length = line.length.load(std::memory_order_acquire);
    const std::uint64_t rate = line.rate.load(std::memory_order_acquire);
    const std::int64_t ns = line.ns.load(std::memory_order_acquire);
    if (generation_.load(std::memory_order_relaxed) != generation) continue;
    const std::uint64_t ticks = Source::ticks();
    if (begin - ticks < length) return ns;  // the line was drawn after the counter was read
    if (ticks - begin >= length * kStretch) return Source::steady();
    return ns + along(rate, ticks - begin);
  }
}

template <typename Source>
std::int64_t CounterClock<Source>::compare() noexcept {
  if (!asked_) {
    asked_ = true;
    if (!Source::trusted()) off_.store(true, std::memory_order_release);
    last_ = pair();
  }
  if (off_.load(std::memory_order_relaxed)) return std::max(Source::steady(), floor_);

  const Line& line = lines_[generation_.load(std::memory_order_relaxed) % 2];
  const std::uint64_t begin = line.begin.load(std::memory_order_relaxed);
  const std::uint64_t length = line.length.load(std::memory_order_relaxed);
  const std::uint64_t rate = line.rate.load(std::memory_order_relaxed);
  const std::int64_t ns = line.ns.load(std::memory_order_relaxed);
  Pair now = pair();
  const std::uint64_t age = now.ticks - begin;
  if (age < length) return ns + along(rate, age);  // another thread compared meanwhile

  const std::int64_t elapsed = now.ns - last_.ns;
  if (rate_ == 0 && elapsed < kFirst) return now.ns;
  std::uint64_t measured = 0;
  if (now.ticks > last_.ticks && elapsed > 0) {
    const algorithm::Uint128 scaled = algorithm::Uint128{static_cast<std::uint64_t>(elapsed)} << 32U;
    measured = static_cast<std::uint64_t>(
        std::min<algorithm::Uint128>(scaled / (now.ticks - last_.ticks), std::uint64_t{1} << 40U));
  }
  last_ = now;
  // No earlier than the line that ends here has got to.
  if (age < length * kStretch) now.ns = std::max(now.ns, ns + along(rate, age));
  const std::uint64_t apart = measured < rate_ ? rate_ - measured : measured - rate_;
  if (measured != 0 && (rate_ == 0 || apart <= rate_ / kOdd)) {
    rate_ = measured;
    odd_ = 0;
  } else if (++odd_ == kMostOdd) {
    floor_ = now.ns;
    off_.store(true, std::memory_order_release);
    publish({}, 0, 0);
    return now.ns;
  }
  if (rate_ == 0) return now.ns;
  // So much slower that both clocks meet at the end of the line.
  const auto ahead = static_cast<std::uint64_t>(std::min(now.ns - last_.ns, kLine / 2));
  publish(now, rate_ - rate_ * ahead / kLine, (std::uint64_t{kLine} << 32U) / rate_);
  return now.ns;
}

}  // namespace sluice::internal
