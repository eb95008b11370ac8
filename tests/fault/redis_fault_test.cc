// A real Redis that is killed, stopped, paused and cut off under load: what is admitted stays within the bound that
// follows from what happened, and nobody waits for longer than the deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "load/bound.h"
#include "tests/fault/load.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/support/sanitizers.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using store::redis::text_of;

// Rounds of a fault: SLUICE_FAULT_ROUNDS, for long runs by hand.
int rounds(int usual) {
  const char* given = std::getenv("SLUICE_FAULT_ROUNDS");
  return given != nullptr ? std::atoi(given) : usual;
}

bool is_long() { return std::getenv("SLUICE_FAULT_ROUNDS") != nullptr; }

// Redis 7 and Valkey want to be told; older ones do not know the word.
std::vector<std::string> debug_allowed() {
  const std::string version = RedisServer().version();
  return std::atoi(version.c_str()) >= 7 ? std::vector<std::string>{"--enable-debug-command", "yes"}
                                         : std::vector<std::string>{};
}

const Limit kBucket{.algorithm = Algorithm::token_bucket, .rate = 50, .period = 1s, .burst = 20};
// A busy machine answers within this, and the tests never wait for it in vain.
constexpr auto kTimeout = 100ms;

store::redis::RedisOptions options_at(const std::string& url) {
  store::redis::RedisOptions options;
  options.url = url;
  options.timeout = kTimeout;
  options.failures = 3;
  options.probe_interval = 50ms;
  options.eviction_interval = 20ms;
  return options;
}

// For what is to be answered however busy the machine is.
store::redis::RedisOptions patient_at(const std::string& url) {
  store::redis::RedisOptions options = options_at(url);
  options.timeout = 5s;
  return options;
}

class RedisFault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  void TearDown() override { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url, OnStoreFailure word = OnStoreFailure::deny, bool cache_denials = false) {
    load_ = std::make_unique<Load>(Load::Options{
        .redis = options_at(url), .numbers = kBucket, .on_store_failure = word, .cache_denials = cache_denials});
    load_->start();
  }
  // Ends the load. Every key: no more than the bound, the burst included, and, as callers ask for all they can get,
  // that burst.
  void expect_bound(std::uint64_t restarts = 0) {
    (void)load_->stop();
    expect_within(load_->check({.restarts = restarts}));
    for (const Load::Count& count : load_->counts()) {
      EXPECT_GE(count.shared, kBucket.burst);
      EXPECT_GT(count.denied, 0U);
    }
    // Of a machine with other work it says nothing.
    if (is_long()) {
      EXPECT_LT(load_->longest_wait(), 20 * kTimeout);
    }
  }
  static void expect_within(const sluice::load::CheckReport& report) {
    EXPECT_EQ(report.keys_over, 0U) << report.worst.name << ": " << report.worst.admitted << " admitted, bound "
                                    << report.worst.bound << ", excess " << report.excess;
  }
  // The shared limit rules, and all of it may be had: from one moment to the next, with the bucket used up at both,
  // each key gives what has come back in between. Once: callers may be kept from asking for all of it by a busy
  // machine.
  void expect_exact_again() {
    ASSERT_TRUE(load_->hear(2'000));
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!gives_what_comes_back()) ASSERT_LT(std::chrono::steady_clock::now(), end);
  }
  [[nodiscard]] bool gives_what_comes_back() const {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::uint64_t> admitted;
    for (const Load::Count& count : load_->counts()) admitted.push_back(count.shared);
    std::this_thread::sleep_for(500ms);
    for (std::size_t key = 0; key < admitted.size(); ++key) admitted[key] = load_->counts()[key].shared - admitted[key];
    const std::chrono::duration<double> length = std::chrono::steady_clock::now() - begin;
    const double back = length.count() * static_cast<double>(kBucket.rate);
    for (const std::uint64_t of_key : admitted) {
      EXPECT_LE(static_cast<double>(of_key), back + static_cast<double>(kBucket.burst));
    }
    return std::ranges::all_of(admitted,
                               [&](std::uint64_t of_key) { return static_cast<double>(of_key) >= 0.7 * back; });
  }
  // The store's connections, one a thread, and the test's own: the server may see late that others have ended.
  void expect_few_connections() {
    EXPECT_TRUE(wait_for([this] { return info("clients", "connected_clients") <= 3; }));
  }
  void expect_that_all_keys_expire() {
    const auto keys = server_->command({"KEYS", "*"});
    for (std::size_t i = 0; i < keys->elements; ++i) {
      EXPECT_NE(server_->integer({"PTTL", std::string(text_of(*keys->element[i]))}), -1);
    }
  }
  long long info(const std::string& section, const std::string& field) {
    return std::atoll(server_->info(section, field).c_str());
  }

  // Starts them at once, lets each hear some answers, and stops them: together no key is over its bound, nor kept from
  // it.
  static void expect_bound_of(const std::vector<std::unique_ptr<Load>>& processes) {
    for (const auto& process : processes) process->start();
    for (const auto& process : processes) ASSERT_TRUE(process->hear(200));
    sluice::load::Checker all;
    for (const auto& process : processes) {
      (void)process->stop();
      all.add(process->seen());
    }
    const auto report = all.report({.slack = 1ms});
    expect_within(report);
    ASSERT_GT(report.keys_wanted, 0U);
    EXPECT_GT(report.used_least.value(), 0.45);  // of windows, the last may have been cut short
  }
  static long resident_kb() {
    std::ifstream file("/proc/self/statm");
    long pages = 0;
    long resident = 0;
    file >> pages >> resident;
    return resident * (::sysconf(_SC_PAGESIZE) / 1024);
  }

  std::unique_ptr<RedisServer> server_ = std::make_unique<RedisServer>();
  std::unique_ptr<Load> load_;
};

