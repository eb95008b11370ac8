// Random spread of waiting times, so that many nodes don't act at once.
#pragma once

#include <cstdint>
#include <random>

namespace sluice::store::redis {

/// A small generator of its own (splitmix64): cheap, seedable by tests. Not thread-safe.
class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}
  /// `wait` ± 20 %, evenly. `wait` 0 … 2^50.
  [[nodiscard]] std::int64_t spread(std::int64_t wait) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    mixed ^= mixed >> 31U;
    const auto part = static_cast<std::int64_t>(mixed % 4'001) - 2'000;  // ± 20 % in 1/10000
    return wait + wait / 10'000 * part;
  }

 private:
  std::uint64_t state_;
};

/// A seed that differs from process to process.
[[nodiscard]] inline std::uint64_t random_seed() {
  return (std::uint64_t{std::random_device{}()} << 32U) | std::random_device{}();
}

}  // namespace sluice::store::redis
