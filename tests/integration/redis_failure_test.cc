// What happens when the server does not do as it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/fallback_store.h"
#include "store/memory/memory_store.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_asker.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using testing::ask;
using testing::HeldCheck;
using testing::RedisServer;
using testing::run_until;

// Long enough that a busy machine does not make a healthy server look slow, and far below the patience of the tests.
constexpr auto kTimeout = 200ms;

CountedLimit bucket(std::string identity, OnStoreFailure word = OnStoreFailure::local) {
  return {.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 3600s, .burst = 5},
          .identity = std::move(identity),
          .id = 1,
          .on_store_failure = word};
}

class RedisFailureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url) {
    auto created =
        RedisStore::create(io_, {.url = url, .timeout = kTimeout, .failures = 3, .probe_interval = 50ms}, metrics_);
    ASSERT_TRUE(created);
    redis_ = created->get();
    store_ = std::make_unique<FallbackStore>(*std::move(created), memory_, health_, metrics_);
  }
  void open_ready(const std::string& url) {
    open(url);
    ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  }
  HeldCheck& ask_once(const CountedLimit& limit, std::uint64_t cost = 1) {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit, .key = "k", .cost = cost}});
    ask(io_, *store_, checks_.back());
    return checks_.back();
  }
  // What the Redis store itself says.
  Failure failure_of(const CountedLimit& limit) {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit, .key = "k"}});
    ask(io_, *redis_, checks_.back());
    return checks_.back().failure;
  }

  boost::asio::io_context io_;
  metrics::Shard metrics_;
  MemoryStore memory_{1'000};
  RedisStore* redis_ = nullptr;
  StoreHealth health_;
  std::unique_ptr<FallbackStore> store_;
  std::deque<HeldCheck> checks_;
};

TEST_F(RedisFailureTest, KilledAndStartedAgain) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit local = bucket("shop/local;tb");
  const CountedLimit allow = bucket("shop/allow;tb", OnStoreFailure::allow);
  const CountedLimit deny = bucket("shop/deny;tb", OnStoreFailure::deny);
  EXPECT_EQ(ask_once(local, 4).decisions[0].source, Source::redis);

  server.kill();
  // At first the kill may not have been noticed yet; the answer comes all the same, and by the policy's word.
  for (int i = 0; i < 10; ++i) {
    const auto before = std::chrono::steady_clock::now();
    const HeldCheck& check = ask_once(local);
    EXPECT_LT(std::chrono::steady_clock::now() - before, 10 * kTimeout);
    EXPECT_EQ(check.failure, Failure::none);
    EXPECT_EQ(check.decisions[0].source, Source::fallback_local);
    EXPECT_EQ(check.admitted, i < 5) << i;
    EXPECT_EQ(ask_once(allow).decisions[0].source, Source::fallback_allow);
    EXPECT_TRUE(checks_.back().admitted);
    EXPECT_EQ(ask_once(deny).decisions[0].source, Source::fallback_deny);
    EXPECT_FALSE(checks_.back().admitted);
  }
  EXPECT_FALSE(redis_->ready());
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_local), 10U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_allow), 10U);
  EXPECT_EQ(metrics_.value(metrics::Counter::fallback_deny), 10U);
  // All but the first that were put to the server failed; it was soon not asked any more.
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), metrics_.value(metrics::Counter::store_checks) - 1);
  EXPECT_GE(metrics_.value(metrics::Counter::store_failures), 1U);
  EXPECT_LT(metrics_.value(metrics::Counter::store_failures), 15U);

  server.start();
  ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  const HeldCheck& recovered = ask_once(local);
  EXPECT_EQ(recovered.decisions[0].source, Source::redis);
  EXPECT_EQ(recovered.decisions[0].remaining, 4U);  // the server lost its memory, not ours to mend
}

TEST_F(RedisFailureTest, StartsWithoutAServerAndFindsItLater) {
  RedisServer server;
  server.kill();
  const CountedLimit limit = bucket("shop/user;tb");
  open(server.url());
  EXPECT_FALSE(redis_->ready());
  EXPECT_EQ(ask_once(limit).decisions[0].source, Source::fallback_local);
  server.start();
  ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  EXPECT_EQ(ask_once(limit).decisions[0].source, Source::redis);
}

TEST_F(RedisFailureTest, StoppedProcess) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  server.pause();
  std::vector<Failure> failures;
  for (int i = 0; i < 8; ++i) failures.push_back(failure_of(limit));
  using ::testing::Each;
  EXPECT_EQ(failures[0], Failure::timeout);
  EXPECT_EQ(failures[2], Failure::timeout);
  // Three in a row open the breaker: from then on nothing waits.
  for (int i = 3; i < 8; ++i) EXPECT_EQ(failures[static_cast<std::size_t>(i)], Failure::circuit_open);
  EXPECT_EQ(metrics_.value(metrics::Counter::store_timeouts), 3U);
  server.resume();
  ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  const HeldCheck& check = ask_once(limit, 0);
  EXPECT_EQ(check.decisions[0].source, Source::redis);
  // Two had been sent and were charged: a lost answer counts as applied, and none was sent twice. The third waited for
  // one of their answers, and was withdrawn at its deadline.
  EXPECT_EQ(check.decisions[0].remaining, 3U);
}

TEST_F(RedisFailureTest, ClientPause) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  server.command({"CLIENT", "PAUSE", "1500"});
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(failure_of(limit), Failure::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5 * kTimeout);
  ASSERT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::none; }));
}

