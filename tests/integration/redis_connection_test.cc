// How a store keeps its connection to a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "base/log.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::HeldCheck;
using testing::RedisServer;
using testing::run_until;

class RedisConnection : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url, std::chrono::nanoseconds max_age = 0ns) {
    auto created = RedisStore::create(io_, {.url = url, .timeout = 5s, .connection_max_age = max_age}, metrics_);
    ASSERT_TRUE(created);
    store_ = *std::move(created);
  }
  Failure ask() {
    HeldCheck check({{.limit = &limit_, .key = "k"}});
    testing::ask(io_, *store_, check);
    return check.failure;
  }
  bool becomes_ready() {
    return run_until(io_, [&] { return store_->ready(); });
  }
  std::string commands() { return std::string(text_of(*server_.command({"INFO", "commandstats"}))); }

  RedisServer server_;
  const CountedLimit limit_{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 1h, .burst = 5},
                            .identity = "shop/user;tb"};
  boost::asio::io_context io_;
  metrics::Shard metrics_;
  std::unique_ptr<RedisStore> store_;
};

TEST_F(RedisConnection, IsMadeAndTheScriptLoadedBeforeTheFirstUse) {
  open(server_.url());
  ASSERT_TRUE(becomes_ready());
  EXPECT_THAT(commands(), ::testing::HasSubstr("cmdstat_script"));
  EXPECT_EQ(server_.info("clients", "connected_clients"), "2");  // the store's and the test's
  // The charge by which a connection begins, and its removal.
  EXPECT_THAT(commands(), ::testing::HasSubstr("cmdstat_evalsha:calls=2,"));
  EXPECT_EQ(ask(), Failure::none);
  const std::string told = commands();
  EXPECT_THAT(told, ::testing::HasSubstr("cmdstat_evalsha:calls=3,"));
  EXPECT_THAT(told, ::testing::Not(::testing::HasSubstr("cmdstat_eval:")));
  EXPECT_EQ(server_.info("stats", "total_connections_received"), "2");
}

// The kernel keeps a timer for it while nothing is on its way.
TEST_F(RedisConnection, IsKeptAlive) {
  open(server_.url());
  ASSERT_TRUE(becomes_ready());
  const auto has_timer = [&] {
    std::ifstream sockets("/proc/net/tcp");
    std::string line;
    while (std::getline(sockets, line)) {
      unsigned remote_port = 0;
      unsigned state = 0;
      unsigned timer = 0;
      if (std::sscanf(line.c_str(), " %*d: %*x:%*x %*x:%x %x %*x:%*x %x:", &remote_port, &state, &timer) == 3 &&
          remote_port == server_.port() && state == 1) {
        return timer == 2;
      }
    }
    return false;
  };
  EXPECT_TRUE(run_until(io_, has_timer));
}

TEST_F(RedisConnection, IsMadeAnewWhenItIsOldAndNobodyNoticesThat) {
  open(server_.url(), 50ms);
  ASSERT_TRUE(becomes_ready());
  const auto received = [&] { return std::stoi(server_.info("stats", "total_connections_received")); };
  const int before = received();
  EXPECT_TRUE(run_until(io_, [&] {
    EXPECT_EQ(ask(), Failure::none);
    return received() >= before + 3;
  }));
  EXPECT_TRUE(store_->ready());
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), 0U);
  EXPECT_TRUE(run_until(io_, [&] { return server_.info("clients", "connected_clients") == "2"; }));
}

TEST_F(RedisConnection, WithoutAPasswordIsToldApart) {
  server_.command({"CONFIG", "SET", "requirepass", "top"});
  for (const std::string password : {"", ":wrong@"}) {
    log::configure(log::Level::info, log::Format::text);
    ::testing::internal::CaptureStderr();
    open("redis://" + password + "127.0.0.1:" + std::to_string(server_.port()));
    EXPECT_NE(ask(), Failure::none);
    log::configure(log::Level::error, log::Format::text);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::HasSubstr(std::string(to_text(Failure::not_authenticated))));
    EXPECT_FALSE(store_->ready());
  }
}

}  // namespace
}  // namespace sluice::store::redis
