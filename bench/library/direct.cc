// One limiter, one key.
#include <chrono>

#include "sluice/sharded_token_bucket.h"
#include "sluice/token_bucket.h"
#include "workloads.h"

namespace sluice::bench {

namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kStep = 1'000;
// Never empty, whoever calls how often.
constexpr TokenBucket::Numbers kPlenty{.rate = 1'000'000'000, .burst = 4'000'000'000};
constexpr TokenBucket::Numbers kNextToNothing{.rate = 1, .period = std::chrono::hours(1), .burst = 1};

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

Result with_clock(const Amount& amount) {
  TokenBucket bucket(kPlenty);
  return alone(amount, [&] { return bucket.try_acquire().allowed; });
}

Result with_clock_denied(const Amount& amount) {
  TokenBucket bucket(kNextToNothing);
  static_cast<void>(bucket.try_acquire());
  return alone(amount, [&] { return bucket.try_acquire().allowed; });
}

Result given_now(const Amount& amount) {
  TokenBucket bucket(kPlenty);
  std::int64_t now = kStart;
  return alone(amount, [&] { return bucket.try_acquire(1, at(now += kStep)).allowed; });
}

Result given_now_denied(const Amount& amount) {
  TokenBucket bucket(kNextToNothing);
  std::int64_t now = kStart;
  static_cast<void>(bucket.try_acquire(1, at(now)));
  return alone(amount, [&] { return bucket.try_acquire(1, at(now += 1)).allowed; });
}

// The caller looks at what remains, too.
Result given_now_figures(const Amount& amount) {
  TokenBucket bucket({.rate = 10, .burst = 30});
  std::int64_t now = kStart;
  return alone(amount, [&] {
    now += 100'000'000;
    const Decision decision = bucket.try_acquire(1, at(now));
    return decision.allowed && decision.remaining != 30;
  });
}

template <unsigned kThreads>
Result threads_with_clock(const Amount& amount) {
  TokenBucket bucket(kPlenty);
  return together(amount, kThreads,
                  [&](unsigned /*thread*/) { return [&bucket] { return bucket.try_acquire().allowed; }; });
}

// All at one instant: else the fastest thread's time would be the only one that counts.
template <unsigned kThreads>
Result threads_given_now(const Amount& amount) {
  TokenBucket bucket(kPlenty);
  return together(amount, kThreads,
                  [&](unsigned /*thread*/) { return [&bucket] { return bucket.try_acquire(1, at(kStart)).allowed; }; });
}

// Each thread with its share of the bucket.
template <unsigned kThreads>
Result threads_with_shares(const Amount& amount) {
  ShardedTokenBucket bucket({.rate = kPlenty.rate, .burst = kPlenty.burst});
  return together(amount, kThreads,
                  [&](unsigned /*thread*/) { return [&bucket] { return bucket.try_acquire().allowed; }; });
}

}  // namespace

std::vector<Workload> direct_workloads() {
  return {{"direct.clock", with_clock},
          {"direct.clock.denied", with_clock_denied},
          {"direct.given", given_now},
          {"direct.given.denied", given_now_denied},
          {"direct.given.figures", given_now_figures},
          {"direct.clock.2", threads_with_clock<2>},
          {"direct.clock.8", threads_with_clock<8>},
          {"direct.given.2", threads_given_now<2>},
          {"direct.given.8", threads_given_now<8>},
          {"shares.clock.2", threads_with_shares<2>},
          {"shares.clock.8", threads_with_shares<8>}};
}

}  // namespace sluice::bench
