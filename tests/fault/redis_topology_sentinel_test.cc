// A master behind Sentinel, under load: killed, replaced, told to be a replica.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/fault/redis_topology.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class RedisSentinel : public RedisTopology {
 protected:
  static std::string name_of(const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); }
  // The log of a switch names both masters, once, however many threads notice it.
  static void expect_both_masters(const std::string& log, const RedisServer& before, const RedisServer& after) {
    EXPECT_EQ(times(log, "redis: found the master master=mymaster server=" + name_of(before) + "\n"), 1U) << log;
    EXPECT_EQ(times(log, "redis: the master has changed master=mymaster server=" + name_of(after) +
                             " before=" + name_of(before) + "\n"),
              1U)
        << log;
    EXPECT_EQ(times(log, "redis: found") + times(log, "redis: the master has changed"), 2U) << log;
  }

  void fail_over_gracefully() {
    SentinelSet set(servers(kBehindSentinel));
    keep_log();
    open(set.url());
    RedisServer& old_master = set.master();
    RedisServer& new_master = set.replica();
    set.fail_over();
    const auto switched = Clock::now();
    ASSERT_TRUE(load().hear(200));
    note("seconds from the switch to answers of the new master", seconds_since(switched));
    if (is_long()) {
      EXPECT_LT(seconds_since(switched), 1.0);
    }
    await_replica(old_master);
    ASSERT_TRUE(load().hear(1'000));
    expect_untouched_replicas(set);
    // What is forgotten, and what both masters admit while not all callers have switched: less than a burst each.
    expect_bound(2);
    expect_both_masters(take_log(), old_master, new_master);
  }
};

TEST_F(RedisSentinel, MasterIsKilled) {
  SentinelSet set(servers(kBehindSentinel));
  keep_log();
  open(set.url());
  RedisServer& old_master = set.master();
  RedisServer& new_master = set.replica();
  expect_untouched_replicas(set);
  const auto killed = Clock::now();
  old_master.kill();
  ASSERT_TRUE(load().miss(50));
  set.await_switch_from(old_master);
  const auto switched = Clock::now();
  ASSERT_TRUE(load().hear(100));
  note("seconds from the kill to answers of the new master", seconds_since(killed));
  note("seconds from the switch to answers of the new master", seconds_since(switched));
  if (is_long()) {
    EXPECT_LT(seconds_since(switched), 1.0);
  }
  ASSERT_TRUE(load().hear(1'000));
  // It comes back as a master, until it is told that it is none any more.
  set.await_agreement_against(old_master);
  set.be_patient();
  old_master.start();
  ASSERT_TRUE(load().hear(500));
  ASSERT_TRUE(wait_for([&] { return old_master.info("replication", "role") == "slave"; }));
  ASSERT_TRUE(load().hear(500));
  expect_untouched_replicas(set);
  expect_bound(1);
  const std::string log = take_log();
  expect_both_masters(log, old_master, new_master);
  EXPECT_GE(times(log, "store: failing"), 1U) << log;
  EXPECT_LE(failures_told(log), 1U) << log;
  EXPECT_GE(times(log, "store: answers again"), 1U) << log;
}

TEST_F(RedisSentinel, GracefulFailover) { fail_over_gracefully(); }

TEST_F(RedisSentinel, GracefulFailoverOverTlsWithTheLeastRights) {
  secure();
  fail_over_gracefully();
}

// A master that is told to be a replica while the connection to it lives.
TEST_F(RedisSentinel, RoleChangesBeneathTheConnection) {
  SentinelSet set(servers(kBehindSentinel));
  open(set.url());
  RedisServer& master = set.master();
  RedisServer& replica = set.replica();
  master.command({"REPLICAOF", "127.0.0.1", std::to_string(replica.port())});
  ASSERT_TRUE(load().miss(50));
  forget_calls(master);
  ASSERT_TRUE(load().miss(200));
  expect_untouched_replicas(set);
  master.command({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(load().hear(500));
  expect_bound(1);
}

}  // namespace
}  // namespace sluice::testing
