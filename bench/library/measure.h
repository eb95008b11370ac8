// How a decision is timed, alone and by several threads. bench/library/governor/src/measure.rs is the same in Rust.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
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
  double nanoseconds = 0;  // a call; of several threads: from one of them to the next of any, when as many run as can
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

/// The scheduler may else leave two threads on one processor while the other does something else.
inline void pin(unsigned thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(thread % std::thread::hardware_concurrency(), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
}

/// `make(thread)` gives each thread its `call`. All begin at once and go on for the same time. On a machine with few
/// processors and other work, threads often don't run at the same time, and then share nothing: a batch counts only if
/// another thread has ended one meanwhile, and this one had its processor all the time. What it took is divided by the
/// number of threads that can run at once. Goes on, up to twenty times as long, until enough batches count.
template <typename Make>
Result together(const Amount& amount, unsigned threads, Make make) {
  constexpr std::uint64_t kLeast = 100;
  struct alignas(128) Shared {
    std::atomic<std::uint64_t> batches{0};
    Result result;
    double took = 0;
  };
  std::vector<Shared> all(threads);
  std::atomic<std::uint64_t> counted{0};
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  std::vector<std::jthread> running;
  for (unsigned self = 0; self < threads; ++self) {
    running.emplace_back([&, self] {
      pin(self);
      auto call = make(self);
      const auto others = [&] {
        std::uint64_t sum = 0;
        for (unsigned other = 0; other < threads; ++other) {
          if (other != self) sum += all[other].batches.load(std::memory_order_relaxed);
        }
        return sum;
      };
      Result result;
      double took = 0;
      start.arrive_and_wait();
      const double begin = wall_now();
      double elapsed = 0;
      while (!amount.enough(elapsed, result.calls) ||
             (counted.load(std::memory_order_relaxed) < kLeast && elapsed < 20 * amount.nanoseconds)) {
        const std::uint64_t before = others();
        const double wall = wall_now();
        const double cpu = cpu_now();
        result.allowed += batch(call);
        const double ran = cpu_now() - cpu;
        elapsed = wall_now() - begin;
        result.calls += kBatch;
        all[self].batches.fetch_add(1, std::memory_order_relaxed);
        const bool uninterrupted = begin + elapsed - wall < 1.2 * ran + 1'000;
        if (uninterrupted && others() != before && elapsed >= amount.warm_up().nanoseconds) {
          counted.fetch_add(1, std::memory_order_relaxed);
          took += ran;
        }
      }
      all[self].result = result;
      all[self].took = took;
    });
  }
  running.clear();
  Result sum;
  for (const Shared& one : all) {
    sum.calls += one.result.calls;
    sum.allowed += one.result.allowed;
    sum.nanoseconds += one.took;
  }
  sum.nanoseconds /= static_cast<double>(counted * kBatch * std::min(threads, std::thread::hardware_concurrency()));
  return sum;
}

}  // namespace sluice::bench