TEST_F(RedisFailureTest, ConnectionsAreKilled) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  for (int i = 0; i < 3; ++i) {
    server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    ASSERT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::none; }));
  }
  // One connection of the store, one of the test.
  EXPECT_THAT(std::string(text_of(*server.command({"INFO", "clients"}))),
              ::testing::HasSubstr("connected_clients:2\r\n"));
}

TEST_F(RedisFailureTest, OutOfMemoryIsNotADenial) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  server.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(failure_of(limit), Failure::out_of_memory);
  EXPECT_EQ(ask_once(limit).decisions[0].source, Source::fallback_local);
  EXPECT_EQ(failure_of(limit), Failure::out_of_memory);
  // Probes write too, so they fail as long as checks would.
  EXPECT_EQ(failure_of(limit), Failure::circuit_open);
  server.command({"CONFIG", "SET", "maxmemory", "0"});
  ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  EXPECT_EQ(failure_of(limit), Failure::none);
}

TEST_F(RedisFailureTest, public_report_61) {
  RedisServer server;
  RedisServer primary;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  EXPECT_EQ(failure_of(limit), Failure::none);
  server.command({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())});
  // The connection is dropped, too: the name may lead to another server now.
  EXPECT_TRUE(run_until(io_, [&] {
    const Failure failure = failure_of(limit);
    return failure == Failure::read_only || failure == Failure::circuit_open;
  }));
  EXPECT_FALSE(redis_->ready());
  server.command({"REPLICAOF", "NO", "ONE"});
  ASSERT_TRUE(run_until(io_, [&] { return redis_->ready(); }));
  EXPECT_EQ(failure_of(limit), Failure::none);
}

TEST_F(RedisFailureTest, BusyWithAnotherScript) {
  RedisServer server({"--lua-time-limit", "10", "--busy-reply-threshold", "10"});
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  redisContext* other = redisConnectUnix(server.socket_path().c_str());
  ASSERT_NE(other, nullptr);
  redisAppendCommand(other, "EVAL %s 0", "while true do end");
  int written = 0;
  while (written == 0) redisBufferWrite(other, &written);
  EXPECT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::busy; }));
  server.command({"SCRIPT", "KILL"});
  ASSERT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::none; }));
  redisFree(other);
}

TEST_F(RedisFailureTest, PasswordsAndPermissions) {
  RedisServer server;
  server.command({"ACL", "SETUSER", "limiter", "on", ">se/c@ret", "~sluice:*", "+@all", "-script"});
  server.command({"ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read"});
  server.command({"ACL", "SETUSER", "default", "resetpass", ">top"});
  const std::string at = "@127.0.0.1:" + std::to_string(server.port());
  const CountedLimit limit = bucket("shop/user;tb");

  // Without SCRIPT LOAD the first call brings the script.
  open_ready("redis://limiter:se%2Fc%40ret" + at);
  EXPECT_EQ(failure_of(limit), Failure::none);
  open_ready("redis://:top" + at);
  EXPECT_EQ(failure_of(limit), Failure::none);
  open_ready("redis://default:top" + at + "/3");
  EXPECT_EQ(failure_of(limit), Failure::none);
  EXPECT_EQ(ask_once(limit).decisions[0].remaining, 3U);

  open("redis://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_TRUE(run_until(io_, [&] { return failure_of(limit) != Failure::none; }));
  EXPECT_FALSE(redis_->ready());
  open("redis://limiter:wrong" + at);
  EXPECT_NE(failure_of(limit), Failure::none);
  EXPECT_FALSE(redis_->ready());
  open("redis://reader:pw" + at);
  EXPECT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::no_permission; }));
}

TEST_F(RedisFailureTest, UnixSocket) {
  RedisServer server;
  open_ready("unix://" + server.socket_path());
  const CountedLimit limit = bucket("shop/user;tb");
  EXPECT_EQ(failure_of(limit), Failure::none);
}

TEST_F(RedisFailureTest, ACancelledCheckIsNeverCompletedAndNotSentIfItCanBeHelped) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  HeldCheck unsent({{.limit = &limit, .key = "k"}});
  start(*store_, unsent);
  store_->cancel(unsent);
  EXPECT_EQ(ask_once(limit).decisions[0].remaining, 4U);

  HeldCheck sent({{.limit = &limit, .key = "k"}});
  const auto calls = [&] { return metrics_.value(metrics::Counter::store_calls); };
  const auto calls_before = calls();
  start(*store_, sent);
  ASSERT_TRUE(run_until(io_, [&] { return calls() > calls_before; }));
  store_->cancel(sent);
  EXPECT_EQ(ask_once(limit).decisions[0].remaining, 2U);
  EXPECT_FALSE(unsent.done);
  EXPECT_FALSE(sent.done);
}

TEST_F(RedisFailureTest, AStoreMayGoWithChecksPending) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  server.pause();
  std::deque<HeldCheck> checks;
  for (int i = 0; i < 10; ++i) {
    checks.emplace_back(std::vector<Charge>{{.limit = &limit, .key = "k"}});
    start(*store_, checks.back());
  }
  io_.run_for(10ms);
  store_.reset();
  io_.restart();
  io_.run_for(10ms);
  EXPECT_TRUE(std::none_of(checks.begin(), checks.end(), [](const auto& check) { return check.done; }));
}

}  // namespace
}  // namespace sluice::store::redis
