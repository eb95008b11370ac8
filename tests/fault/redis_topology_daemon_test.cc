// A daemon that is killed between what it has reserved in one slot of a cluster and what it would have given back.
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>

#include "tests/fault/redis_topology.h"
#include "tests/fault/tcp_proxy.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: slow
    rate_limit: { period: 366d, requests_per_unit: 10, algorithm: token_bucket }
  - key: quick
    rate_limit: { period: 2s, requests_per_unit: 10, algorithm: token_bucket }
  - key: window
    rate_limit: { period: 2s, requests_per_unit: 10, algorithm: fixed_window, align: first_hit }
  - key: team
    rate_limit: { period: 366d, requests_per_unit: 1, algorithm: token_bucket }
)";

class RedisDaemon : public RedisTopology {
 protected:
  // The next name of which a master holds the keys.
  std::string name_at(std::size_t master) {
    for (;;) {
      std::string name = "name" + std::to_string(++names_);
      if (cluster_.owner_of(name) == master) return name;
    }
  }
  // What is left, as a store sees it.
  std::uint64_t remaining(const store::CountedLimit& limit, const std::string& key) {
    if (store_ == nullptr) {
      auto made = store::redis::RedisStore::create(io_, {.url = cluster_.url(), .timeout = 9s}, metrics_);
      EXPECT_TRUE(made);
      store_ = *std::move(made);
    }
    HeldCheck check({{.limit = &limit, .key = key, .cost = 0}});
    do {
      (void)run_until(io_, [&] { return store_->ready(); });
      ask(io_, *store_, check);
    } while (check.failure != store::Failure::none);
    return check.decisions[0].remaining;
  }

  ClusterSet cluster_;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  std::unique_ptr<store::redis::RedisStore> store_;
  int names_ = 0;
};

TEST_F(RedisDaemon, KilledBeforeItGivesBackLosesTheCostUntilItIsRefilled) {
  // Everybody reaches the second master through a proxy.
  TcpProxy proxy(cluster_.server(1).port());
  cluster_.server(1).command({"CONFIG", "SET", "cluster-announce-port", std::to_string(proxy.port())});
  const std::string address = "127.0.0.1:" + std::to_string(proxy.port()) + "@";
  ASSERT_TRUE(wait_for([&] {
    for (const std::size_t asked : {0U, 3U}) {
      const auto nodes = cluster_.server(asked).command({"CLUSTER", "NODES"});
      if (store::redis::text_of(*nodes).find(address) == std::string_view::npos) return false;
    }
    return true;
  }));

  const test::TempFolder folder;
  const std::string policy = folder.write("p.yaml", kPolicy);
  test::Daemon daemon(policy, {"--store.redis.url", cluster_.url(), "--store.redis.timeout", "10s"});
  ASSERT_TRUE(daemon.ready());
  const std::string user = name_at(0);
  const std::string team = name_at(1);
  const auto body = [](const std::string& descriptors) {
    return R"({"domain":"shop","descriptors":[)" + descriptors + "]}";
  };
  const auto one = [](const std::string& key, const std::string& value, const char* cost = "3") {
    return R"({"entries":{")" + key + R"(":")" + value + R"("},"cost":)" + cost + "}";
  };
  // The team has spent its only token.
  ASSERT_TRUE(wait_for([&] {
    const auto answer = test::HttpClient(daemon.http()).post("/v1/check", body(one("team", team, "1")));
    return answer.status == 429 && answer.body.find(R"("source":"redis")") != std::string::npos;
  }));
  EXPECT_GT(proxy.accepted(), 0);

  // Reserved at the first master; the refusal of the second does not come through.
  proxy.delay_replies(10min);
  const std::uint64_t asked = cluster_.server(1).calls("evalsha") + cluster_.server(1).calls("eval");
  const test::HttpClient client(daemon.http());
  client.send(test::post_request("/v1/check", body(one("slow", user) + "," + one("quick", user) + "," +
                                                   one("window", user) + "," + one("team", team, "1"))));
  ASSERT_TRUE(wait_for([&] {
    return cluster_.server(0).integer({"EXISTS", "sluice:{" + user + "}shop/slow;tb"}) == 1 &&
           cluster_.server(1).calls("evalsha") + cluster_.server(1).calls("eval") > asked;
  }));
  daemon.process().signal(SIGKILL);
  EXPECT_EQ(daemon.process().wait(), 128 + SIGKILL);
  proxy.delay_replies(0ms);

  const store::CountedLimit slow{
      .numbers = {.algorithm = Algorithm::token_bucket, .rate = 10, .period = 366 * 24h, .burst = 10},
      .identity = "shop/slow;tb",
      .id = 1};
  const store::CountedLimit quick{
      .numbers = {.algorithm = Algorithm::token_bucket, .rate = 10, .period = 2s, .burst = 10},
      .identity = "shop/quick;tb",
      .id = 2};
  const store::CountedLimit window{
      .numbers = {.algorithm = Algorithm::fixed_window, .rate = 10, .period = 2s, .align = Align::first_hit},
      .identity = "shop/window;fw",
      .id = 3};
  EXPECT_EQ(remaining(slow, user), 7U);  // the cost, and no more
  EXPECT_GE(remaining(quick, user), 7U);
  EXPECT_GE(remaining(window, user), 7U);
  EXPECT_TRUE(wait_for([&] { return remaining(quick, user) == 10 && remaining(window, user) == 10; }));
  EXPECT_EQ(remaining(slow, user), 7U);
  expect_untouched_replicas(cluster_);
}

}  // namespace
}  // namespace sluice::testing
