// Limits that move by themselves: ns a call let in and ended, by one thread and by two, and ns a decision of WarmUp.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "sluice/adaptive_concurrency.h"
#include "sluice/limit.h"
#include "sluice/warm_up.h"

namespace {

using sluice::AdaptiveConcurrency;
using sluice::Time;
using sluice::WarmUp;

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

Time at(std::int64_t now) { return {.steady = now, .utc = 0}; }

// One limiter for all threads of a run; no probe cuts it so far that a call is denied.
AdaptiveConcurrency& shared_limiter() {
  static AdaptiveConcurrency limiter({.initial = 100, .min = 50, .max = 200});
  return limiter;
}

void permit_and_success(benchmark::State& state) {
  std::int64_t now = kStart;
  for (auto _ : state) {
    auto permit = shared_limiter().try_acquire(at(now));
    benchmark::DoNotOptimize(permit.decision());
    now += 1'000;
    permit.success(at(now));
  }
}

void permit_and_success_with_clock(benchmark::State& state) {
  for (auto _ : state) {
    auto permit = shared_limiter().try_acquire();
    benchmark::DoNotOptimize(permit.decision());
    permit.success();
  }
}

void permit_ignored(benchmark::State& state) {
  for (auto _ : state) {
    auto permit = shared_limiter().try_acquire(at(kStart));
    benchmark::DoNotOptimize(permit.decision());
  }
}

void permit_denied(benchmark::State& state) {
  AdaptiveConcurrency limiter({.initial = 1});
  const auto held = limiter.try_acquire(at(kStart));
  for (auto _ : state) benchmark::DoNotOptimize(limiter.try_acquire(at(kStart)).decision());
}

constexpr WarmUp::Numbers kNarrow{
    .rate = 1'000, .burst = 10, .warm_up = std::chrono::seconds(10), .cool_down = std::chrono::hours(24)};
// More than 128 bits.
constexpr WarmUp::Numbers kWide{.rate = 999'999'999'989,
                                .period = std::chrono::hours(24),
                                .burst = sluice::kMaxTokens,
                                .warm_up = std::chrono::hours(24),
                                .cool_down = std::chrono::hours(24),
                                .cold_factor = 1'000};

void warm_up_allows(benchmark::State& state, const WarmUp::Numbers& numbers, std::int64_t step) {
  WarmUp limit(numbers);
  std::int64_t now = kStart;
  for (auto _ : state) {
    now += step;
    benchmark::DoNotOptimize(limit.try_acquire(1, at(now)));
  }
}

void warm_up_denies(benchmark::State& state, const WarmUp::Numbers& numbers) {
  WarmUp limit(numbers);
  limit.try_acquire(numbers.burst, at(kStart));
  for (auto _ : state) benchmark::DoNotOptimize(limit.try_acquire(1, at(kStart)));
}

BENCHMARK(permit_and_success)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(permit_and_success_with_clock)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(permit_ignored);
BENCHMARK(permit_denied);
BENCHMARK_CAPTURE(warm_up_allows, narrow, kNarrow, 1'000'000);
BENCHMARK_CAPTURE(warm_up_denies, narrow, kNarrow);
BENCHMARK_CAPTURE(warm_up_allows, wide, kWide, 1);
BENCHMARK_CAPTURE(warm_up_denies, wide, kWide);

}  // namespace

BENCHMARK_MAIN();
