// Waiting: how late waiters are called, and what CPU that takes, beside bare Asio timers for the same instants.
//
//   idle    100 000 wait for a minute: CPU while nothing is due
//   steady  one is due every 200 µs: lateness and CPU of one timer for all, and of one timer each
//   flood   100 000 are due within 2 s, 50 a millisecond
//   join    ns to stand in line and to leave it again
//   threads lateness of wait() beside sleep_until for the same instants
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/asio/async_wait.h"
#include "sluice/leaky_bucket.h"
#include "sluice/token_bucket.h"

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr double kNsPerUs = 1e3;
constexpr double kNsPerS = 1e9;

std::int64_t now() { return nanoseconds(steady_clock::now().time_since_epoch()).count(); }

// CPU time of this process, in ns.
double cpu() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * kNsPerS + static_cast<double>(time.tv_usec) * kNsPerUs;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

struct Run {
  std::vector<std::int64_t> late;  // ns
  double cpu_share = 0;            // of one core

  [[nodiscard]] double quantile(double q) {
    if (late.empty()) return 0;
    const auto place = static_cast<std::ptrdiff_t>(q * static_cast<double>(late.size() - 1));
    std::nth_element(late.begin(), late.begin() + place, late.end());
    return static_cast<double>(late[static_cast<std::size_t>(place)]) / kNsPerUs;
  }
};

// Runs `io` until it has nothing to do, or for `most`.
double share_of_cpu(asio::io_context& io, nanoseconds most) {
  const double cpu_before = cpu();
  const std::int64_t begin = now();
  io.run_for(most);
  return (cpu() - cpu_before) / static_cast<double>(now() - begin);
}

// `count` wait at a bucket that grants `rate` a second, of which `ahead` ms are granted while they join.
Run by_sluice(std::size_t count, std::uint64_t rate, nanoseconds most, nanoseconds ahead) {
  asio::io_context io;
  sluice::TokenBucket bucket({.rate = rate, .period = 1s, .burst = rate});
  bucket.acquire_up_to(UINT64_MAX);
  bucket.settle(0, static_cast<std::uint64_t>(ahead.count()) * rate / 1'000'000'000);
  sluice::AsyncWaits waits(io, bucket, count);
  Run run;
  run.late.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    waits.async_wait([&](error_code error, const sluice::WaitResult& result) {
      if (!error) run.late.push_back(now() - result.ready_at);
    });
  }
  run.cpu_share = share_of_cpu(io, most);
  waits.cancel();
  return run;
}

// The same with a bare timer for each.
Run by_timers(std::size_t count, std::uint64_t rate, nanoseconds most, nanoseconds ahead) {
  asio::io_context io;
  std::deque<asio::steady_timer> timers;
  Run run;
  run.late.reserve(count);
  const steady_clock::time_point begin = steady_clock::now() + ahead;
  for (std::size_t i = 0; i < count; ++i) {
    const auto due = begin + nanoseconds((i + 1) * 1'000'000'000 / rate);
    timers.emplace_back(io, due).async_wait([&run, due](error_code error) {
      if (!error) run.late.push_back(nanoseconds(steady_clock::now() - due).count());
    });
  }
  run.cpu_share = share_of_cpu(io, most);
  return run;
}

void print(std::string_view name, Run& run) {
  std::printf("  %-14s p50 %8.1f µs   p99 %8.1f µs   max %8.1f µs   CPU %6.2f %%   (%zu called)\n",
              std::string(name).c_str(), run.quantile(0.5), run.quantile(0.99), run.quantile(1), 100 * run.cpu_share,
              run.late.size());
}

// A, B, A, B, …: the median run of each by p99.
void compare(const char* title, int rounds, std::size_t count, std::uint64_t rate, nanoseconds most,
             nanoseconds ahead) {
  std::vector<Run> ours;
  std::vector<Run> bare;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(by_sluice(count, rate, most, ahead));
    bare.push_back(by_timers(count, rate, most, ahead));
  }
  const auto median = [](std::vector<Run>& runs) -> Run& {
    std::sort(runs.begin(), runs.end(), [](Run& a, Run& b) { return a.quantile(0.99) < b.quantile(0.99); });
    return runs[runs.size() / 2];
  };
  Run& a = median(ours);
  Run& b = median(bare);
  std::printf("%s (median of %d)\n", title, rounds);
  print("sluice", a);
  print("bare timers", b);
  std::printf("  p99 %+.1f µs; CPU ratio %.2f\n", a.quantile(0.99) - b.quantile(0.99),
              b.cpu_share > 0 ? a.cpu_share / b.cpu_share : 0);
}

void idle() {
  Run ours = by_sluice(100'000, 1'000, 3s, 60s);
  Run bare = by_timers(100'000, 1'000, 3s, 60s);
  std::printf("idle: 100 000 wait, none is due for a minute\n  sluice CPU %.3f %%   bare timers CPU %.3f %%\n",
              100 * ours.cpu_share, 100 * bare.cpu_share);
}

void join() {
  constexpr std::size_t kCount = 100'000;
  asio::io_context io;
  sluice::TokenBucket bucket({.rate = 1, .period = 1h, .burst = 1});
  bucket.acquire_up_to(1);
  sluice::AsyncWaits waits(io, bucket, kCount);
  const std::int64_t begin = now();
  for (std::size_t i = 0; i < kCount; ++i) {
    waits.async_wait([](error_code, const sluice::WaitResult&) {});
  }
  const std::int64_t joined = now();
  waits.cancel();
  const std::int64_t left = now();
  io.run();
  const auto each = [](std::int64_t ns) { return static_cast<double>(ns) / kCount; };
  std::printf("join: %.0f ns each, leave %.0f ns, called %.0f ns\n", each(joined - begin), each(left - joined),
              each(now() - left));
}

void threads() {
  constexpr int kWaits = 2'000;
  Run ours;
  Run bare;
  sluice::TokenBucket bucket({.rate = 1'000, .period = 1s, .burst = 1});
  double before = cpu();
  std::int64_t begin = now();
  for (int i = 0; i < kWaits; ++i) {
    const sluice::WaitResult result = bucket.wait();
    ours.late.push_back(now() - result.ready_at);
  }
  ours.cpu_share = (cpu() - before) / static_cast<double>(now() - begin);
  before = cpu();
  begin = now();
  auto due = steady_clock::now();
  for (int i = 0; i < kWaits; ++i) {
    due += 1ms;
    std::this_thread::sleep_until(due);
    bare.late.push_back(nanoseconds(steady_clock::now() - due).count());
  }
  bare.cpu_share = (cpu() - before) / static_cast<double>(now() - begin);
  std::printf("threads: one thread, 1 000/s\n");
  print("wait()", ours);
  print("sleep_until", bare);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  const auto wanted = [&](std::string_view name) { return only.empty() || only == name; };
  if (wanted("idle")) idle();
  if (wanted("steady")) compare("steady: 5 000/s", 3, 10'000, 5'000, 10s, 50ms);
  if (wanted("flood")) compare("flood: 100 000 at 50 000/s", 3, 100'000, 50'000, 10s, 1s);
  if (wanted("join")) join();
  if (wanted("threads")) threads();
}
