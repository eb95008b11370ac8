// wait_replicas: an answer comes when replicas have the charge, or is counted as unconfirmed.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <string>

#include "tests/fault/redis_topology.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

class RedisWaitReplicas : public RedisTopology {
 protected:
  std::unique_ptr<store::redis::RedisStore> open_at(const std::string& url, std::chrono::milliseconds patience) {
    store::redis::RedisOptions options = at(url);
    options.timeout = 30s;
    options.wait_replicas = 1;
    options.wait_timeout = patience;
    auto made = store::redis::RedisStore::create(io_, options, metrics_);
    EXPECT_TRUE(made);
    return *std::move(made);
  }

  void answers_when_a_replica_has_it() {
    SetOptions set = servers(kOneServer);
    set.options.insert(set.options.end(), {"--repl-diskless-sync-delay", "0"});
    if (set.setup.over_tls) {
      set.options.insert(set.options.end(), {"--tls-replication", "yes", "--masterauth", set.setup.password});
    }
    RedisServer master(set.options, set.config, set.setup);
    set.options.insert(set.options.end(), {"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
    RedisServer replica(set.options, set.config, set.setup);
    // Only a write that is confirmed shows that the replica has loaded what it was sent: WAIT without one counts a
    // replica that still does.
    ASSERT_TRUE(wait_for([&] {
      master.command({"SET", "confirmed", "1"});
      return master.integer({"WAIT", "1", "50"}) == 1;
    }));
    master.command({"DEL", "confirmed"});
    const auto patient = open_at(master.url(), 20s);
    // It stays for as long as the test may take.
    bucket_.period = 24h;
    store::CountedLimit limit{.numbers = bucket_, .identity = "d/b;tb", .id = 1};
    HeldCheck check({{.limit = &limit, .key = "a", .cost = 5}});
    ask(io_, *patient, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    EXPECT_TRUE(check.admitted);
    EXPECT_EQ(replica.integer({"DBSIZE"}), 1);
    EXPECT_EQ(metrics_.value(metrics::Counter::store_unconfirmed), 0U);
    // Too late is told by a counter; the charge stands, and is made once.
    replica.pause();
    const auto hasty = open_at(master.url(), 1'500ms);
    ASSERT_TRUE(run_until(io_, [&] { return hasty->ready(); }));
    const auto asked = std::chrono::steady_clock::now();
    ask(io_, *hasty, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    EXPECT_TRUE(check.admitted);
    EXPECT_EQ(metrics_.value(metrics::Counter::store_unconfirmed), 1U);
    EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), 0U);
    EXPECT_GE(std::chrono::steady_clock::now() - asked, 1'400ms);  // not given up as a connection that is stuck
    replica.resume();
    ask(io_, *patient, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    EXPECT_EQ(metrics_.value(metrics::Counter::store_unconfirmed), 1U);
    EXPECT_EQ(check.decisions[0].remaining, bucket_.burst - 3 * 5);  // each was charged once
    EXPECT_EQ(replica.calls("evalsha") + replica.calls("eval") + replica.calls("get"), 0U);
  }

 private:
  boost::asio::io_context io_;
  metrics::Shard metrics_;
};

TEST_F(RedisWaitReplicas, AnswersWhenAReplicaHasIt) { answers_when_a_replica_has_it(); }

TEST_F(RedisWaitReplicas, AnswersWhenAReplicaHasItOverTlsWithTheLeastRights) {
  secure();
  answers_when_a_replica_has_it();
}

}  // namespace
}  // namespace sluice::testing
