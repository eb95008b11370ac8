// Behind a proxy that knows few commands and keeps hash tags at two servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/redis/key_slot.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/server.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using store::redis::ScriptStyle;

constexpr const char* kProgram = "/usr/sbin/nutcracker";

/// twemproxy before two servers.
class Twemproxy {
 public:
  explicit Twemproxy(const std::vector<const RedisServer*>& servers) {
    const std::string port = std::to_string(port_);
    std::string config = "limits:\n  listen: 127.0.0.1:" + port +
                         "\n  redis: true\n  hash: murmur\n  distribution: ketama\n  hash_tag: \"{}\"\n"
                         "  auto_eject_hosts: false\n  timeout: 20000\n  servers:\n";
    for (const RedisServer* server : servers) {
      config += "   - 127.0.0.1:" + std::to_string(server->port()) + ":1\n";
    }
    folder_.write("nutcracker.yml", config);
    const std::filesystem::path log = folder_.path() / "log";
    process_.start({kProgram, "-c", (folder_.path() / "nutcracker.yml").string(), "-s", std::to_string(free_tcp_port()),
                    "-a", "127.0.0.1"},
                   {}, log);
    wait_until_ready(process_, "twemproxy", log, [this] { return answers_tcp(port_); });
  }
  [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  const std::uint16_t port_ = free_tcp_port();
  const ServerFolder folder_{"twemproxy"};
  ServerProcess process_;
};

class RedisBehindTwemproxy : public ::testing::TestWithParam<ScriptStyle> {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }
  void SetUp() override {
    if (std::filesystem::exists(kProgram)) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << kProgram << " is missing: tools/setup test";
    GTEST_SKIP() << kProgram << " is missing: tools/setup test";
  }
};

// A thousand clients with two limits each, and some requests of two clients.
TEST_P(RedisBehindTwemproxy, KeysOfARequestLieTogetherAndNothingElseIsSent) {
  RedisServer one;
  RedisServer two;
  const Twemproxy proxy({&one, &two});
  for (RedisServer* server : {&one, &two}) server->command({"CONFIG", "RESETSTAT"});
  boost::asio::io_context io;
  metrics::Shard metrics;
  auto made = store::redis::RedisStore::create(
      io, {.url = proxy.url(), .timeout = 9s, .script_style = GetParam(), .proxy = true}, metrics);
  ASSERT_TRUE(made);
  store::Store& store = **made;
  const store::CountedLimit bucket{
      .numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 24h, .burst = 10},
      .identity = "d/b;tb",
      .id = 1};
  const store::CountedLimit window{
      .numbers = {.algorithm = Algorithm::sliding_log, .rate = 10, .period = 24h}, .identity = "d/l;sl", .id = 2};
  std::vector<std::string> names;
  for (int i = 0; i < 1'000; ++i) names.push_back("client" + std::to_string(i));

  for (std::uint64_t round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<HeldCheck>> checks;
    for (const std::string& name : names) {
      checks.push_back(std::make_unique<HeldCheck>(std::vector<store::Charge>{
          {.limit = &bucket, .key = name, .cost = 4}, {.limit = &window, .key = name, .cost = 4}}));
      start(store, *checks.back());
    }
    ASSERT_TRUE(
        run_until(io, [&] { return std::ranges::all_of(checks, [](const auto& check) { return check->done; }); }));
    for (const auto& check : checks) {
      ASSERT_EQ(check->failure, store::Failure::none);
      ASSERT_EQ(check->admitted, round < 2);
      ASSERT_EQ(check->decisions[0].remaining, round == 0 ? 6U : 2U);
    }
  }
  // Of two clients: in steps, and what one refuses is given back to the other.
  for (std::size_t i = 0; i < 100; i += 2) {
    HeldCheck check(
        {{.limit = &bucket, .key = names[i], .cost = 2}, {.limit = &bucket, .key = names[i + 1], .cost = 3}});
    ask(io, store, check);
    EXPECT_EQ(check.failure, store::Failure::none);
    EXPECT_FALSE(check.admitted);
  }
  EXPECT_EQ(metrics.value(metrics::Counter::store_splits), 50U);
  ASSERT_TRUE(run_until(io, [&] { return metrics.value(metrics::Counter::store_give_backs) == 50; }));

  // Scripts, and what they call.
  std::set<std::string> sent;
  for (RedisServer* server : {&one, &two}) sent.merge(server->commands());
  EXPECT_TRUE(sent.contains("evalsha"));
  EXPECT_TRUE(sent.contains("eval"));  // the first of all
  for (const char* within : {"evalsha", "eval", "time", "get", "set", "setrange", "del", "pexpire", "zadd", "zrange",
                             "zrangebyscore", "zcard", "zrank", "zrem", "config|resetstat"}) {
    sent.erase(within);
  }
  EXPECT_EQ(sent, std::set<std::string>()) << "of these a proxy knows not all";

  // Each key is at one server, both of a client at the same.
  std::map<std::string, std::set<RedisServer*>> where;
  long long keys = 0;
  for (RedisServer* server : {&one, &two}) {
    const auto all = server->command({"KEYS", "*"});
    EXPECT_GT(all->elements, 200U);
    keys += static_cast<long long>(all->elements);
    for (std::size_t i = 0; i < all->elements; ++i) {
      where[std::string(store::redis::hashed_part(store::redis::text_of(*all->element[i])))].insert(server);
    }
  }
  EXPECT_EQ(keys, 2'000);
  EXPECT_EQ(where.size(), 1'000U);
  for (const auto& [tag, servers] : where) EXPECT_EQ(servers.size(), 1U) << tag;
}

INSTANTIATE_TEST_SUITE_P(Styles, RedisBehindTwemproxy, ::testing::Values(ScriptStyle::fast, ScriptStyle::literal),
                         [](const auto& style) { return style.param == ScriptStyle::fast ? "Fast" : "Literal"; });

}  // namespace
}  // namespace sluice::testing
