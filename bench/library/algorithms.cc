// Every algorithm, given the time: what `instructions` counts.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keys.h"
#include "sluice/adaptive_concurrency.h"
#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/keyed.h"
#include "sluice/leaky_bucket.h"
#include "sluice/limit.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"
#include "workloads.h"

namespace sluice::bench {

namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kStep = 10'000'000;  // ns from call to call: a hundred calls a second

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

// A limit that admits a call every kStep for ever (`plenty`), or one that admits none, but for the first of some.
struct Tokens {
  using Limiter = TokenBucket;
  static Limiter::Numbers numbers(bool plenty) { return {.rate = plenty ? 100U : 0U, .burst = plenty ? 30U : 1U}; }
};
struct Queue {
  using Limiter = LeakyBucket;
  static Limiter::Numbers numbers(bool plenty) {
    return plenty ? Limiter::Numbers{.rate = 100, .queue = 30} : Limiter::Numbers{.period = kMaxPeriod};
  }
};
struct EpochWindow {
  using Limiter = FixedWindow;
  static Limiter::Numbers numbers(bool plenty) { return {.rate = plenty ? 200U : 0U}; }
};
struct FirstHitWindow {
  using Limiter = FixedWindow;
  static Limiter::Numbers numbers(bool plenty) { return {.rate = plenty ? 200U : 0U, .align = Align::first_hit}; }
};
struct CalendarDay {
  using Limiter = FixedWindow;
  static Limiter::Numbers numbers(bool plenty) {
    return {.rate = plenty ? kMaxRate : 0U,
            .align = Align::calendar,
            .calendar = {.unit = Calendar::Unit::day, .timezone = "Europe/Berlin"}};
  }
};
template <std::uint32_t kSlots>
struct Slots {
  using Limiter = SlidingWindow;
  static Limiter::Numbers numbers(bool plenty) { return {.rate = plenty ? 200U : 0U, .slots = kSlots}; }
};
struct Log {
  using Limiter = SlidingLog;
  static Limiter::Numbers numbers(bool plenty) { return {.rate = plenty ? 100U : 0U}; }
};

// The caller wants every figure of the answer.
bool told(const Decision& decision) {
  asm volatile("" : : "m"(decision) : "memory");
  return decision.allowed;
}

template <typename Case, bool kPlenty>
Result single(const Amount& amount) {
  typename Case::Limiter limiter(Case::numbers(kPlenty));
  std::int64_t now = kStart;
  static_cast<void>(limiter.try_acquire(1, at(now)));
  return alone(amount, [&] { return told(limiter.try_acquire(1, at(now += kStep))); });
}

// By key: a thousand strings in turn, each as often as the one of `single`.
constexpr std::uint64_t kKeys = 1'000;

template <typename Case, bool kPlenty>
Result keyed(const Amount& amount) {
  Keyed<typename Case::Limiter, std::string> limiter(Case::numbers(kPlenty));
  const std::vector<std::string> keys = string_keys(kKeys);
  std::int64_t now = kStart;
  for (const std::string& key : keys) static_cast<void>(limiter.try_acquire(key, 1, at(now)));
  Turn turn(kKeys, 0);
  return alone(amount, [&] {
    return told(limiter.try_acquire(keys[turn.next()], 1, at(now += kStep / static_cast<std::int64_t>(kKeys))));
  });
}

// Taken and given back.
template <bool kPlenty>
Result lease(const Amount& amount) {
  Concurrency limiter({.rate = kPlenty ? 10U : 0U});
  std::int64_t now = kStart;
  return alone(amount, [&] {
    auto lease = limiter.try_acquire(1, at(now += kStep));
    static_cast<void>(lease.release(at(now)));
    return told(lease.decision());
  });
}

template <bool kPlenty>
Result keyed_lease(const Amount& amount) {
  Keyed<Concurrency, std::string> limiter({.rate = kPlenty ? 10U : 0U});
  const std::vector<std::string> keys = string_keys(kKeys);
  std::int64_t now = kStart;
  Turn turn(kKeys, 0);
  return alone(amount, [&] {
    auto lease = limiter.try_acquire(keys[turn.next()], 1, at(now += kStep));
    static_cast<void>(lease.release(at(now)));
    return told(lease.decision());
  });
}

template <bool kPlenty>
Result adaptive(const Amount& amount) {
  AdaptiveConcurrency limiter({.initial = 1, .max = 1});
  std::int64_t now = kStart;
  std::optional<AdaptiveConcurrency::Permit> other;
  if (!kPlenty) other = limiter.try_acquire(at(now));
  return alone(amount, [&] {
    auto permit = limiter.try_acquire(at(now += kStep));
    permit.success(at(now + 1'000));
    return told(permit.decision());
  });
}

template <typename Case>
void add(std::vector<Workload>& workloads, const std::string& name) {
  workloads.push_back({"single." + name + ".allowed", single<Case, true>});
  workloads.push_back({"single." + name + ".denied", single<Case, false>});
  workloads.push_back({"keyed." + name + ".allowed", keyed<Case, true>});
  workloads.push_back({"keyed." + name + ".denied", keyed<Case, false>});
}

}  // namespace

std::vector<Workload> algorithm_workloads() {
  std::vector<Workload> all;
  add<Tokens>(all, "token_bucket");
  add<Queue>(all, "leaky_bucket");
  add<EpochWindow>(all, "fixed_window");
  add<FirstHitWindow>(all, "fixed_window_first_hit");
  add<CalendarDay>(all, "fixed_window_calendar");
  add<Slots<1>>(all, "sliding_window");
  add<Slots<10>>(all, "sliding_window_10_slots");
  add<Log>(all, "sliding_log");
  all.push_back({"single.concurrency.allowed", lease<true>});
  all.push_back({"single.concurrency.denied", lease<false>});
  all.push_back({"keyed.concurrency.allowed", keyed_lease<true>});
  all.push_back({"keyed.concurrency.denied", keyed_lease<false>});
  all.push_back({"single.adaptive.allowed", adaptive<true>});
  all.push_back({"single.adaptive.denied", adaptive<false>});
  return all;
}

}  // namespace sluice::bench
