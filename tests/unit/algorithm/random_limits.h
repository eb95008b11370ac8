// Random limits, costs and steps of time, of all sizes. The seed is SLUICE_SEED (default 1).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "sluice/limit.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {

inline std::uint64_t seed() {
  const char* chosen = std::getenv("SLUICE_SEED");  // NOLINT(concurrency-mt-unsafe)
  return chosen != nullptr ? std::stoull(chosen) : 1;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  // Sizes of all orders of magnitude.
  std::int64_t size(std::int64_t most) {
    std::int64_t top = 1;
    for (std::int64_t digits = between(0, 15); digits > 0 && top <= most / 10; --digits) top *= 10;
    return between(1, top);
  }
  std::uint64_t tokens(std::uint64_t most) { return static_cast<std::uint64_t>(size(static_cast<std::int64_t>(most))); }

 private:
  std::mt19937_64 engine_;
};

inline Limit random_limit(Algorithm algorithm, Random& random) {
  Limit limit{.algorithm = algorithm, .rate = random.tokens(kMaxRate), .burst = random.tokens(kMaxTokens)};
  limit.period = std::chrono::microseconds(random.size(kMaxPeriod.count() / 1'000));
  limit.queue = random.tokens(kMaxTokens) - 1;
  if (algorithm == Algorithm::fixed_window && random.between(0, 1) == 1) limit.align = Align::first_hit;
  if (random.between(0, 3) == 0) limit = {.algorithm = algorithm, .rate = 7, .burst = 3, .queue = 2};
  return limit;
}

inline std::int64_t random_step(const Limit& limit, Random& random) {
  switch (random.between(0, 3)) {
    case 0:
      return 0;
    case 1:
      return random.between(0, limit.period.count() / static_cast<std::int64_t>(limit.rate) + 1);
    case 2:
      return random.between(0, limit.period.count());
    default:
      return random.size(kDay);
  }
}

// Of a limit that allows at most `most` tokens at once; now and then one more.
inline std::uint64_t random_cost(std::uint64_t most, Random& random) {
  return random.between(0, 2) == 0 ? 1 : random.tokens(std::min(most + 1, kMaxTokens));
}

}  // namespace sluice::algorithm
