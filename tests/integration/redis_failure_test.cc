// What happens when the server does not do as it should.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <tuple>
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

// A busy machine does not make a healthy server look slow, and the tests never wait for it in vain.
constexpr auto kTimeout = 9s;
// Of a server that is silent.
constexpr auto kShort = 200ms;

CountedLimit bucket(std::string identity, OnStoreFailure word = OnStoreFailure::local) {
  return {.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 3600s, .burst = 5},
          .identity = std::move(identity),
          .id = 1,
          .on_store_failure = word};
}

class RedisFailureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

  void open(const std::string& url, std::chrono::nanoseconds timeout = kTimeout) {
    auto created =
        RedisStore::create(io_, {.url = url, .timeout = timeout, .failures = 3, .probe_interval = 50ms}, metrics_);
    ASSERT_TRUE(created);
    redis_ = created->get();
    store_ = std::make_unique<FallbackStore>(*std::move(created), memory_, readiness_, metrics_);
  }
  void open_ready(const std::string& url, std::chrono::nanoseconds timeout = kTimeout) {
    open(url, timeout);
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
  Readiness readiness_;
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
    const HeldCheck& check = ask_once(local);
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
  open_ready(server.url(), kShort);
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
  ASSERT_TRUE(run_until(io_, [&] { return ask_once(limit, 0).decisions[0].source == Source::redis; }));
  const HeldCheck& check = checks_.back();
  // Two had been sent and were charged: a lost answer counts as applied, and none was sent twice. The third waited for
  // one of their answers, and was withdrawn at its deadline.
  EXPECT_EQ(check.decisions[0].remaining, 3U);
}

TEST_F(RedisFailureTest, ClientPause) {
  RedisServer server;
  open_ready(server.url(), kShort);
  const CountedLimit limit = bucket("shop/user;tb");
  server.command({"CLIENT", "PAUSE", "600000", "WRITE"});
  EXPECT_EQ(failure_of(limit), Failure::timeout);
  server.command({"CLIENT", "UNPAUSE"});
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

TEST_F(RedisFailureTest, LoadingIsToldApartAndEnds) {
  RedisServer server({"--rdbcompression", "no"});
  for (int i = 0; i < 2'000; ++i) server.command({"SET", "other:" + std::to_string(i), std::string(10'000, 'x')});
  server.command({"SAVE"});
  server.kill();
  server.start_loading({"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "10000"});
  const CountedLimit limit = bucket("shop/user;tb");
  log::configure(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
  open(server.url());
  // On a busy machine the first failure may be that there is no connection yet.
  std::string told;
  EXPECT_TRUE(run_until(io_, [&] {
    std::ignore = failure_of(limit);
    told += ::testing::internal::GetCapturedStderr();
    ::testing::internal::CaptureStderr();
    return told.find("LOADING") != std::string::npos;
  }));
  server.command({"CONFIG", "SET", "key-load-delay", "0"});
  EXPECT_TRUE(run_until(io_, [&] { return failure_of(limit) == Failure::none; }));
  log::configure(log::Level::error, log::Format::text);
  std::ignore = ::testing::internal::GetCapturedStderr();
}

// A counter that holds what no state of ours can, up to the ends of 64 bits, is a failure of that key, not a verdict.
TEST_F(RedisFailureTest, NumbersAtTheirEndsAreForeign) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  for (const std::string value : {"9223372036854775807", "-9223372036854775808", "18446744073709551615", ""}) {
    server.command({"SET", "sluice:{k}shop/user;tb", value});
    EXPECT_EQ(failure_of(limit), Failure::foreign_value) << value;
    const auto after = server.command({"GET", "sluice:{k}shop/user;tb"});
    EXPECT_EQ(text_of(*after), value);
  }
  server.command({"DEL", "sluice:{k}shop/user;tb"});
  server.command({"RPUSH", "sluice:{k}shop/user;tb", "1"});
  EXPECT_EQ(failure_of(limit), Failure::wrong_type);
  EXPECT_TRUE(redis_->ready());
}

// The others of a batch are judged as if it were not there.
TEST_F(RedisFailureTest, AWrongKeyFailsNobodyElse) {
  RedisServer server;
  open_ready(server.url());
  const CountedLimit limit = bucket("shop/user;tb");
  server.command({"RPUSH", "sluice:{wrong}shop/user;tb", "1"});
  std::deque<std::string> keys;
  std::deque<HeldCheck> checks;
  for (int i = 0; i < 40; ++i) {
    keys.push_back(i % 4 == 0 ? "wrong" : std::to_string(i));
    checks.emplace_back(std::vector<Charge>{{.limit = &limit, .key = keys.back()}});
    start(*redis_, checks.back());
  }
  ASSERT_TRUE(run_until(
      io_, [&] { return std::all_of(checks.begin(), checks.end(), [](const auto& check) { return check.done; }); }));
  for (std::size_t i = 0; i < checks.size(); ++i) {
    EXPECT_EQ(checks[i].failure, i % 4 == 0 ? Failure::wrong_type : Failure::none) << i;
  }
  // Together they were few calls.
  EXPECT_LE(metrics_.value(metrics::Counter::store_calls), 3U);
}

// Two requests in one batch that share a key: three tokens are left; five are asked for first, then one.
TEST_F(RedisFailureTest, ADeniedRequestTakesNothingFromTheNextInItsBatch) {
  RedisServer server;
  open_ready(server.url());
  CountedLimit global = bucket("shop/global;tb");
  global.numbers.burst = 10;
  CountedLimit user = bucket("shop/user;tb");
  user.numbers.burst = 10;
  HeldCheck before({{.limit = &global, .key = "g", .cost = 7}});
  ask(io_, *redis_, before);
  const auto calls = metrics_.value(metrics::Counter::store_calls);
  HeldCheck a({{.limit = &global, .key = "g", .cost = 5}, {.limit = &user, .key = "u1", .cost = 5}});
  HeldCheck b({{.limit = &global, .key = "g", .cost = 1}, {.limit = &user, .key = "u2", .cost = 1}});
  start(*redis_, a);
  start(*redis_, b);
  ASSERT_TRUE(run_until(io_, [&] { return a.done && b.done; }));
  EXPECT_EQ(metrics_.value(metrics::Counter::store_calls), calls + 1);
  EXPECT_FALSE(a.admitted);
  EXPECT_EQ(a.decisions[0].remaining, 3U);
  EXPECT_EQ(a.decisions[1].remaining, 10U);
  EXPECT_TRUE(b.admitted);
  EXPECT_EQ(b.decisions[0].remaining, 2U);
  EXPECT_EQ(b.decisions[1].remaining, 9U);
}

TEST_F(RedisFailureTest, BusyWithAnotherScript) {
  RedisServer server({"--lua-time-limit", "10"});
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
