// What is told of Redis when it cannot be used: which server, why, and which setting to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/redis/advice.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_secured.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/documented_acl.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using store::redis::Access;
using store::redis::RedisStore;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RedisReasons : public ::testing::Test {
 protected:
  // What a store says until it has said this, and that it cannot be used.
  std::string told_until(const std::string& words, const std::string& url, const Access& access = {}) {
    store::redis::RedisOptions options{.url = url, .timeout = patience_, .probe_interval = 20ms};
    options.access = access;
    log::configure(log::Level::info, log::Format::text);
    ::testing::internal::CaptureStderr();
    auto store = RedisStore::create(io_, options, metrics_);
    EXPECT_TRUE(store);
    std::string told;
    EXPECT_TRUE(run_until(io_, [&] {
      told += ::testing::internal::GetCapturedStderr();
      ::testing::internal::CaptureStderr();
      return told.find(words) != std::string::npos;
    })) << told;
    EXPECT_FALSE((*store)->ready()) << told;
    store->reset();
    told += ::testing::internal::GetCapturedStderr();
    log::configure(log::Level::error, log::Format::text);
    return told;
  }
  static std::string at(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }
  static std::string of(std::string_view advice) { return std::string(advice); }
  // As a line has it, where quotes are escaped.
  static std::string log_text(std::string_view advice) {
    std::string text(advice);
    for (std::size_t i = text.find('"'); i != std::string::npos; i = text.find('"', i + 2)) text.insert(i, 1, '\\');
    return text;
  }

  // A busy machine does not make a server look silent.
  std::chrono::seconds patience_ = 9s;
  boost::asio::io_context io_;
  metrics::Shard metrics_;
};

TEST_F(RedisReasons, NobodyIsThere) {
  const std::uint16_t port = free_tcp_port();
  EXPECT_THAT(told_until("Connection refused", "redis://" + at(port)), HasSubstr("server=" + at(port) + " "));
  EXPECT_THAT(told_until("No such file or directory", "unix:///nonexistent/redis.sock"),
              HasSubstr("server=/nonexistent/redis.sock "));
  EXPECT_THAT(told_until("cannot find the host: Host not found", "redis://nonexistent.invalid:6379"),
              HasSubstr("server=nonexistent.invalid:6379 "));
  for (const std::string scheme : {"redis+cluster://", "redis-sentinel://"}) {
    const std::string url = scheme + at(port) + ",nonexistent.invalid:1" + (scheme[5] == '-' ? "/mymaster" : "");
    EXPECT_THAT(told_until(at(port), url), AllOf(HasSubstr(at(port) + ": cannot connect: Connection refused"),
                                                 HasSubstr("nonexistent.invalid:1: cannot find the host: ")));
  }
}

TEST_F(RedisReasons, OneServerThatIsAnotherKindOfIt) {
  RedisServer master;
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
  EXPECT_THAT(told_until("not available", replica.url()),
              AllOf(HasSubstr(at(replica.port())), HasSubstr(of(store::redis::kNotMaster)),
                    ::testing::Not(HasSubstr("connected"))));
  EXPECT_EQ(replica.calls("evalsha") + replica.calls("eval") + replica.calls("script|load"), 0U);
  const RedisServer node({"--cluster-enabled", "yes"});
  EXPECT_THAT(told_until("not available", node.url()),
              AllOf(HasSubstr(at(node.port())), HasSubstr(of(store::redis::kIsClusterNode))));
  const RedisServer sentinel({"--sentinel"},
                             "sentinel monitor mymaster 127.0.0.1 " + std::to_string(master.port()) + " 1\n");
  EXPECT_THAT(told_until("not available", sentinel.url()),
              AllOf(HasSubstr(at(sentinel.port())), HasSubstr(of(store::redis::kIsSentinel))));
  // And the other way round.
  EXPECT_THAT(told_until("no node of the cluster", "redis+cluster://" + at(master.port())),
              AllOf(HasSubstr(at(master.port())), HasSubstr(of(store::redis::kIsNoCluster))));
  EXPECT_THAT(told_until("not available", "redis-sentinel://" + at(master.port()) + "/mymaster"),
              AllOf(HasSubstr(at(master.port())), HasSubstr(of(store::redis::kIsNoSentinel))));
  EXPECT_THAT(told_until("no node of the cluster", "redis+cluster://" + at(sentinel.port())),
              AllOf(HasSubstr(at(sentinel.port())), HasSubstr(of(store::redis::kKnowsNoCluster))));
  EXPECT_THAT(told_until("not available", "redis-sentinel://" + at(node.port()) + "/mymaster"),
              AllOf(HasSubstr(at(node.port())), HasSubstr(of(store::redis::kIsNoSentinel))));
  EXPECT_THAT(told_until("not available", "redis-sentinel://" + at(sentinel.port()) + "/other"),
              HasSubstr(at(sentinel.port()) + ": this sentinel does not know a master of the name other"));
}

