// Keyed limiters, given the time: ns a decision by kind of key, by algorithm, one at a time and many at once.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sluice/keyed.h"

namespace {

using sluice::Decision;
using sluice::Keyed;
using sluice::Time;

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

template <typename Key>
Key key_of(std::uint64_t i, std::size_t length) {
  const std::uint64_t mixed = i * 0x9E3779B97F4A7C15U;
  if constexpr (std::is_integral_v<Key>) {
    return static_cast<Key>(mixed);
  } else {
    std::string key = std::to_string(mixed);
    key.resize(length, '.');
    return key;
  }
}

/// A limiter that holds range(0) keys, and those keys, of range(1) bytes, in the order they are used.
template <typename Algorithm, typename Key>
class Table {
 public:
  Table(const benchmark::State& state, const typename Algorithm::Numbers& numbers)
      : limiter(numbers, {.max_keys = static_cast<std::uint64_t>(state.range(0)) * 5 / 4}) {
    const auto count = static_cast<std::uint64_t>(state.range(0));
    keys.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      keys.push_back(key_of<Key>(i * 7'919 % count, static_cast<std::size_t>(state.range(1))));
      static_cast<void>(limiter.try_acquire(keys.back(), 1, at(kStart)));
    }
  }
  Keyed<Algorithm, Key> limiter;
  std::vector<Key> keys;
};

template <typename Algorithm, typename Key>
void decide(benchmark::State& state, const typename Algorithm::Numbers& numbers) {
  Table<Algorithm, Key> table(state, numbers);
  std::int64_t now = kStart;
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(table.limiter.try_acquire(table.keys[i], 1, at(now += 100)));
    if (++i == table.keys.size()) i = 0;
  }
  const auto figures = table.limiter.figures();
  state.counters["bytes/key"] = static_cast<double>(figures.bytes) / static_cast<double>(figures.keys);
}

constexpr sluice::TokenBucket::Numbers kBucket{.rate = 1, .period = std::chrono::hours(1), .burst = 1'000'000};

void bucket_by_string(benchmark::State& state) { decide<sluice::TokenBucket, std::string>(state, kBucket); }
void bucket_by_integer(benchmark::State& state) { decide<sluice::TokenBucket, std::uint64_t>(state, kBucket); }
void fixed_window(benchmark::State& state) {
  decide<sluice::FixedWindow, std::uint64_t>(state, {.rate = 1'000'000, .period = std::chrono::hours(1)});
}
void sliding_window(benchmark::State& state) {
  decide<sluice::SlidingWindow, std::uint64_t>(state, {.rate = 1'000'000, .period = std::chrono::hours(1)});
}
void sliding_window_of_ten_slots(benchmark::State& state) {
  decide<sluice::SlidingWindow, std::uint64_t>(state,
                                               {.rate = 1'000'000, .period = std::chrono::hours(1), .slots = 10});
}
void sliding_log(benchmark::State& state) {  // denied once ten entries are there
  decide<sluice::SlidingLog, std::uint64_t>(state, {.rate = 10, .period = std::chrono::hours(1)});
}

void concurrency(benchmark::State& state) {
  Table<sluice::Concurrency, std::uint64_t> table(state, {.rate = 10});
  std::int64_t now = kStart;
  std::size_t i = 0;
  for (auto _ : state) {
    auto lease = table.limiter.try_acquire(table.keys[i], 1, at(++now));
    benchmark::DoNotOptimize(lease.release(at(now)));
    if (++i == table.keys.size()) i = 0;
  }
}

void many_at_once(benchmark::State& state) {
  Table<sluice::TokenBucket, std::string> table(state, kBucket);
  constexpr std::size_t kAtOnce = 32;
  std::vector<Decision> decisions(kAtOnce);
  std::int64_t now = kStart;
  std::size_t i = 0;
  for (auto _ : state) {
    const std::span<const std::string> keys(&table.keys[i], kAtOnce);
    table.limiter.try_acquire_many(keys, std::span<Decision>(decisions), at(now += 3'200));
    benchmark::DoNotOptimize(decisions.data());
    i = i + 2 * kAtOnce > table.keys.size() ? 0 : i + kAtOnce;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kAtOnce));
}

}  // namespace

BENCHMARK(bucket_by_string)->Args({1'000, 12})->ArgsProduct({{100'000, 1'000'000}, {8, 12, 40}});
BENCHMARK(many_at_once)->ArgsProduct({{100'000, 1'000'000}, {12}});
BENCHMARK(bucket_by_integer)->ArgsProduct({{100'000, 1'000'000}, {8}});
BENCHMARK(fixed_window)->Args({100'000, 8});
BENCHMARK(sliding_window)->Args({100'000, 8});
BENCHMARK(sliding_window_of_ten_slots)->Args({100'000, 8});
BENCHMARK(sliding_log)->Args({100'000, 8});
BENCHMARK(concurrency)->Args({100'000, 8});
BENCHMARK_MAIN();