TEST_F(RedisFault, ScriptFlush) {
  open(server_->url());
  for (int i = 0; i < rounds(50); ++i) {
    server_->command({"SCRIPT", "FLUSH"});
    ASSERT_TRUE(load_->hear(20));
  }
  expect_bound();
  EXPECT_EQ(load_->sum(&Load::Count::failed), 0U);
  EXPECT_EQ(load_->metric(metrics::Counter::store_failures), 0U);
  expect_that_all_keys_expire();
}

TEST_F(RedisFault, KilledAndStartedEmpty) {
  open(server_->url());
  const int restarts = rounds(3);
  for (int i = 0; i < restarts; ++i) {
    ASSERT_TRUE(load_->hear(500));
    server_->kill();
    ASSERT_TRUE(load_->miss(50));
    server_->start();
    ASSERT_TRUE(load_->hear(500));
  }
  // What the server has forgotten may be had once more.
  expect_exact_again();
  expect_bound(static_cast<std::uint64_t>(restarts));
  expect_that_all_keys_expire();
}

TEST_F(RedisFault, KilledAndStartedWithItsLog) {
  server_ = std::make_unique<RedisServer>(std::vector<std::string>{"--appendonly", "yes", "--appendfsync", "always"});
  open(server_->url());
  for (int i = 0; i < rounds(3); ++i) {
    ASSERT_TRUE(load_->hear(500));
    server_->kill();
    ASSERT_TRUE(load_->miss(50));
    server_->start();
    ASSERT_TRUE(load_->hear(500));
  }
  expect_bound();
}

TEST_F(RedisFault, KilledWithLocalRescue) {
  const auto begin = std::chrono::steady_clock::now();
  open(server_->url(), OnStoreFailure::local);
  ASSERT_TRUE(load_->hear(500));
  server_->kill();
  ASSERT_TRUE(load_->miss(500));
  server_->start();
  ASSERT_TRUE(load_->hear(500));
  expect_exact_again();
  expect_bound(1);
  // A busy machine may be slower than the time-out when there is no outage, too.
  const auto length = std::chrono::steady_clock::now() - begin;
  for (const Load::Count& count : load_->counts()) {
    EXPECT_GE(count.local, kBucket.burst);
    EXPECT_LE(count.local, sluice::load::local_bound(kBucket, length));
  }
}

