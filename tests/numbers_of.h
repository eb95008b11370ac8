// A limit as the numbers of the public limiter that has its algorithm.
#pragma once

#include <type_traits>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/limit.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"

namespace sluice {

template <typename Limiter>
typename Limiter::Numbers numbers_of(const Limit& limit) {
  if constexpr (std::is_same_v<Limiter, TokenBucket>) return {limit.rate, limit.period, limit.burst};
  if constexpr (std::is_same_v<Limiter, LeakyBucket>) return {limit.rate, limit.period, limit.queue};
  if constexpr (std::is_same_v<Limiter, FixedWindow>) {
    return {limit.rate, limit.period, limit.align, limit.calendar, limit.count_denied};
  }
  if constexpr (std::is_same_v<Limiter, SlidingWindow>) return {limit.rate, limit.period, limit.slots};
  if constexpr (std::is_same_v<Limiter, SlidingLog>) return {limit.rate, limit.period};
  if constexpr (std::is_same_v<Limiter, Concurrency>) return {limit.rate, limit.ttl};
}

}  // namespace sluice
