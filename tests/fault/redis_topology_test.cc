// Redis behind Sentinel and in a cluster, under load: masters that are killed or replaced, keys that move.
// SLUICE_REDIS_SERVER=valkey-server runs it on Valkey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "base/log.h"
#include "store/redis/key.h"
#include "store/redis/key_slot.h"
#include "tests/fault/load.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/store_asker.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

const Limit kBucket{.algorithm = Algorithm::token_bucket, .rate = 50, .period = 1s, .burst = 20};
constexpr auto kTimeout = 100ms;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void note(const char* what, double value) {
  std::printf("[   NOTE   ] %s: %.3f\n", what, value);
  std::fflush(stdout);
}

// Has this server been asked to run a script?
bool has_run_scripts(RedisServer& server) {
  return !server.info("commandstats", "cmdstat_evalsha").empty() ||
         !server.info("commandstats", "cmdstat_eval").empty();
}

class RedisTopology : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url, std::size_t keys = 4) {
    load_ = std::make_unique<Load>(
        Load::Options{.redis = {.url = url, .timeout = kTimeout, .failures = 3, .probe_interval = 200ms},
                      .numbers = kBucket,
                      .keys = keys});
    load_->start();
    ASSERT_TRUE(load_->hear(500));
  }
  // What a switch has made the servers forget may be had once more: told, and at most a burst a key.
  void expect_bound(std::uint64_t switches) {
    (void)load_->stop();
    const auto exact = load_->check();
    note("tokens admitted beyond what would be without replication's loss", static_cast<double>(exact.excess));
    const auto report = load_->check({.restarts = switches});
    EXPECT_EQ(report.keys_over, 0U) << report.worst.name << ": " << report.worst.admitted << " admitted, bound "
                                    << report.worst.bound;
    EXPECT_LT(load_->longest_wait(), 20 * kTimeout);
  }

  std::unique_ptr<Load> load_;
};

// -- Sentinel ---------------------------------------------------------------------------------------------------------

