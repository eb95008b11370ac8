// Several limits of one request, in memory, on a real Redis and in a real cluster: all are charged or none.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::kPatience;
using sluice::test::TempFolder;
using sluice::testing::ClusterSet;
using sluice::testing::RedisServer;

// 10000, 50 and 100 a second with their bursts, so slow that nothing comes back while the test runs.
constexpr std::string_view kPolicy = R"(
domain: edge
descriptors:
  - key: generic_key
    value: global
    rate_limit: { name: Global, period: 366d, requests_per_unit: 10000, algorithm: token_bucket, burst: 15000 }
  - key: address
    rate_limit: { name: PerAddress, period: 366d, requests_per_unit: 50, algorithm: token_bucket, burst: 100 }
  - key: user
    rate_limit: { name: PerUser, period: 366d, requests_per_unit: 100, algorithm: token_bucket, burst: 200 }
requests:
  rate_limits:
    - actions: [ { generic_key: { descriptor_value: global } } ]
    - actions: [ { request_headers: { header_name: x-address, descriptor_key: address } } ]
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
)";

// The counters of one request lie on several masters of the cluster.
void expect_nothing_taken_in_vain(const std::string& redis_url) {
  const TempFolder folder;
  std::vector<std::string> flags;
  if (!redis_url.empty()) {
    flags = {"--store.redis.url", redis_url, "--store.redis.timeout", "5s", "--store.redis.denial_cache_max", "0s"};
  }
  const Daemon daemon(folder.write("p.yaml", kPolicy), flags);
  ASSERT_TRUE(daemon.ready());
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (HttpClient(daemon.http()).get("/healthcheck").status != 200 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(5ms);
  }

  HttpClient client(daemon.http());
  std::string last;
  const auto ask = [&](int times, const std::string& fields) {
    std::string wire;
    for (int i = 0; i < times; ++i) wire += "GET /v1/authorize HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
    client.send(wire);
    int allowed = 0;
    for (int i = 0; i < times; ++i) {
      const HttpAnswer answer = client.receive();
      allowed += answer.status == 200 ? 1 : 0;
      last = answer.fields.at("ratelimit");
    }
    return allowed;
  };
  const auto says = [&](std::string_view text) { return last.find(text) != std::string::npos; };
  // Of a request that is denied. In a cluster what was taken of one limit, before another refused, is given back a
  // moment later.
  const auto expect_left = [&](const std::string& fields, std::string_view global) {
    while (!says(global) && std::chrono::steady_clock::now() < end) EXPECT_EQ(ask(1, fields), 0);
    EXPECT_TRUE(says(global)) << last;
  };
  EXPECT_EQ(ask(150, "X-Address: 1\r\nX-User: u\r\n"), 100);
  expect_left("X-Address: 1\r\nX-User: u\r\n", R"("Global";r=14900)");
  expect_left("X-Address: 1\r\nX-User: u\r\n", R"("PerUser";r=100)");
  EXPECT_EQ(ask(150, "X-Address: 2\r\nX-User: u\r\n"), 100);
  EXPECT_EQ(ask(50, "X-Address: 3\r\nX-User: u\r\n"), 0);
  expect_left("X-Address: 3\r\nX-User: u\r\n", R"("Global";r=14800)");
  expect_left("X-Address: 3\r\nX-User: u\r\n", R"("PerAddress";r=100)");
}

TEST(Dimensions, a_request_over_its_address_takes_nothing_from_all_in_memory) { expect_nothing_taken_in_vain({}); }

TEST(Dimensions, a_request_over_its_address_takes_nothing_from_all_on_redis) {
  const RedisServer redis;
  expect_nothing_taken_in_vain(redis.url());
}

TEST(Dimensions, a_request_over_its_address_takes_nothing_from_all_in_a_cluster) {
  const ClusterSet cluster;
  expect_nothing_taken_in_vain(cluster.url());
}

}  // namespace
