// The limiters for one key: ns a decision, beside the floor of a bare compare-exchange and of the clock.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "algorithm/compiled_limit.h"
#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"

namespace {

using sluice::Time;

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kTenth = 100'000'000;

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

void floor_compare_exchange(benchmark::State& state) {
  static std::atomic<std::uint64_t> word{0};
  for (auto _ : state) {
    std::uint64_t seen = word.load();
    while (!word.compare_exchange_weak(seen, seen + 1)) {
    }
  }
}

void floor_clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(std::chrono::steady_clock::now());
}

// All figures of a decision are wanted.
template <typename Limiter>
void decide(benchmark::State& state, Limiter& limiter, std::int64_t step) {
  std::int64_t now = kStart;
  for (auto _ : state) {
    now += step;
    benchmark::DoNotOptimize(limiter.try_acquire(1, at(now)));
  }
}

void bucket_allows(benchmark::State& state) {
  static sluice::TokenBucket bucket({.rate = 10, .burst = 30});
  decide(state, bucket, kTenth);
}

void bucket_denies(benchmark::State& state) {
  sluice::TokenBucket bucket({.rate = 0, .burst = 1});
  bucket.try_acquire(1, at(kStart));
  decide(state, bucket, 0);
}

void bucket_with_clock(benchmark::State& state) {
  sluice::TokenBucket bucket({.rate = 1'000'000'000, .burst = 1'000'000});
  for (auto _ : state) benchmark::DoNotOptimize(bucket.try_acquire().allowed);
}

void fixed_window(benchmark::State& state) {
  sluice::FixedWindow window({.rate = sluice::kMaxRate});
  decide(state, window, 1);
}

void sliding_window(benchmark::State& state) {
  sluice::SlidingWindow window({.rate = sluice::kMaxRate, .slots = static_cast<std::uint32_t>(state.range(0))});
  decide(state, window, 1'000);
}

void sliding_log(benchmark::State& state) {
  sluice::SlidingLog log({.rate = 10'000});
  decide(state, log, kTenth / 1'000);
}

void concurrency(benchmark::State& state) {
  sluice::Concurrency limit({.rate = 10});
  std::int64_t now = kStart;
  for (auto _ : state) {
    auto lease = limit.try_acquire(1, at(++now));
    benchmark::DoNotOptimize(lease.release(at(now)));
  }
}

// What a store pays for a decision once it has found the state.
void compiled_token_bucket(benchmark::State& state) {
  const auto limit =
      *sluice::algorithm::CompiledLimit::compile({.rate = 10, .burst = 30}, sluice::algorithm::Tick::nanosecond);
  sluice::algorithm::CompiledLimit::State bucket;
  std::int64_t now = kStart;
  for (auto _ : state) {
    now += kTenth;
    benchmark::DoNotOptimize(limit.decision(limit.decide(bucket, now, 1)));
  }
}

}  // namespace

BENCHMARK(floor_compare_exchange)->ThreadRange(1, 2);
BENCHMARK(floor_clock);
BENCHMARK(bucket_allows)->ThreadRange(1, 8);
BENCHMARK(bucket_denies);
BENCHMARK(bucket_with_clock);
BENCHMARK(fixed_window);
BENCHMARK(sliding_window)->Arg(1)->Arg(100);
BENCHMARK(sliding_log);
BENCHMARK(concurrency);
BENCHMARK(compiled_token_bucket);
BENCHMARK_MAIN();