TEST_F(RedisTopology, SentinelMasterIsKilled) {
  SentinelSet set;
  open(set.url());
  RedisServer& old_master = set.master();
  EXPECT_FALSE(has_run_scripts(set.replica()));
  const auto killed = Clock::now();
  old_master.kill();
  ASSERT_TRUE(load_->miss(50));
  set.await_switch_from(old_master);
  const auto switched = Clock::now();
  ASSERT_TRUE(load_->hear(100));
  note("seconds from the kill to answers of the new master", seconds_since(killed));
  note("seconds from the switch to answers of the new master", seconds_since(switched));
  EXPECT_LT(seconds_since(switched), 1.0);
  ASSERT_TRUE(load_->hear(1'000));
  // It comes back as a master, until it is told that it is none any more.
  old_master.start();
  ASSERT_TRUE(load_->hear(500));
  ASSERT_TRUE(wait_for([&] { return old_master.info("replication", "role") == "slave"; }));
  ASSERT_TRUE(load_->hear(500));
  EXPECT_FALSE(has_run_scripts(old_master));
  expect_bound(1);
}

TEST_F(RedisTopology, SentinelGracefulFailover) {
  SentinelSet set;
  open(set.url());
  RedisServer& old_master = set.master();
  set.fail_over();
  const auto switched = Clock::now();
  ASSERT_TRUE(load_->hear(200));
  note("seconds from the switch to answers of the new master", seconds_since(switched));
  EXPECT_LT(seconds_since(switched), 1.0);
  ASSERT_TRUE(wait_for([&] { return old_master.info("replication", "role") == "slave"; }));
  old_master.command({"CONFIG", "RESETSTAT"});
  ASSERT_TRUE(load_->hear(1'000));
  EXPECT_FALSE(has_run_scripts(old_master));
  expect_bound(1);
}

// A master that is told to be a replica while the connection to it lives.
TEST_F(RedisTopology, SentinelRoleChangesBeneathTheConnection) {
  SentinelSet set;
  open(set.url());
  RedisServer& master = set.master();
  RedisServer& replica = set.replica();
  master.command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())});
  ASSERT_TRUE(load_->miss(50));
  master.command({"CONFIG", "RESETSTAT"});
  ASSERT_TRUE(load_->miss(200));
  EXPECT_FALSE(has_run_scripts(master));
  master.command({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(load_->hear(500));
  expect_bound(1);
}

// -- cluster ----------------------------------------------------------------------------------------------------------

TEST_F(RedisTopology, ClusterReshardFailoverAndKill) {
  ClusterSet cluster;
  open(cluster.url(), 60);
  for (std::size_t i = 3; i < cluster.size(); ++i) EXPECT_FALSE(has_run_scripts(cluster.server(i)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(has_run_scripts(cluster.server(i)));

  // Resharding: nobody fails.
  const std::uint64_t failed = load_->sum(&Load::Count::failed);
  for (std::uint16_t slot = 0; slot < 200; ++slot) cluster.move_slot(slot, 0, 1);
  ASSERT_TRUE(load_->hear(500));
  EXPECT_EQ(load_->sum(&Load::Count::failed), failed);
  note("calls sent elsewhere", static_cast<double>(load_->metric(metrics::Counter::store_redirects)));

  // A planned failover.
  cluster.server(5).command({"CLUSTER", "FAILOVER"});
  ASSERT_TRUE(wait_for([&] { return cluster.is_master(5); }));
  ASSERT_TRUE(load_->hear(2'000));
  note("failed around a planned failover", static_cast<double>(load_->sum(&Load::Count::failed) - failed));

  // A kill: the keys of others are unharmed throughout.
  const auto killed = Clock::now();
  cluster.server(0).kill();
  ASSERT_TRUE(load_->miss(50));
  ASSERT_TRUE(wait_for([&] { return cluster.is_master(3); }));
  const auto promoted = Clock::now();
  note("seconds from the kill to the promotion", seconds_since(killed));
  const std::uint64_t missed = load_->sum(&Load::Count::failed);
  ASSERT_TRUE(load_->hear(3'000));
  std::uint64_t before = 0;
  ASSERT_TRUE(wait_for([&] {
    const std::uint64_t now_failed = load_->sum(&Load::Count::failed);
    const bool is_quiet = now_failed == before;
    before = now_failed;
    std::this_thread::sleep_for(200ms);
    return is_quiet;
  }));
  note("seconds from the promotion until nobody failed any more, 0.4 at least", seconds_since(promoted));
  note("failed after the promotion", static_cast<double>(before - missed));
  EXPECT_LT(seconds_since(promoted), 2.5);
  // Who hung on the killed one failed; keys of others went on.
  std::size_t unharmed = 0;
  for (const Load::Count& count : load_->counts()) unharmed += count.failed == 0 ? 1U : 0U;
  note("keys that never failed, of 60", static_cast<double>(unharmed));
  EXPECT_GE(unharmed, 20U);
  expect_bound(2);
}

// -- several slots in one request ------------------------------------------------------------------------------------

class RedisClusterSteps : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    log::configure(log::Level::error, log::Format::text);
    cluster_ = new ClusterSet;
  }
  static void TearDownTestSuite() { delete cluster_; }

  void SetUp() override { open({}); }
  void open(const store::redis::RedisOptions& more) {
    for (std::size_t i = 0; i < 3; ++i) cluster_->server(i).command({"FLUSHALL"});
    store_.reset();
    store::redis::RedisOptions options = more;
    options.url = cluster_->url();
    options.timeout = 2s;
    auto made = store::redis::RedisStore::create(io_, options, metrics_);
    ASSERT_TRUE(made);
    store_ = *std::move(made);
    ASSERT_TRUE(run_until(io_, [&] {
      HeldCheck check({{.limit = &bucket_, .key = "warm"}});
      ask(io_, *store_, check);
      return check.failure == store::Failure::none;
    }));
  }
  Decision peek(const store::CountedLimit& limit, const std::string& key) {
    HeldCheck check({{.limit = &limit, .key = key, .cost = 0}});
    ask(io_, *store_, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    return check.decisions[0];
  }
  // Until what was given back has come.
  void settle(std::uint64_t given_back) {
    ASSERT_TRUE(run_until(io_, [&] { return metrics_.value(metrics::Counter::store_give_backs) == given_back; }));
  }

  static ClusterSet* cluster_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  store::CountedLimit bucket_{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1h, .burst = 10},
                              .identity = "d/b;tb",
                              .id = 1};
  store::CountedLimit window_{
      .numbers = {.algorithm = Algorithm::fixed_window, .rate = 10, .period = 24h}, .identity = "d/w;fw", .id = 2};
  store::CountedLimit log_{
      .numbers = {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 1h}, .identity = "d/l;sl", .id = 3};
  store::CountedLimit slots_{.numbers = {.algorithm = Algorithm::leaky_bucket, .rate = 1, .period = 1h, .queue = 9},
                             .identity = "d/q;lb",
                             .id = 4};
  store::CountedLimit leases_{
      .numbers = {.algorithm = Algorithm::concurrency, .rate = 10, .ttl = 1h}, .identity = "d/c;cc", .id = 5};
  std::unique_ptr<store::redis::RedisStore> store_;
};
ClusterSet* RedisClusterSteps::cluster_ = nullptr;

TEST_F(RedisClusterSteps, AllOrNothingOverSlots) {
  HeldCheck check({{.limit = &bucket_, .key = "a", .cost = 3},
                   {.limit = &window_, .key = "b", .cost = 4},
                   {.limit = &log_, .key = "c", .cost = 5},
                   {.limit = &leases_, .key = "d", .cost = 1}});
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
  EXPECT_EQ(check.decisions[3].remaining, 9U);
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);  // b has 2 left, c none
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[0].remaining, 4U);  // as it is: nothing was taken
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_FALSE(check.decisions[2].allowed);
  EXPECT_EQ(check.decisions[3].remaining, 8U);
  settle(2);
  EXPECT_EQ(peek(bucket_, "a").remaining, 4U);
  EXPECT_EQ(peek(window_, "b").remaining, 2U);
  EXPECT_EQ(peek(log_, "c").remaining, 0U);
  EXPECT_EQ(peek(leases_, "d").remaining, 8U);
}

TEST_F(RedisClusterSteps, SlotsOfALeakyBucketAreTakenLast) {
  HeldCheck check({{.limit = &slots_, .key = "a", .cost = 3}, {.limit = &bucket_, .key = "b", .cost = 6}});
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);
  EXPECT_FALSE(check.admitted);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_EQ(peek(slots_, "a").remaining, 7U);
}

TEST_F(RedisClusterSteps, ShadowAndQuotaOverSlots) {
  const auto quotas = [&](std::uint64_t cost) {
    return std::vector<store::Charge>{
        {.limit = &bucket_, .key = "a", .cost = cost, .enforcement = store::Enforcement::quota},
        {.limit = &bucket_, .key = "b", .cost = 2 * cost, .enforcement = store::Enforcement::quota},
        {.limit = &window_, .key = "c", .cost = 6, .enforcement = store::Enforcement::shadow}};
  };
  HeldCheck check(quotas(4));
  ask(io_, *store_, check);
  EXPECT_TRUE(check.admitted);
  ask(io_, *store_, check);  // b has 2 left, c 4: one quota fits, and a shadow never denies
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(peek(bucket_, "a").remaining, 2U);
  EXPECT_EQ(peek(bucket_, "b").remaining, 2U);
  HeldCheck more({{.limit = &bucket_, .key = "a", .cost = 3, .enforcement = store::Enforcement::quota},
                  {.limit = &bucket_, .key = "b", .cost = 3, .enforcement = store::Enforcement::quota},
                  {.limit = &window_, .key = "c", .cost = 1, .enforcement = store::Enforcement::shadow}});
  ask(io_, *store_, more);
  EXPECT_FALSE(more.admitted);
  settle(1);
  EXPECT_EQ(peek(window_, "c").remaining, 4U);
}

// Row 59: a policy with two keys a request, many clients, a cluster.
TEST_F(RedisClusterSteps, public_report_59) {
  std::vector<std::unique_ptr<HeldCheck>> checks;
  std::vector<std::string> keys;
  for (int i = 0; i < 1'000; ++i) keys.push_back("client" + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    checks.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{
          {.limit = &bucket_, .key = keys[i], .cost = 5}, {.limit = &window_, .key = keys[i], .cost = 5}}));
      start(*store_, *checks.back());
    }
    ASSERT_TRUE(
        run_until(io_, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
    for (const auto& check : checks) {
      EXPECT_EQ(check->failure, store::Failure::none);
      EXPECT_EQ(check->admitted, round < 2);
    }
  }
  EXPECT_EQ(metrics_.value(metrics::Counter::store_splits), 0U);  // one user's limits share a slot
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_GT(cluster_->server(i).integer({"DBSIZE"}), 500);
    EXPECT_TRUE(cluster_->server(i).info("errorstats", "errorstat_CROSSSLOT").empty());
  }
  for (std::size_t i = 3; i < 6; ++i) EXPECT_FALSE(has_run_scripts(cluster_->server(i)));
}

TEST_F(RedisClusterSteps, GroupsShareCalls) {
  open({.cluster_groups = 8});
  std::vector<std::unique_ptr<HeldCheck>> checks;
  std::vector<std::string> keys;
  for (int i = 0; i < 512; ++i) keys.push_back("client" + std::to_string(i));
  const std::uint64_t before = metrics_.value(metrics::Counter::store_calls);
  for (const std::string& key : keys) {
    checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{{.limit = &bucket_, .key = key}}));
    start(*store_, *checks.back());
  }
  ASSERT_TRUE(
      run_until(io_, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
  for (const auto& check : checks) EXPECT_EQ(check->failure, store::Failure::none);
  EXPECT_LE(metrics_.value(metrics::Counter::store_calls) - before, 24U);
}

// A slot half moved: ASK for what has gone, TRYAGAIN for what is torn apart, and then MOVED.
TEST_F(RedisClusterSteps, ASlotThatMoves) {
  const std::uint16_t slot = store::redis::key_slot("mover");
  const std::size_t from = cluster_->owner_of("mover");
  const std::size_t to = from == 0 ? 1 : 0;
  const std::uint64_t failures = metrics_.value(metrics::Counter::store_failures);
  HeldCheck one({{.limit = &bucket_, .key = "mover", .cost = 1}});
  HeldCheck two({{.limit = &bucket_, .key = "mover", .cost = 1}, {.limit = &window_, .key = "mover", .cost = 1}});
  ask(io_, *store_, two);
  cluster_->begin_move(slot, from, to);
  cluster_->server(from).command(
      {"MIGRATE", "127.0.0.1", std::to_string(cluster_->server(to).port()), "sluice:{mover}d/b;tb", "0", "2000"});
  ask(io_, *store_, one);
  EXPECT_EQ(one.failure, store::Failure::none);
  EXPECT_EQ(one.decisions[0].remaining, 8U);
  start(*store_, two);
  (void)run_until(io_, [&, begin = Clock::now()] { return Clock::now() - begin > 50ms; });
  EXPECT_FALSE(two.done);  // tried again and again
  cluster_->end_move(slot, from, to);
  ASSERT_TRUE(run_until(io_, [&] { return two.done; }));
  EXPECT_EQ(two.failure, store::Failure::none);
  EXPECT_EQ(two.decisions[0].remaining, 7U);
  ask(io_, *store_, one);
  EXPECT_EQ(one.decisions[0].remaining, 6U);
  EXPECT_GT(metrics_.value(metrics::Counter::store_redirects), 3U);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), failures);
  cluster_->move_slot(slot, to, from);
}