TEST_F(RedisReasons, WhoIsNotLetIn) {
  RedisServer master({"--requirepass", "right"});
  EXPECT_THAT(told_until("not available", "redis://:wrong@" + at(master.port())),
              AllOf(HasSubstr("WRONGPASS"), HasSubstr(of(store::redis::kLogin))));
  EXPECT_THAT(told_until("not available", master.url()),
              AllOf(HasSubstr("NOAUTH"), HasSubstr(of(store::redis::kLogin))));
  const RedisServer sentinel({"--sentinel"}, "requirepass right\nsentinel monitor mymaster 127.0.0.1 " +
                                                 std::to_string(master.port()) + " 1\n");
  const std::string url = "redis-sentinel://" + at(sentinel.port()) + "/mymaster";
  EXPECT_THAT(told_until("not available", url),
              AllOf(HasSubstr(at(sentinel.port()) + ": NOAUTH"), HasSubstr(of(store::redis::kSentinelLogin))));
  Access access;
  access.sentinel_password = "wrong";
  EXPECT_THAT(told_until("not available", url, access),
              AllOf(HasSubstr(at(sentinel.port()) + ": WRONGPASS"), HasSubstr(of(store::redis::kSentinelLogin))));
  // The sentinel is content, and names a master that is not.
  access.sentinel_password = "right";
  EXPECT_THAT(told_until("NOAUTH", url, access),
              AllOf(HasSubstr(at(master.port()) + ": NOAUTH"), HasSubstr(of(store::redis::kLogin))));
}

// Somebody else's prefix: no check can succeed, so it is not told of as connected.
TEST_F(RedisReasons, KeysThatTheUserMayNotUse) {
  const std::string user = "user sluice on >secret ~other:* +@all\n";
  const auto expect_refused = [&](const std::string& url) {
    EXPECT_THAT(told_until("not available", url),
                AllOf(HasSubstr("NOPERM"), HasSubstr(log_text(store::redis::kRights)), HasSubstr("store.redis.prefix"),
                      ::testing::Not(HasSubstr("connected"))));
  };
  RedisServer one({}, user);
  expect_refused("redis://sluice:secret@" + at(one.port()));
  RedisServer node({"--cluster-enabled", "yes"}, user);
  node.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
  expect_refused("redis+cluster://sluice:secret@" + at(node.port()));
  RedisServer master({}, user);
  const RedisServer sentinel({"--sentinel"},
                             "sentinel monitor mymaster 127.0.0.1 " + std::to_string(master.port()) + " 1\n");
  expect_refused("redis-sentinel://sluice:secret@" + at(sentinel.port()) + "/mymaster");
  for (RedisServer* server : {&one, &node, &master}) EXPECT_EQ(server->integer({"DBSIZE"}), 0);
}

// What the trial has written is gone.
TEST_F(RedisReasons, ATrialLeavesNothing) {
  RedisServer server;
  const auto store = RedisStore::create(io_, {.url = server.url(), .timeout = patience_}, metrics_);
  ASSERT_TRUE(run_until(io_, [&] { return (*store)->ready(); }));
  EXPECT_EQ(server.integer({"DBSIZE"}), 0);
  EXPECT_EQ(server.calls("del"), 1U);
}

// A right that only some limits need: their checks fail among others that don't, and the log has the server's words.
TEST_F(RedisReasons, ARightThatIsMissingWithinTheScript) {
  std::string user = documented_user(kOneServer);
  user.insert(user.size() - 1, " -zadd");
  RedisServer server({}, user);
  const auto store =
      RedisStore::create(io_, {.url = "redis://sluice:secret@" + at(server.port()), .timeout = patience_}, metrics_);
  ASSERT_TRUE(run_until(io_, [&] { return (*store)->ready(); }));
  const store::CountedLimit bucket{
      .numbers = {.algorithm = Algorithm::token_bucket, .rate = 100, .burst = 100}, .identity = "d/b;tb", .id = 1};
  const store::CountedLimit log_limit{
      .numbers = {.algorithm = Algorithm::sliding_log, .rate = 100}, .identity = "d/l;sl", .id = 2};
  HeldCheck good({{.limit = &bucket, .key = "k"}});
  HeldCheck bad({{.limit = &log_limit, .key = "k"}});
  log::configure(log::Level::info, log::Format::text);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i) {
    ask(io_, **store, good);
    EXPECT_EQ(good.failure, store::Failure::none);
    ask(io_, **store, bad);
    EXPECT_EQ(bad.failure, store::Failure::no_permission);
  }
  log::configure(log::Level::error, log::Format::text);
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, AllOf(HasSubstr("store: failing"), HasSubstr("detail="), HasSubstr("script"),
                          HasSubstr(log_text(store::redis::kRights))));
  EXPECT_EQ(told.find("store: failing"), told.rfind("store: failing")) << told;
  EXPECT_TRUE((*store)->ready());
}

