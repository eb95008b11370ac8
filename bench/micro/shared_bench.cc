// Several threads on one limiter: what a decision costs each of them, and how many they make together.
//
// On a machine with few processors and other work, two threads often don't run at the same time, and then share
// nothing. So decisions are timed in chunks, and a chunk counts only if another thread got on during it.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "sluice/sharded_token_bucket.h"
#include "sluice/token_bucket.h"

namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr int kChunk = 400;
constexpr auto kLasts = std::chrono::milliseconds(400);
// The second of a run, which is long enough ago for every bucket.
constexpr std::int64_t kNow = 1'767'225'600'000'000'000;

struct alignas(128) Progress {
  std::atomic<std::uint64_t> chunks{0};
};

void pin(unsigned thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(thread % std::thread::hardware_concurrency(), &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

template <typename T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

std::uint64_t sum(const std::vector<Progress>& all) {
  std::uint64_t total = 0;
  for (const Progress& one : all) total += one.chunks.load(std::memory_order_relaxed);
  return total;
}

// decide(thread): one decision.
template <typename Decide>
void run(const char* name, unsigned threads, Decide decide) {
  std::vector<Progress> progress(threads);
  std::vector<std::vector<double>> shared(threads);
  std::atomic<unsigned> ready{0};
  std::vector<std::thread> all;
  const auto work = [&](unsigned self) {
    pin(self);
    ++ready;
    while (ready < threads) std::this_thread::yield();
    const auto end = steady_clock::now() + kLasts;
    for (auto begin = steady_clock::now(); begin < end;) {
      const std::uint64_t others = sum(progress) - progress[self].chunks;
      for (int i = 0; i < kChunk; ++i) decide(self);
      const auto now = steady_clock::now();
      if (threads == 1 || sum(progress) - progress[self].chunks != others) {
        shared[self].push_back(static_cast<double>(nanoseconds(now - begin).count()) / kChunk);
      }
      progress[self].chunks.fetch_add(1, std::memory_order_relaxed);
      begin = now;
    }
  };
  for (unsigned i = 0; i < threads; ++i) all.emplace_back(work, i);
  for (std::thread& thread : all) thread.join();

  std::vector<double> costs;
  for (const auto& of_thread : shared) costs.insert(costs.end(), of_thread.begin(), of_thread.end());
  std::ranges::sort(costs);
  const double seconds = std::chrono::duration<double>(kLasts).count();
  const double together = static_cast<double>(sum(progress)) * kChunk / seconds / 1e6;
  if (costs.empty()) {
    std::printf("%-28s %u threads: never at the same time; %6.1f M/s together\n", name, threads, together);
    return;
  }
  std::printf("%-28s %u threads: %6.1f ns (p10 %.1f, p90 %.1f), %3.0f %% at the same time; %6.1f M/s together\n", name,
              threads, costs[costs.size() / 2], costs[costs.size() / 10], costs[costs.size() * 9 / 10],
              100.0 * static_cast<double>(costs.size()) / static_cast<double>(sum(progress)), together);
}

}  // namespace

int main() {
  const sluice::TokenBucket::Numbers numbers{.rate = 1'000'000'000, .burst = 1'000'000};
  for (const unsigned threads : {1U, 2U, 8U}) {
    std::atomic<std::uint64_t> word{0};
    run("floor: compare-exchange", threads, [&](unsigned) {
      std::uint64_t seen = word.load(std::memory_order_relaxed);
      while (!word.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
      }
    });
    sluice::TokenBucket with_clock(numbers);
    run("bucket, its clock", threads, [&](unsigned) { keep(with_clock.try_acquire().allowed); });
    sluice::ShardedTokenBucket sharded({.rate = numbers.rate, .burst = numbers.burst});
    run("bucket in shares, its clock", threads, [&](unsigned) { keep(sharded.try_acquire().allowed); });
    sluice::TokenBucket given_now({.rate = 0, .burst = std::uint64_t{1} << 40U});
    run("bucket, given now", threads,
        [&](unsigned) { keep(given_now.try_acquire(1, {.steady = kNow, .utc = 0}).allowed); });
  }
}
