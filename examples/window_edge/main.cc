// The well-known incident with fixed windows, in numbers: 8 400 requests/s for 17 s around the edge of a window,
// against 3 000 a minute. Prints, for each algorithm, how many are admitted and how many of them within the worst
// second.
#include <sluice/clock.h>
#include <sluice/fixed_window.h>
#include <sluice/leaky_bucket.h>
#include <sluice/sliding_log.h>
#include <sluice/sliding_window.h>
#include <sluice/token_bucket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <string_view>

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRate = 8'400;
constexpr std::int64_t kRequests = 17 * kRate;
constexpr std::int64_t kEdge = 1'000'000 * 60 * kSecond;  // a full minute since 1970

template <typename Limiter>
void run(std::string_view name, Limiter&& limiter) {
  std::int64_t admitted = 0;
  std::size_t worst = 0;
  std::deque<std::int64_t> second;  // when those of the last second act
  for (std::int64_t i = 0; i < kRequests; ++i) {
    const std::int64_t at = kEdge - 17 * kSecond / 2 + i * kSecond / kRate;
    const sluice::Decision decision = limiter.try_acquire(1, sluice::Time{.steady = at, .utc = at});
    if (!decision.allowed) continue;
    ++admitted;
    second.push_back(at + decision.delay.value().count());
    while (second.back() - second.front() >= kSecond) second.pop_front();
    worst = std::max(worst, second.size());
  }
  std::cout << "| " << name << " | " << admitted << " | " << worst << " |\n";
}

}  // namespace

int main() {
  std::cout << "| algorithm | admitted of " << kRequests << " | in the worst second |\n|---|---|---|\n";
  run("fixed window, 3 000 a minute", sluice::FixedWindow({.rate = 3'000, .period = 60s}));
  run("sliding window, 3 000 a minute", sluice::SlidingWindow({.rate = 3'000, .period = 60s}));
  run("sliding log, 3 000 a minute", sluice::SlidingLog({.rate = 3'000, .period = 60s}));
  run("token bucket, 50/s, burst 3 000", sluice::TokenBucket({.rate = 50, .burst = 3'000}));
  run("token bucket, 50/s, burst 100", sluice::TokenBucket({.rate = 50, .burst = 100}));
  run("leaky bucket, 50/s, queue 100", sluice::LeakyBucket({.rate = 50, .queue = 100}));
}
