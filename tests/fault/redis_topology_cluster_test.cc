// A cluster under load: slots that move, a planned failover, a master that is killed.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/fault/redis_topology.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class RedisCluster : public RedisTopology {
 protected:
  // A busy machine answers within this: of keys that nothing happens to, no check may fail.
  RedisCluster() { timeout_ = 3s; }

  // Until nobody fails any more for a while. How many have failed.
  std::uint64_t await_quiet() {
    std::uint64_t before = 0;
    EXPECT_TRUE(wait_for([&] {
      const std::uint64_t now_failed = load().sum(&Load::Count::failed);
      const bool is_quiet = now_failed == before;
      before = now_failed;
      std::this_thread::sleep_for(200ms);
      return is_quiet;
    }));
    return before;
  }

  void reshard_fail_over_and_kill(std::uint16_t slots) {
    ClusterSet cluster(servers(kClusterNodes));
    keep_log();
    open(cluster.url(), 60);
    expect_untouched_replicas(cluster);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_GT(cluster.server(i).calls("evalsha"), 0U);

    // Resharding: nobody fails.
    const std::uint64_t failed = load().sum(&Load::Count::failed);
    for (std::uint16_t slot = 0; slot < slots; ++slot) cluster.move_slot(slot, 0, 1);
    ASSERT_TRUE(load().hear(500));
    EXPECT_EQ(load().sum(&Load::Count::failed), failed);
    note("calls sent elsewhere", static_cast<double>(load().metric(metrics::Counter::store_redirects)));

    // A planned failover.
    cluster.server(5).command({"CLUSTER", "FAILOVER"});
    ASSERT_TRUE(wait_for([&] { return cluster.is_master(5); }));
    await_replica(cluster.server(2));
    ASSERT_TRUE(load().hear(2'000));
    note("failed around a planned failover", static_cast<double>(load().sum(&Load::Count::failed) - failed));

    // A kill: the keys of others are unharmed throughout.
    const auto killed = Clock::now();
    cluster.server(0).kill();
    ASSERT_TRUE(load().miss(50));
    ASSERT_TRUE(wait_for([&] { return cluster.is_master(3); }));
    const auto promoted = Clock::now();
    note("seconds from the kill to the promotion", seconds_since(killed));
    const std::uint64_t missed = load().sum(&Load::Count::failed);
    ASSERT_TRUE(load().hear(3'000));
    const std::uint64_t in_all = await_quiet();
    note("seconds from the promotion until nobody failed any more, 0.4 at least", seconds_since(promoted));
    note("failed after the promotion", static_cast<double>(in_all - missed));
    if (is_long()) {
      EXPECT_LT(seconds_since(promoted), 2.5);
    }
    // Who hung on the killed one failed; keys of others went on.
    std::size_t unharmed = 0;
    for (const Load::Count& count : load().counts()) unharmed += count.failed == 0 ? 1U : 0U;
    note("keys that never failed, of 60", static_cast<double>(unharmed));
    EXPECT_GE(unharmed, 20U);
    expect_untouched_replicas(cluster);
    expect_bound(2);
    // The log says which node was out, and that others have its keys, and does not say so again and again.
    const std::string log = take_log();
    const std::string killed_one = " server=127.0.0.1:" + std::to_string(cluster.server(0).port());
    EXPECT_GE(times(log, "store: failing, limits answer by on_store_failure" + killed_one), 1U) << log;
    EXPECT_LE(failures_told(log), 2U) << log;
    EXPECT_GE(times(log, "redis: not available" + killed_one), 1U) << log;
    EXPECT_EQ(times(log, "store: others serve its keys now" + killed_one), 1U) << log;
  }
};

TEST_F(RedisCluster, ReshardFailoverAndKill) { reshard_fail_over_and_kill(200); }

TEST_F(RedisCluster, ReshardFailoverAndKillOverTlsWithTheLeastRights) {
  secure();
  reshard_fail_over_and_kill(50);
}

}  // namespace
}  // namespace sluice::testing