TEST_F(RedisReasons, ADatabaseThatIsNotThere) {
  const RedisServer server;
  EXPECT_THAT(told_until("not available", server.url() + "/99"),
              AllOf(HasSubstr("DB index is out of range"), HasSubstr("store.redis.url")));
}

TEST_F(RedisReasons, MemoryThatIsUsedUp) {
  const RedisServer server({"--maxmemory", "1"});
  EXPECT_THAT(told_until("not available", server.url()), AllOf(HasSubstr("OOM"), HasSubstr(of(store::redis::kFull))));
}

TEST_F(RedisReasons, TlsWhereThereIsNoneAndNoneWhereThereIs) {
  const SecuredRedis secured(kOneServer);
  const RedisServer plain;
  const RedisServer tls = secured.server();
  EXPECT_THAT(told_until("not available", "redis://" + at(tls.port())), HasSubstr("store.redis.url"));
  EXPECT_THAT(told_until("not available", "rediss://" + at(plain.port()), secured.access()),
              AllOf(HasSubstr(at(plain.port())), HasSubstr(of(store::redis::kNotTls))));
  EXPECT_THAT(told_until("no node", "redis+cluster://" + at(tls.port())), HasSubstr("store.redis.url"));
  EXPECT_THAT(told_until("no node", "rediss+cluster://" + at(plain.port()), secured.access()),
              HasSubstr(of(store::redis::kNotTls)));
}

TEST_F(RedisReasons, CertificatesThatDoNotFit) {
  const SecuredRedis secured(kOneServer);
  const RedisServer server = secured.server();
  Access access = secured.access();
  access.tls.server_name = "other.example";
  EXPECT_THAT(told_until("not available", server.url(), access),
              AllOf(HasSubstr("does not name other.example"), HasSubstr("store.redis.tls.server_name")));
  access = secured.access();
  access.tls.ca = secured.certificates().cert(Certificates::kStranger);
  EXPECT_THAT(told_until("not available", server.url(), access), HasSubstr("store.redis.tls.ca"));
  access = secured.access();
  access.tls.cert.clear();
  access.tls.key.clear();
  EXPECT_THAT(told_until("not available", server.url(), access),
              HasSubstr("it may want a certificate of us: store.redis.tls.cert"));
  access = secured.access();
  access.tls.cert = secured.certificates().cert(Certificates::kStranger);
  access.tls.key = secured.certificates().key(Certificates::kStranger);
  EXPECT_THAT(told_until("not available", server.url(), access),
              HasSubstr("it does not accept our certificate: store.redis.tls.cert"));
}

// The settings that are named are those in force for sentinels.
TEST_F(RedisReasons, CertificatesThatDoNotFitASentinel) {
  const SecuredRedis secured(kBehindSentinel);
  const SetOptions set = secured.servers();
  std::vector<std::string> options = set.options;
  options.emplace_back("--sentinel");
  const RedisServer sentinel(options, "sentinel monitor mymaster 127.0.0.1 1 1\n", set.setup);
  const std::string url = "rediss-sentinel://" + at(sentinel.port()) + "/mymaster";
  const auto with = [&](store::redis::TlsFiles files) {
    Access access = secured.access();
    access.sentinel_tls_files = std::move(files);
    return access;
  };
  const store::redis::TlsFiles right = secured.access().tls;
  store::redis::TlsFiles files = right;
  files.ca = secured.certificates().cert(Certificates::kStranger);
  EXPECT_THAT(told_until("not available", url, with(files)), HasSubstr("store.redis.sentinel.tls.ca"));
  files = right;
  files.server_name = "other.example";
  EXPECT_THAT(told_until("not available", url, with(files)), HasSubstr("store.redis.sentinel.tls.server_name"));
  files = right;
  files.cert.clear();
  files.key.clear();
  EXPECT_THAT(told_until("not available", url, with(files)), HasSubstr("store.redis.sentinel.tls.cert"));
}

}  // namespace
}  // namespace sluice::testing
