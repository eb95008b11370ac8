// A real Redis that is killed, stopped, paused and cut off under load: what is admitted stays within the bound that
// follows from what happened, and nobody waits for longer than the deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "base/log.h"
#include "tests/fault/load.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/integration/redis_server.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using store::redis::text_of;

// Rounds of a fault: SLUICE_FAULT_ROUNDS, for long runs by hand.
int rounds(int usual) {
  const char* given = std::getenv("SLUICE_FAULT_ROUNDS");
  return given != nullptr ? std::atoi(given) : usual;
}

const Limit kBucket{.algorithm = Algorithm::token_bucket, .rate = 50, .period = 1s, .burst = 20};
// A busy machine answers within this, and the tests never wait for it in vain.
constexpr auto kTimeout = 100ms;

class RedisFault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  void TearDown() override { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url, OnStoreFailure word = OnStoreFailure::deny, bool cache_denials = false) {
    load_ = std::make_unique<Load>(
        Load::Options{.redis = {.url = url, .timeout = kTimeout, .failures = 3, .probe_interval = 50ms},
                      .numbers = kBucket,
                      .on_store_failure = word,
                      .cache_denials = cache_denials});
    load_->start();
  }
  // Ends the load. Every key: no more than the bound, and, as callers ask for all they can get, not much less.
  void expect_bound(std::uint64_t times_new = 1) {
    const auto length = load_->stop();
    for (const Load::Count& count : load_->counts()) {
      EXPECT_LE(count.shared, bound(kBucket, length, times_new));
      EXPECT_GE(count.shared, kBucket.burst);
      EXPECT_GT(count.denied, 0U);
    }
    EXPECT_LT(load_->longest_wait(), 20 * kTimeout);
  }
  void expect_that_all_keys_expire() {
    const auto keys = server_->command({"KEYS", "*"});
    for (std::size_t i = 0; i < keys->elements; ++i) {
      EXPECT_NE(server_->integer({"PTTL", std::string(text_of(*keys->element[i]))}), -1);
    }
  }
  long long info(const std::string& section, const std::string& field) {
    const auto reply = server_->command({"INFO", section});
    const std::string text(text_of(*reply));
    const std::size_t at = text.find(field + ":");
    return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + field.size() + 1);
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
  expect_bound(1 + static_cast<std::uint64_t>(restarts));
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
  open(server_->url(), OnStoreFailure::local);
  ASSERT_TRUE(load_->hear(500));
  const auto down = std::chrono::steady_clock::now();
  server_->kill();
  ASSERT_TRUE(load_->miss(500));
  server_->start();
  ASSERT_TRUE(load_->hear(500));
  const auto outage = std::chrono::steady_clock::now() - down;
  expect_bound(2);
  for (const Load::Count& count : load_->counts()) {
    EXPECT_GE(count.local, kBucket.burst);
    EXPECT_LE(count.local, bound(kBucket, outage));
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

// The breaker is one for all threads: it opens once, and the log says so once.
TEST_F(RedisFault, TheLogTellsEachChangeOnce) {
  open(server_->url());
  ASSERT_TRUE(load_->hear(100));
  log::configure(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
  server_->pause();
  ASSERT_TRUE(load_->miss(500));
  server_->resume();
  std::this_thread::sleep_for(1s);  // shorter failures are told by one line
  ASSERT_TRUE(load_->hear(200));
  (void)load_->stop();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto times = [&](const std::string& text) {
    int found = 0;
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(times("redis: not available"), 1) << log;
  EXPECT_EQ(times("redis: connected"), 1) << log;
  EXPECT_EQ(times("store: failing"), 1) << log;
  EXPECT_EQ(times("store: answers again"), 1) << log;
}

TEST_F(RedisFault, ClientPause) {
  open(server_->url());
  for (int i = 0; i < rounds(2); ++i) {
    ASSERT_TRUE(load_->hear(200));
    server_->command({"CLIENT", "PAUSE", "600"});
    ASSERT_TRUE(load_->miss(100));
    ASSERT_TRUE(load_->hear(200));
  }
  expect_bound();
}

TEST_F(RedisFault, ConnectionsAreKilled) {
  open(server_->url());
  for (int i = 0; i < rounds(20); ++i) {
    server_->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(load_->hear(100));
  }
  // One a thread, and the test's own.
  EXPECT_LE(info("clients", "connected_clients"), 3);
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
  proxy.hold(true);
  ASSERT_TRUE(load_->miss(500));
  std::this_thread::sleep_for(1'500ms);
  // One that is silent for a second is made anew, by one thread at a time: no storm.
  EXPECT_LE(proxy.accepted(), 8);
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
  const int before = proxy.accepted();
  std::this_thread::sleep_for(500ms);
  // One attempt an interval of 50 ms ± 20 % for all threads; a late timer may make up for one.
  EXPECT_LE(proxy.accepted() - before, 14);
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
  expect_bound(2);
  EXPECT_GT(load_->metric(metrics::Counter::store_cached_denials), load_->metric(metrics::Counter::store_checks));
}

// Processes that start at once on keys that nobody has seen: each key is charged as one, and expires.
TEST_F(RedisFault, ManyProcessesOnNewKeys) {
  std::vector<std::unique_ptr<Load>> processes;
  for (int i = 0; i < 8; ++i) {
    processes.push_back(std::make_unique<Load>(
        Load::Options{.redis = {.url = server_->url(), .timeout = 1s}, .numbers = kBucket, .threads = 1}));
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& process : processes) process->start();
  for (const auto& process : processes) ASSERT_TRUE(process->hear(100));
  for (const auto& process : processes) (void)process->stop();
  const auto length = std::chrono::steady_clock::now() - begin;
  for (std::size_t key = 0; key < processes[0]->counts().size(); ++key) {
    std::uint64_t admitted = 0;
    for (const auto& process : processes) admitted += process->counts()[key].shared;
    EXPECT_LE(admitted, bound(kBucket, length));
    EXPECT_GE(admitted, kBucket.burst);
  }
  expect_that_all_keys_expire();
}

}  // namespace
}  // namespace sluice::testing
