// What Keyed keeps and how evenly it works: bytes a key; the law of memory (after a flood of keys that come once, bytes
// are back within a fifth two windows later, by our own account and by the system's); the work of single calls while it
// grows. Exit code 1 when the law does not hold. `--smoke`: few keys.
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "sluice/keyed.h"

namespace {

using sluice::Keyed;
using sluice::Time;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'767'225'600 * kSecond;

Time at(std::int64_t now) { return {.steady = now, .utc = now}; }

/// Bytes of memory that the process really has.
double resident() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// Of this thread: the machine may have other work. A reading takes some hundred ns.
std::int64_t cpu_time() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

std::string_view text(std::uint64_t i, std::size_t length, std::string& room) {
  room.assign(length, '0');
  for (std::size_t place = length; i > 0; i /= 10) room[--place] = static_cast<char>('0' + i % 10);
  return room;
}

template <typename Limiter, typename Make>
void show_bytes(const char* what, Limiter& limiter, std::uint64_t keys, std::size_t length, Make make) {
  const double before = resident();
  const std::uint64_t empty = limiter.figures().bytes;
  for (std::uint64_t i = 0; i < keys; ++i) static_cast<void>(limiter.try_acquire(make(i), 1, at(kStart)));
  const double counted =
      static_cast<double>(limiter.figures().bytes - empty) / static_cast<double>(limiter.figures().keys);
  const double real = (resident() - before) / static_cast<double>(keys);
  std::printf("  %-28s %9llu keys of %2zu bytes: %6.1f bytes a key counted, %6.1f resident\n", what,
              static_cast<unsigned long long>(keys), length, counted, real);
}

void bytes(std::uint64_t keys) {
  std::puts("Bytes a key");
  const sluice::TokenBucket::Numbers numbers{.rate = 1, .period = std::chrono::hours(1), .burst = 10};
  const sluice::KeyedOptions room{.max_keys = keys * 5 / 4};
  std::string text_room;
  {
    Keyed<sluice::TokenBucket, std::uint64_t> limiter(numbers, room);
    show_bytes("token bucket, integers", limiter, keys, 8, [](std::uint64_t i) { return i; });
  }
  for (const std::size_t length : {12U, 40U}) {
    Keyed<sluice::TokenBucket> limiter(numbers, room);
    show_bytes("token bucket, strings", limiter, keys, length,
               [&](std::uint64_t i) { return text(i, length, text_room); });
  }
  for (const std::uint32_t slots : {10U, 60U}) {
    Keyed<sluice::SlidingWindow> limiter({.rate = 10, .period = std::chrono::hours(1), .slots = slots}, room);
    show_bytes(slots == 10 ? "sliding window, 10 slots" : "sliding window, 60 slots", limiter, keys, 12,
               [&](std::uint64_t i) { return text(i, 12, text_room); });
  }
  const std::uint64_t few = keys / 20;
  for (const std::uint64_t entries : {1U, 2U, 10U, 100U, 1'000U}) {
    Keyed<sluice::SlidingLog> log({.rate = 1'000, .period = std::chrono::hours(1)}, {.max_keys = few * 5 / 4});
    Keyed<sluice::Concurrency> leases({.rate = 1'000}, {.max_keys = few * 5 / 4});
    const auto fill = [&](auto& limiter, const char* what, auto call) {
      const std::size_t before = ::mallinfo2().uordblks;
      const std::uint64_t empty = limiter.figures().bytes;
      for (std::uint64_t i = 0; i < few * entries; ++i)
        call(text(i % few, 12, text_room), static_cast<std::int64_t>(i));
      std::printf("  %s, %4llu of them: %8.1f bytes a key counted, %8.1f of these by malloc's own account\n", what,
                  static_cast<unsigned long long>(entries),
                  static_cast<double>(limiter.figures().bytes - empty) / static_cast<double>(few),
                  static_cast<double>(::mallinfo2().uordblks - before) / static_cast<double>(few));
    };
    fill(log, "sliding log, entries",
         [&](std::string_view key, std::int64_t i) { log.try_acquire(key, 1, at(kStart + i)); });
    if (entries > 100) continue;
    fill(leases, "concurrency, leases ",
         [&](std::string_view key, std::int64_t i) { leases.try_acquire(key, 1, at(kStart + i)).detach(); });
  }
}

bool law(std::uint64_t flood) {
  std::puts("After a flood of keys that come once, with 1 % of the traffic going on");
  Keyed<sluice::TokenBucket> limiter({.rate = 1, .burst = 1}, {.max_keys = flood * 2});
  std::string room;
  std::uint64_t next = 0;
  std::int64_t now = kStart;
  const auto window = [&](std::uint64_t calls) {
    for (std::uint64_t i = 0; i < calls; ++i) {
      limiter.try_acquire(text(next++, 20, room), 1,
                          at(now + static_cast<std::int64_t>(i * static_cast<std::uint64_t>(kSecond) / calls)));
    }
    now += kSecond;
  };
  const double empty = resident();
  const auto show = [&](const char* when) {
    std::printf("  %-26s %8llu keys, %7.1f MB counted, %7.1f MB resident beyond the empty process\n", when,
                static_cast<unsigned long long>(limiter.figures().keys),
                static_cast<double>(limiter.figures().bytes) / 1e6, (resident() - empty) / 1e6);
  };
  for (int i = 0; i < 4; ++i) window(flood / 100);
  const double counted_before = static_cast<double>(limiter.figures().bytes);
  show("before");
  window(flood);
  show("at its end");
  window(flood / 100);
  show("one window later");
  window(flood / 100);
  show("two windows later");
  const double counted = static_cast<double>(limiter.figures().bytes) / counted_before;
  // Of what was counted before, less was resident, as not all of it had been touched yet.
  const double real = (resident() - empty) / counted_before;
  std::printf("  of what was counted before: %.2f counted, %.2f resident; evicted %llu\n", counted, real,
              static_cast<unsigned long long>(limiter.figures().evicted));
  return counted <= 1.2 && real <= 1.2 && limiter.figures().evicted == 0;
}

void growth(std::uint64_t keys) {
  std::printf("Single calls while growing to %llu keys\n", static_cast<unsigned long long>(keys));
  Keyed<sluice::TokenBucket> limiter({.rate = 1, .period = std::chrono::hours(1), .burst = 10},
                                     {.max_keys = keys * 5 / 4});
  std::array<std::uint64_t, 40> by_time{};
  std::string room;
  std::int64_t longest = 0;
  for (std::uint64_t i = 0; i < keys; ++i) {
    const std::string_view key = text(i, 20, room);
    const std::int64_t begin = cpu_time();
    limiter.try_acquire(key, 1, at(kStart));
    const std::int64_t took = cpu_time() - begin;
    longest = std::max(longest, took);
    ++by_time[static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(took)))];
  }
  for (std::size_t i = 10; i < by_time.size(); ++i) {
    if (by_time[i] != 0) {
      std::printf("  below %10llu ns: %llu\n", 1ULL << i, static_cast<unsigned long long>(by_time[i]));
    }
  }
  std::printf(
      "  longest %.3f ms of CPU time; %.1f slots moved or looked at "
      "a call on average\n",
      static_cast<double>(longest) / 1e6, static_cast<double>(limiter.figures().work) / static_cast<double>(keys));
}

}  // namespace

int main(int argc, char** argv) {
  const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
  bytes(smoke ? 100'000 : 2'000'000);
  const bool holds = law(smoke ? 500'000 : 5'000'000);
  growth(smoke ? 100'000 : 10'000'000);
  std::puts(holds ? "The law of memory holds" : "The law of memory DOES NOT hold");
  return holds ? 0 : 1;
}