// -- proxies and replicas ---------------------------------------------------------------------------------------------

// A proxy knows neither SCRIPT LOAD nor INFO, and may keep two hash tags at two servers.
TEST(RedisProxyMode, SendsScriptsOfOneTagAndNothingElse) {
  RedisServer server;
  boost::asio::io_context io;
  metrics::Shard metrics;
  server.command({"SCRIPT", "FLUSH"});
  server.command({"CONFIG", "RESETSTAT"});
  auto store = store::redis::RedisStore::create(io, {.url = server.url(), .timeout = 2s, .proxy = true}, metrics);
  ASSERT_TRUE(store);
  store::CountedLimit limit{.numbers = kBucket, .identity = "d/b;tb", .id = 1};
  HeldCheck check({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "b"}});
  for (int i = 0; i < 3; ++i) {
    ask(io, **store, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    EXPECT_TRUE(check.admitted);
  }
  EXPECT_EQ(metrics.value(metrics::Counter::store_splits), 3U);
  EXPECT_EQ(metrics.value(metrics::Counter::store_calls), 6U);
  for (const char* command : {"script|load", "info", "select", "hello", "client", "role", "wait", "ping"}) {
    if (std::string_view(command) != "info") {
      EXPECT_EQ(server.info("commandstats", std::string("cmdstat_") + command), "") << command;
    }
  }
}

