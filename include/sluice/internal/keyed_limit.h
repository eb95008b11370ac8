// The numbers of each algorithm as a Limit. Not for use outside of this library.
#pragma once

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/limit.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"

namespace sluice::internal {

inline Limit limit_of(const TokenBucket::Numbers& numbers) {
  return {.algorithm = Algorithm::token_bucket, .rate = numbers.rate, .period = numbers.period, .burst = numbers.burst};
}
inline Limit limit_of(const LeakyBucket::Numbers& numbers) {
  return {.algorithm = Algorithm::leaky_bucket, .rate = numbers.rate, .period = numbers.period, .queue = numbers.queue};
}
inline Limit limit_of(const FixedWindow::Numbers& numbers) {
  return {.algorithm = Algorithm::fixed_window,
          .rate = numbers.rate,
          .period = numbers.period,
          .align = numbers.align,
          .calendar = numbers.calendar,
          .count_denied = numbers.count_denied};
}
inline Limit limit_of(const SlidingWindow::Numbers& numbers) {
  return {
      .algorithm = Algorithm::sliding_window, .rate = numbers.rate, .period = numbers.period, .slots = numbers.slots};
}
inline Limit limit_of(const SlidingLog::Numbers& numbers) {
  return {.algorithm = Algorithm::sliding_log, .rate = numbers.rate, .period = numbers.period};
}
inline Limit limit_of(const Concurrency::Numbers& numbers) {
  return {.algorithm = Algorithm::concurrency, .rate = numbers.rate, .ttl = numbers.ttl};
}

}  // namespace sluice::internal