TEST_F(RedisFault, Stopped) {
  open(server_->url());
  for (int i = 0; i < rounds(3); ++i) {
    ASSERT_TRUE(load_->hear(200));
    server_->pause();
    ASSERT_TRUE(load_->miss(200));
    server_->resume();
    ASSERT_TRUE(load_->hear(200));
  }
  expect_bound();
  expect_that_all_keys_expire();
}

// The breaker is one for all threads: the log tells each change once. A machine too busy for the time-out may bring
// more changes than the pause did.
TEST_F(RedisFault, TheLogTellsEachChangeOnce) {
  open(server_->url());
  ASSERT_TRUE(load_->hear(100));
  log::configure(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
  server_->pause();
  const bool was_missed = load_->miss(500);
  server_->resume();
  const bool has_recovered = load_->recover();
  (void)load_->stop();
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(was_missed);
  ASSERT_TRUE(has_recovered) << log;
  // One after the other, from the first to the second.
  const auto expect_in_turn = [&](const std::string& first, const std::string& second) {
    std::size_t changes = 0;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      const bool is_first = line.find(first) != std::string::npos;
      if (!is_first && line.find(second) == std::string::npos) continue;
      EXPECT_EQ(is_first, changes % 2 == 0) << log;
      ++changes;
    }
    EXPECT_GE(changes, 2U) << log;
    EXPECT_EQ(changes % 2, 0U) << log;
  };
  expect_in_turn("redis: not available", "redis: connected");
  expect_in_turn("store: failing", "store: answers again");
}

TEST_F(RedisFault, ClientPause) {
  open(server_->url());
  for (int i = 0; i < rounds(2); ++i) {
    ASSERT_TRUE(load_->hear(200));
    server_->command({"CLIENT", "PAUSE", "600"});
    ASSERT_TRUE(load_->miss(100));
    ASSERT_TRUE(load_->hear(200));
  }
  expect_exact_again();
  expect_bound();
}

// Longer than any patience of ours with a silent connection: 10 s by hand.
TEST_F(RedisFault, LongClientPause) {
  open(server_->url(), OnStoreFailure::local);
  ASSERT_TRUE(load_->hear(200));
  const int pause = is_long() ? 10'000 : 2'000;
  server_->command({"CLIENT", "PAUSE", std::to_string(pause)});
  ASSERT_TRUE(load_->miss(100));
  const std::uint64_t before = load_->sum(&Load::Count::local);
  std::this_thread::sleep_for(std::chrono::milliseconds(pause - 500));
  EXPECT_GT(load_->sum(&Load::Count::local), before);
  ASSERT_TRUE(load_->hear(200));
  expect_exact_again();
  expect_bound();
}

TEST_F(RedisFault, Asleep) {
  server_ = std::make_unique<RedisServer>(debug_allowed());
  open(server_->url());
  for (int i = 0; i < rounds(2); ++i) {
    ASSERT_TRUE(load_->hear(200));
    server_->command({"DEBUG", "SLEEP", "0.6"});
    ASSERT_TRUE(load_->hear(200));
  }
  EXPECT_GT(load_->sum(&Load::Count::failed), 0U);
  expect_bound();
}

TEST_F(RedisFault, ConnectionsAreKilled) {
  open(server_->url());
  for (int i = 0; i < rounds(20); ++i) {
    server_->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(load_->hear(100));
  }
  expect_few_connections();
  expect_bound();
}

TEST_F(RedisFault, RepliesAreCutInHalf) {
  TcpProxy proxy(server_->port());
  open(proxy.url());
  for (int i = 0; i < rounds(20); ++i) {
    proxy.cut_replies(1);
    ASSERT_TRUE(load_->hear(100));
  }
  EXPECT_GE(proxy.cut(), rounds(20) - 1);
  expect_bound();
  // Each cut costs one new connection, and no more.
  EXPECT_LE(proxy.accepted(), 2 + proxy.cut());
}

TEST_F(RedisFault, RepliesAreLate) {
  TcpProxy proxy(server_->port());
  open(proxy.url());
  ASSERT_TRUE(load_->hear(200));
  proxy.delay_replies(2 * kTimeout);
  ASSERT_TRUE(load_->miss(200));
  proxy.delay_replies(0ms);
  ASSERT_TRUE(load_->hear(200));
  expect_bound();
}