TEST(RedisWaitReplicas, AnswersWhenAReplicaHasIt) {
  RedisServer master({"--repl-diskless-sync-delay", "0"});
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
  // Only a write that is confirmed shows that the replica has loaded what it was sent: WAIT without one counts a replica that still does.
  ASSERT_TRUE(wait_for([&] {
    master.command({"SET", "confirmed", "1"});
    return master.integer({"WAIT", "1", "50"}) == 1;
  }));
  master.command({"DEL", "confirmed"});
  boost::asio::io_context io;
  metrics::Shard metrics;
  auto store = store::redis::RedisStore::create(
      io, {.url = master.url(), .timeout = 3s, .wait_replicas = 1, .wait_timeout = 1s}, metrics);
  ASSERT_TRUE(store);
  store::CountedLimit limit{.numbers = kBucket, .identity = "d/b;tb", .id = 1};
  HeldCheck check({{.limit = &limit, .key = "a", .cost = 5}});
  ask(io, **store, check);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(replica.integer({"DBSIZE"}), 1);
  EXPECT_EQ(metrics.value(metrics::Counter::store_unconfirmed), 0U);
  // Too late is told by a counter; the charge stands, and is made once.
  replica.pause();
  ask(io, **store, check);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(metrics.value(metrics::Counter::store_unconfirmed), 1U);
  replica.resume();
  ask(io, **store, check);
  EXPECT_LE(check.decisions[0].remaining, 20U);
  EXPECT_EQ(master.info("commandstats", "cmdstat_evalsha").substr(0, 8), "calls=3,");
}

}  // namespace
}  // namespace sluice::testing
