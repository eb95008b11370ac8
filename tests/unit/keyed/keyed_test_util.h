// What tests of Keyed share: each algorithm as a type, with numbers under which a few calls show what it does.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <type_traits>

#include "sluice/keyed.h"

namespace sluice::testing {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kStart = 1'767'225'600 * kSecond;  // 2026-01-01, the start of a day

[[nodiscard]] inline Time at(std::int64_t nanoseconds) { return {nanoseconds, nanoseconds}; }

/// An Algorithm with `tokens` to be had at once, which are all back (or the window is over) after `period`.
template <typename Algorithm>
[[nodiscard]] typename Algorithm::Numbers numbers(std::uint64_t tokens,
                                                  std::chrono::nanoseconds period = std::chrono::seconds(1)) {
  typename Algorithm::Numbers made;
  made.rate = tokens;
  if constexpr (std::is_same_v<Algorithm, Concurrency>) {
    made.ttl = period;
  } else {
    made.period = period;
  }
  if constexpr (std::is_same_v<Algorithm, TokenBucket>) made.burst = tokens;
  if constexpr (std::is_same_v<Algorithm, LeakyBucket>) made.queue = tokens - 1;
  return made;
}

/// What a check answered; a lease stays held.
template <typename Answer>
[[nodiscard]] Decision decision_of(Answer&& answer) {
  if constexpr (requires { answer.detach(); }) {
    const Decision decision = answer.decision();
    answer.detach();
    return decision;
  } else {
    return answer;
  }
}

/// A check by any Keyed; a lease stays held.
template <typename Limiter, typename Key>
Decision check(Limiter& limiter, const Key& key, std::uint64_t cost, std::int64_t now) {
  return decision_of(limiter.try_acquire(key, cost, at(now)));
}

using AllAlgorithms = ::testing::Types<TokenBucket, LeakyBucket, FixedWindow, SlidingWindow, SlidingLog, Concurrency>;

}  // namespace sluice::testing
