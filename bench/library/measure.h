// How a decision is timed, alone and by several threads. bench/library/governor/src/measure.rs is the same in Rust.
#pragma once

#include <time.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice::bench {

inline double nanoseconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
/// CPU time of this thread: the machine may have other work.
inline double cpu_now() { return nanoseconds_of(CLOCK_THREAD_CPUTIME_ID); }
inline double wall_now() { return nanoseconds_of(CLOCK_MONOTONIC); }

/// How long to go on: for a time, or for a number of calls (each thread).
struct Amount {
  double nanoseconds = 0;
  std::uint64_t calls = 0;

  [[nodiscard]] bool enough(double elapsed, std::uint64_t done) const {
    return calls != 0 ? done >= calls : elapsed >= nanoseconds;
  }
  /// To have everything in the caches as it is in the middle of a run. Nothing for a number of calls: who counts
  /// instructions takes the difference of two numbers.
  [[nodiscard]] Amount warm_up() const { return {.nanoseconds = nanoseconds / 8, .calls = 0}; }
};

struct Result {
  std::uint64_t calls = 0;
  std::uint64_t allowed = 0;
  double nanoseconds = 0;  // a call; of several threads: time that passes between two calls of any
};

constexpr std::uint64_t kBatch = 1'000;

/// A batch of calls, and what they were answered.
template <typename Call>
std::uint64_t batch(Call& call) {
  std::uint64_t allowed = 0;
  for (std::uint64_t i = 0; i < kBatch; ++i) allowed += call() ? 1U : 0U;
  return allowed;
}

/// `call()` decides once and says if it was allowed.
template <typename Call>
[[gnu::noinline]] Result alone(const Amount& amount, Call call) {
  Result result;
  if (amount.calls == 0) {
    const double begin = cpu_now();
    while (!amount.warm_up().enough(cpu_now() - begin, 0)) static_cast<void>(batch(call));
  }
  const double begin = cpu_now();
  double elapsed = 0;
  while (!amount.enough(elapsed, result.calls)) {
    result.allowed += batch(call);
    result.calls += kBatch;
    elapsed = cpu_now() - begin;
  }
  result.nanoseconds = elapsed / static_cast<double>(result.calls);
  return result;
}

/// `make(thread)` gives each thread its `call`. All begin at once and go on for the same time.
template <typename Make>
Result together(const Amount& amount, unsigned threads, Make make) {
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  std::vector<Result> results(threads);
  std::vector<std::jthread> running;
  for (unsigned thread = 0; thread < threads; ++thread) {
    running.emplace_back([&, thread] {
      auto call = make(thread);
      Result result;
      start.arrive_and_wait();
      double begin = wall_now();
      if (amount.calls == 0) {
        while (!amount.warm_up().enough(wall_now() - begin, 0)) static_cast<void>(batch(call));
        begin = wall_now();
      }
      double elapsed = 0;
      while (!amount.enough(elapsed, result.calls)) {
        result.allowed += batch(call);
        result.calls += kBatch;
        elapsed = wall_now() - begin;
      }
      result.nanoseconds = elapsed / static_cast<double>(result.calls);
      results[thread] = result;
    });
  }
  running.clear();
  Result all;
  double rate = 0;
  for (const Result& one : results) {
    all.calls += one.calls;
    all.allowed += one.allowed;
    rate += 1 / one.nanoseconds;
  }
  all.nanoseconds = 1 / rate;
  return all;
}

}  // namespace sluice::bench