TEST_F(RedisFault, TheWayThereIsSilent) {
  TcpProxy proxy(server_->port());
  open(proxy.url());
  ASSERT_TRUE(load_->hear(200));
  const int before = proxy.accepted();
  const auto begin = std::chrono::steady_clock::now();
  proxy.hold(true);
  ASSERT_TRUE(load_->miss(500));
  std::this_thread::sleep_for(1'500ms);
  const int made = proxy.accepted() - before;
  const std::chrono::duration<double> length = std::chrono::steady_clock::now() - begin;
  // One that is silent for a second is made anew, by one thread at a time: no storm.
  EXPECT_LE(made, 2 + 2 * length.count());
  proxy.hold(false);
  ASSERT_TRUE(load_->hear(200));
  expect_bound();
}

TEST_F(RedisFault, NoStormWhileConnectionsAreRefused) {
  TcpProxy proxy(server_->port());
  open(proxy.url());
  ASSERT_TRUE(load_->hear(200));
  proxy.refuse(true);
  server_->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  ASSERT_TRUE(load_->miss(100));
  const auto begin = std::chrono::steady_clock::now();
  const int before = proxy.accepted();
  std::this_thread::sleep_for(500ms);
  const int made = proxy.accepted() - before;
  const std::chrono::duration<double, std::milli> length = std::chrono::steady_clock::now() - begin;
  // One attempt an interval of 50 ms ± 20 % for all threads; a late timer may make up for one, and a proxy that was
  // late for some more.
  EXPECT_LE(made, 2 + length.count() / 20);
  proxy.refuse(false);
  ASSERT_TRUE(load_->hear(200));
  expect_bound();
}

TEST_F(RedisFault, NobodyIsBusyWhileTheServerIsDown) {
  open(server_->url());
  ASSERT_TRUE(load_->hear(200));
  (void)load_->stop();
  server_->kill();
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const auto before = cpu();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(cpu() - before, 100ms);
}

TEST_F(RedisFault, OutOfMemory) {
  open(server_->url());
  ASSERT_TRUE(load_->hear(200));
  server_->command({"CONFIG", "SET", "maxmemory", "1"});
  ASSERT_TRUE(load_->miss(200));
  server_->command({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_TRUE(load_->hear(200));
  expect_bound();
}

// With the denial cache: the same bound, and most denials don't reach the server.
TEST_F(RedisFault, CachedDenialsAndARestart) {
  open(server_->url(), OnStoreFailure::deny, true);
  ASSERT_TRUE(load_->hear(2'000));
  server_->kill();
  server_->start();
  ASSERT_TRUE(load_->hear(2'000));
  expect_bound(1);
  EXPECT_GT(load_->metric(metrics::Counter::store_cached_denials), load_->metric(metrics::Counter::store_checks));
}

// Processes that start at once on keys that nobody has seen: each key is charged as one, and expires.
TEST_F(RedisFault, ManyProcessesOnNewKeys) {
  std::vector<std::unique_ptr<Load>> processes;
  for (int i = 0; i < 8; ++i) {
    processes.push_back(
        std::make_unique<Load>(Load::Options{.redis = patient_at(server_->url()), .numbers = kBucket, .threads = 1}));
  }
  expect_bound_of(processes);
  expect_that_all_keys_expire();
}

// The server's clock judges: callers an hour ahead and an hour behind are admitted no more and no less, all together.
TEST_F(RedisFault, CallersClocksPlayNoPart) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_log}) {
    Limit numbers = kBucket;
    numbers.algorithm = algorithm;
    std::vector<std::unique_ptr<Load>> processes;
    for (const std::chrono::hours shift : {1h, 0h, -1h}) {
      processes.push_back(std::make_unique<Load>(
          Load::Options{.redis = patient_at(server_->url()), .numbers = numbers, .threads = 1, .clock_shift = shift}));
    }
    expect_bound_of(processes);
    server_->command({"FLUSHALL"});
  }
}

// While a change of the policy is rolled out, two of three nodes have other numbers: not more than by the larger ones.
TEST_F(RedisFault, OldAndNewNumbersAlternate) {
  Limit larger = kBucket;
  larger.rate = 80;
  larger.burst = 40;
  std::vector<std::unique_ptr<Load>> processes;
  for (const Limit& numbers : {kBucket, larger, kBucket}) {
    processes.push_back(std::make_unique<Load>(Load::Options{.redis = patient_at(server_->url()),
                                                             .numbers = numbers,
                                                             .threads = 1,
                                                             .callers = 4,
                                                             .keys = 2,
                                                             .pause = 100us}));
  }
  for (const auto& process : processes) process->start();
  for (const auto& process : processes) ASSERT_TRUE(process->hear(is_long() ? 100'000 : 3'500));
  for (const auto& process : processes) (void)process->stop();
  std::uint64_t answers = 0;
  for (std::size_t at = 0; at < 2; ++at) {
    std::uint64_t admitted = 0;
    for (const auto& process : processes) {
      admitted += process->counts()[at].shared;
      answers += process->counts()[at].shared + process->counts()[at].denied;
    }
    EXPECT_LE(admitted, sluice::load::bound(larger, processes[0]->began(), SystemClock().now()));
    EXPECT_GE(admitted, kBucket.burst);
  }
  EXPECT_GE(answers, 10'000U);
  expect_that_all_keys_expire();
}

// A key that holds something else fails its own requests alone.
TEST_F(RedisFault, WrongTypeInAKey) {
  server_->command({"RPUSH", "sluice:{user-1}fault/user;tb", "x"});
  open(server_->url());
  ASSERT_TRUE(load_->hear(1'000));
  (void)load_->stop();
  expect_within(load_->check());
  for (std::size_t key = 0; key < load_->counts().size(); ++key) {
    const Load::Count& count = load_->counts()[key];
    EXPECT_EQ(count.failed > 0, key == 1);
    EXPECT_EQ(count.shared == 0, key == 1);
  }
}

// A server that drops what it has least used: each such limit begins anew, no other, and it is told.
TEST_F(RedisFault, EvictionsAreNoticed) {
  const Limit slow{.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1h, .burst = 2};
  load_ = std::make_unique<Load>(
      Load::Options{.redis = patient_at(server_->url()), .numbers = slow, .keys = 3'000, .pause = 0us});
  load_->start();
  ASSERT_TRUE(load_->hear(6'000));
  EXPECT_EQ(load_->metric(metrics::Counter::store_evicted_keys), 0U);
  ::testing::internal::CaptureStderr();
  log::configure(log::Level::warn, log::Format::text);
  server_->command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  server_->command({"CONFIG", "SET", "maxmemory", std::to_string(info("memory", "used_memory") - 50'000)});
  ASSERT_TRUE(load_->hear(10'000));
  (void)load_->stop();
  server_->command({"CONFIG", "SET", "maxmemory", "0"});
  const auto evicted = static_cast<std::uint64_t>(info("stats", "evicted_keys"));
  ASSERT_GT(evicted, 0U);
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (load_->metric(metrics::Counter::store_evicted_keys) < evicted && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(load_->metric(metrics::Counter::store_evicted_keys), evicted);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("evicts keys for want of memory"), std::string::npos);
  const auto report = load_->check({.evictions = evicted});
  EXPECT_TRUE(report.is_within()) << report.excess << " of " << report.allowed;
  EXPECT_GT(report.excess, 0U);
}

// The same number of connections after all that may happen to them, and no memory kept for what is over.
TEST_F(RedisFault, NothingPilesUp) {
  open(server_->url());
  const auto round = [&] {
    server_->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    EXPECT_TRUE(load_->hear(50));
    server_->command({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(load_->hear(50));
  };
  for (int i = 0; i < 5; ++i) round();
  const long before = resident_kb();
  for (int i = 0; i < rounds(40); ++i) round();
  expect_few_connections();
  if (!sluice::test::kAddressSanitizer) {
    EXPECT_LT(resident_kb() - before, 2'000);
  }
  expect_bound();
}

}  // namespace
}  // namespace sluice::testing
