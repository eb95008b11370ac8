// The time of the machine's steady clock, worked out from the processor's cycle counter. Not for use outside of this
// library.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "sluice/internal/export.h"

namespace sluice::internal {

// Tells the time of Source::steady() in ns by Source::ticks(), which is read in 10 ns where the steady clock takes 24.
// The two are compared every 10 ms, by whichever call comes then: no thread, and no call waits for another's.
//
// Between two comparisons time goes along a straight line, so an instant is off by the error of the line: under 0.1 µs
// ahead or behind as a rule; at most 5 µs (500 ppm of 10 ms) while the system's clock is slewed. In one thread time
// never goes back. Between threads it may seem to, by some ns (the counter is read without a fence) and, if the thread
// that compares is held up in the middle of it, by the error of the line.
//
// Where the counter isn't to be trusted (not `invariant`, slow to read, or found to change its rate), every call reads
// the steady clock, as do the first calls, until the counter's rate is known (1 ms).
template <typename Source>
class SLUICE_API CounterClock {
 public:
  constexpr CounterClock() = default;

  [[nodiscard]] std::int64_t now() noexcept {
    const std::uint64_t generation = generation_.load(std::memory_order_acquire);
    const Line& line = lines_[generation % 2];
    const std::uint64_t begin = line.begin.load(std::memory_order_acquire);
    const std::uint64_t length = line.length.load(std::memory_order_acquire);
    const std::uint64_t rate = line.rate.load(std::memory_order_acquire);
    const std::int64_t ns = line.ns.load(std::memory_order_acquire);
    const std::uint64_t age = Source::ticks() - begin;
    // A line is written only after another was published; so when this one still is, it was read whole.
    if (age >= length || generation_.load(std::memory_order_relaxed) != generation) [[unlikely]]
      return slow_now();
    return ns + along(rate, age);
  }

 private:
  struct alignas(64) Line {
    std::atomic<std::uint64_t> begin{0};   // in ticks
    std::atomic<std::uint64_t> length{0};  // in ticks; 0: no line
    std::atomic<std::uint64_t> rate{0};    // ns a tick · 2^32
    std::atomic<std::int64_t> ns{0};       // the time at `begin`
  };
  struct Pair {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
  };

  static constexpr std::int64_t kLine = 10'000'000;  // ns between two comparisons
  static constexpr std::int64_t kFirst = 1'000'000;  // ns over which the first rate is measured
  static constexpr std::uint64_t kStretch = 16;      // lines are followed for as many lengths when it must be
  // A rate that differs from the one before by more than one in kOdd is not believed: the machine slept, or moved. The
  // counter isn't trusted any more after kMostOdd of them in a row.
  static constexpr std::uint64_t kOdd = 1'024;
  static constexpr int kMostOdd = 8;

  static std::int64_t along(std::uint64_t rate, std::uint64_t ticks) noexcept {
    return static_cast<std::int64_t>((ticks * rate) >> 32U);
  }

  [[nodiscard]] std::int64_t slow_now() noexcept;
  [[nodiscard]] std::int64_t compare() noexcept;
  [[nodiscard]] static Pair pair() noexcept;
  void publish(const Pair& begin, std::uint64_t rate, std::uint64_t length) noexcept;

  std::array<Line, 2> lines_{};
  std::atomic<std::uint64_t> generation_{0};  // its line, lines_[generation % 2], is in use
  std::int64_t floor_ = INT64_MIN;            // written before off_ is set
  // rate_ to odd_, and asked_, belong to the thread that compares.
  std::uint64_t rate_ = 0;  // 0: not known yet
  Pair last_{};
  int odd_ = 0;
  std::atomic<bool> off_{false};  // the steady clock is read, no earlier than floor_
  std::atomic<bool> comparing_{false};
  bool asked_ = false;
};

#ifdef __x86_64__
struct SLUICE_API MachineCounter {
  // Does the processor say that the counter goes at one rate whatever happens, and is it quick to read?
  [[nodiscard]] static bool trusted() noexcept;
  [[nodiscard]] static std::uint64_t ticks() noexcept { return __builtin_ia32_rdtsc(); }
  [[nodiscard]] static std::int64_t steady() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};
extern template class CounterClock<MachineCounter>;
SLUICE_API extern constinit CounterClock<MachineCounter> machine_clock;
#endif

// The machine's steady time in ns: CLOCK_MONOTONIC's, to the error told above.
inline std::int64_t steady_now() noexcept {
#ifdef __x86_64__
  return machine_clock.now();
#else
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
#endif
}

}  // namespace sluice::internal
