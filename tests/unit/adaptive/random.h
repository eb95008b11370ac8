// Random numbers that are the same in every run of one seed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace sluice::adaptive {

/// SLUICE_SEED, or 1.
inline std::uint64_t seed_of_the_run() {
  const char* chosen = std::getenv("SLUICE_SEED");  // NOLINT(concurrency-mt-unsafe)
  return chosen != nullptr ? std::stoull(chosen) : 1;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(engine_); }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  /// 1 … most, of all orders of magnitude alike.
  std::uint64_t size(std::uint64_t most) {
    const unsigned bits = static_cast<unsigned>(between(1, std::bit_width(most)));
    return std::clamp<std::uint64_t>(below(std::uint64_t{1} << bits), 1, most);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sluice::adaptive
