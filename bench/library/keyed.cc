// 100 000 keys and 10 000 000.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "keys.h"
#include "sluice/keyed.h"
#include "sluice/token_bucket.h"
#include "workloads.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#endif

namespace sluice::bench {

namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kStep = 100;
constexpr std::uint64_t kKeys = 100'000;
constexpr std::uint64_t kManyKeys = 10'000'000;
// Never empty and, once used, not full again for a minute: a key that is full may be forgotten.
constexpr TokenBucket::Numbers kNumbers{.rate = 1, .period = std::chrono::minutes(1), .burst = 100'000};
// Room, so that none is put out for another.
constexpr KeyedOptions kRoom{.max_keys = kManyKeys / 4 * 5};

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

template <typename Key>
using Limiter = Keyed<TokenBucket, Key>;

// Made once, and every key used; a run takes up where the one before left off. Keys come for the first time in another
// order than ever after: what a limiter keeps of one must not lie beside what it keeps of the next.
template <typename Key>
struct Table {
  template <typename Acquire>
  Table(std::vector<Key> given, Acquire acquire)
      : keys(std::move(given)), order(shuffled(static_cast<std::uint32_t>(keys.size()), 0)) {
    for (const std::uint32_t first : shuffled(static_cast<std::uint32_t>(keys.size()), 1)) {
      acquire(limiter, keys[first]);
      acquire(another, keys[first]);
    }
  }
  std::vector<Key> keys;
  std::vector<std::uint32_t> order;
  Limiter<Key> limiter{kNumbers};
  Limiter<Key> another{kNumbers};
};

constexpr auto kAtStart = [](auto& limiter, const auto& key) {
  static_cast<void>(limiter.try_acquire(key, 1, at(kStart)));
};

Table<std::string>& strings() {
  static Table<std::string> table(string_keys(kKeys), kAtStart);
  return table;
}

Table<std::string>& strings_with_clock() {
  static Table<std::string> table(string_keys(kKeys),
                                  [](auto& limiter, const auto& key) { static_cast<void>(limiter.try_acquire(key)); });
  return table;
}

Table<std::uint64_t>& numbers() {
  static Table<std::uint64_t> table = [] {
    std::vector<std::uint64_t> keys(kKeys);
    for (std::uint64_t i = 0; i < kKeys; ++i) keys[i] = mix(i);
    return Table<std::uint64_t>(std::move(keys), kAtStart);
  }();
  return table;
}

// When a run begins. The time goes on from run to run, and no run is longer than a second of it.
std::int64_t later() {
  static std::int64_t begin = kStart;
  return begin += 1'000'000'000;
}

template <typename Key>
Result in_turn(const Amount& amount, Table<Key>& table) {
  Turn turn(table.keys.size(), 0);
  std::int64_t now = later();
  return alone(amount, [&] { return table.limiter.try_acquire(table.keys[turn.next()], 1, at(now += kStep)).allowed; });
}

Result string_given(const Amount& amount) { return in_turn(amount, strings()); }
Result number_given(const Amount& amount) { return in_turn(amount, numbers()); }

// The key's own bytes have to be fetched from memory, too.
Result string_cold(const Amount& amount) {
  auto& table = strings();
  Turn turn(table.keys.size(), 0);
  std::int64_t now = later();
  return alone(amount, [&] {
    return table.limiter.try_acquire(table.keys[table.order[turn.next()]], 1, at(now += kStep)).allowed;
  });
}

// What string_cold costs without a limiter: the key's bytes, and one atomic exchange at a place that follows from them,
// as no limiter that threads share can do without.
Result string_cold_floor(const Amount& amount) {
  auto& table = strings();
  Turn turn(table.keys.size(), 0);
  std::array<std::atomic<std::uint64_t>, 64> words{};
  return alone(amount, [&] {
    const std::string& key = table.keys[table.order[turn.next()]];
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, key.data() + kKeyBytes - sizeof bytes, sizeof bytes);
    return words[bytes % words.size()].exchange(bytes) != 1;
  });
}

// string_cold through try_acquire_many, 32 at a time.
Result string_many_at_once(const Amount& amount) {
  constexpr std::size_t kAtOnce = 32;
  auto& table = strings();
  Turn turn(table.keys.size(), 0);
  std::int64_t now = later();
  std::array<std::string_view, kAtOnce> keys;
  std::array<Decision, kAtOnce> decisions;
  std::size_t next = kAtOnce;
  return alone(amount, [&] {
    if (next == kAtOnce) {
      for (auto& key : keys) key = table.keys[table.order[turn.next()]];
      now += kStep * static_cast<std::int64_t>(kAtOnce);
      table.limiter.try_acquire_many(keys, decisions, at(now));
      next = 0;
    }
    return decisions[next++].allowed;
  });
}

Result string_clock(const Amount& amount) {
  auto& table = strings_with_clock();
  Turn turn(table.keys.size(), 0);
  return alone(amount, [&] { return table.limiter.try_acquire(table.keys[turn.next()]).allowed; });
}

// Two threads; each with a limiter of its own, if `apart`.
template <typename Key>
Result two(const Amount& amount, Table<Key>& table, bool apart) {
  const std::int64_t begin = later();
  return together(amount, 2, [&, begin](unsigned thread) {
    auto& limiter = apart && thread == 1 ? table.another : table.limiter;
    return [&table, &limiter, now = begin, turn = Turn(table.keys.size(), thread * table.keys.size() / 2)]() mutable {
      return limiter.try_acquire(table.keys[turn.next()], 1, at(now += kStep)).allowed;
    };
  });
}

Result string_two(const Amount& amount) { return two(amount, strings(), false); }
Result string_two_apart(const Amount& amount) { return two(amount, strings(), true); }
Result number_two(const Amount& amount) { return two(amount, numbers(), false); }

// Made for the moment of the run only.
Result string_many(const Amount& amount) {
  Limiter<std::string> limiter(kNumbers, kRoom);
  std::string key;
  for (std::uint64_t i = 0; i < kManyKeys; ++i) {
    write_key(i, key);
    static_cast<void>(limiter.try_acquire(key, 1, at(kStart)));
  }
  std::uint64_t n = 0;
  CALLGRIND_START_INSTRUMENTATION;
  return alone(amount, [&] {
    ++n;
    write_key(mix(n) % kManyKeys, key);
    return limiter.try_acquire(key, 1, at(kStart + static_cast<std::int64_t>(n) * kStep)).allowed;
  });
}

// What string_many costs without the limiter.
Result string_many_keys(const Amount& amount) {
  std::string key;
  std::uint64_t n = 0;
  CALLGRIND_START_INSTRUMENTATION;
  return alone(amount, [&] {
    write_key(mix(++n) % kManyKeys, key);
    asm volatile("" : : "m"(key) : "memory");
    return key.size() > 1;
  });
}

// Bytes of memory that the process really has.
double resident() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void grow(std::uint64_t keys) {
  const double before = resident();
  Limiter<std::string> limiter(kNumbers, {.max_keys = std::max(kRoom.max_keys, keys / 4 * 5)});
  std::string key;
  double worst = 0;
  std::uint64_t worst_at = 0;
  double most_bytes = 0;
  std::uint64_t calls_above_1ms = 0;
  for (std::uint64_t i = 1; i <= keys; ++i) {
    write_key(i, key);
    const double begin = cpu_now();
    static_cast<void>(limiter.try_acquire(key, 1, at(kStart)));
    const double took = cpu_now() - begin;
    if (took > 1e6) ++calls_above_1ms;
    if (took > worst) {
      worst = took;
      worst_at = i;
    }
    if (i % (keys / 100) == 0 && i > keys / 10) {
      most_bytes = std::max(most_bytes, (resident() - before) / static_cast<double>(i));
    }
  }
  std::printf(R"({"keys": %llu, "bytes_a_key": %.1f, "most_bytes_a_key": %.1f, "worst_us": %.1f, "worst_at": %llu, )"
              R"("calls_above_1ms": %llu})"
              "\n",
              static_cast<unsigned long long>(keys), (resident() - before) / static_cast<double>(keys), most_bytes,
              worst / 1e3, static_cast<unsigned long long>(worst_at), static_cast<unsigned long long>(calls_above_1ms));
}

std::vector<Workload> keyed_workloads() {
  return {{"string.given", string_given},
          {"string.cold", string_cold},
          {"string.cold.32", string_many_at_once},
          {"string.cold.floor", string_cold_floor},
          {"string.clock", string_clock},
          {"string.2", string_two},
          {"string.2.apart", string_two_apart},
          {"number.given", number_given},
          {"number.2", number_two},
          {"string.10m", string_many},
          {"string.10m.keys", string_many_keys}};
}

}  // namespace sluice::bench
