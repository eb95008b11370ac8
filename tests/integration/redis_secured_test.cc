// Redis with TLS and a user with the least rights: everything works, and what is not allowed is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "store/redis/redis_store.h"
#include "tests/integration/redis_engine.h"
#include "tests/integration/redis_secured.h"
#include "tests/integration/store_asker.h"
#include "tests/integration/support/documented_acl.h"
#include "tests/model/engine.h"
#include "tests/model/random_trace.h"
#include "tests/model/slow_model.h"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using store::redis::RedisStore;
using store::redis::text_of;

// "script|load" for each "+script|load".
std::set<std::string> commands_in(const std::string& rights) {
  std::set<std::string> commands;
  std::istringstream words(rights);
  for (std::string word; words >> word;) {
    if (word.starts_with('+')) commands.insert(word.substr(1));
  }
  return commands;
}

class RedisSecured : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { log::configure(log::Level::error, log::Format::text); }

  std::unique_ptr<RedisStore> open(const store::redis::Access& access, const std::string& url) {
    store::redis::RedisOptions options{.url = url, .timeout = 9s, .probe_interval = 20ms};
    options.access = access;
    auto made = RedisStore::create(io_, options, metrics_);
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  std::unique_ptr<RedisStore> open() { return open(secured_.access(), server_.url()); }
  bool becomes_ready(RedisStore& store) {
    return run_until(io_, [&] { return store.ready(); });
  }
  // What cannot get in has no success to wait for: these are some attempts' time.
  void expect_shut_out(const store::redis::Access& access, const std::string& url) {
    const auto store = open(access, url);
    const auto end = std::chrono::steady_clock::now() + 200ms;
    EXPECT_TRUE(run_until(io_, [&] { return store->ready() || std::chrono::steady_clock::now() > end; }));
    EXPECT_FALSE(store->ready());
    EXPECT_EQ(server_.calls("evalsha") + server_.calls("eval"), 0U);
  }

  boost::asio::io_context io_;
  metrics::Shard metrics_;
  const SecuredRedis secured_{kOneServer};
  RedisServer server_ = secured_.server();
};

// All algorithms and verbs, as the model answers them: the rights are those of the script, neither more nor less.
TEST_F(RedisSecured, AllAlgorithmsAndVerbsNeedTheDocumentedRightsAlone) {
  RedisServer server({}, documented_user(kOneServer));
  server.command({"AUTH", "sluice", "secret"});
  RedisEngine engine(server);
  model::RandomTrace trace(1, std::nullopt, algorithm::Tick::microsecond, false);
  for (int segment = 0; segment < 40; ++segment) {
    model::Engine slow(algorithm::Tick::microsecond, &model::make_slow_subject);
    for (const auto& [id, limit] : trace.start_segment()) {
      slow.define(id, limit);
      (void)engine.apply(model::parse_operation(model::limit_line(id, limit, algorithm::Tick::microsecond)));
    }
    for (int i = 0; i < model::RandomTrace::kSegment; ++i) {
      const model::Operation operation = trace.next();
      const model::Answer want = slow.apply(operation);
      ASSERT_EQ(engine.apply(operation), to_json(want));
      trace.answered(operation, want);
    }
  }
  server.command({"AUTH", "default", ""});
  std::set<std::string> used = server.commands();
  for (const char* of_this_test : {"auth", "flushall", "ping"}) used.erase(of_this_test);
  // What only a store sends, which the tests of topologies do.
  used.merge(std::set<std::string>{"eval", "time", "info", "select", "wait"});
  EXPECT_EQ(used, commands_in(documented_rights(kOneServer)));
}

// The same by a store, on the server's own clock.
TEST_F(RedisSecured, AStoreCanDoAllOfIt) {
  using store::CountedLimit;
  using store::Verb;
  const auto store = open();
  ASSERT_TRUE(becomes_ready(*store));
  const CountedLimit other{.numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .burst = 5},
                           .identity = "rights/other;tb"};
  const auto take = [&](const CountedLimit& limit, std::uint64_t cost, bool with_another) {
    std::vector<store::Charge> charges = {{.limit = &limit, .key = "k", .cost = cost}};
    if (with_another) charges.push_back({.limit = &other, .key = "k", .cost = 0});
    HeldCheck check(charges);
    std::vector<std::uint64_t> leases(charges.size());
    check.leases = leases;
    ask(io_, *store, check);
    EXPECT_EQ(check.failure, store::Failure::none) << limit.identity;
    return leases[0];
  };
  const auto apply = [&](const CountedLimit& limit, const Verb& verb) {
    if (!has_verb(limit.numbers.algorithm, verb.kind)) return;
    HeldCheck check({{.limit = &limit, .key = "k"}});
    check.verb = &verb;
    if (store->apply(check, real_time()) == store::Progress::pending) {
      EXPECT_TRUE(run_until(io_, [&] { return check.done; }));
    }
    EXPECT_EQ(check.failure, store::Failure::none) << limit.identity << ' ' << static_cast<int>(verb.kind);
  };
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window,
                                    Algorithm::sliding_window, Algorithm::sliding_log, Algorithm::concurrency}) {
    const CountedLimit limit{
        .numbers = {.algorithm = algorithm, .rate = 100, .period = 50ms, .burst = 100, .queue = 99, .ttl = 25ms},
        .identity = "rights/" + std::to_string(static_cast<int>(algorithm))};
    // Again and again, until much of it has left: written anew, changed, trimmed and searched.
    const auto end = std::chrono::steady_clock::now() + 100ms;
    while (std::chrono::steady_clock::now() < end) {
      take(limit, 1, false);
      const std::uint64_t lease = take(limit, 7, true);
      apply(limit, Verb::peek());
      apply(limit, Verb::refund(3));
      apply(limit, Verb::settle(1, 2));
      apply(limit, Verb::release(lease, 7));
    }
    apply(limit, Verb::penalize(3));
    apply(limit, Verb::reset());
  }
  EXPECT_EQ(metrics_.value(metrics::Counter::store_failures), 0U);
}

TEST_F(RedisSecured, EveryCommandOfTheScriptIsDocumented) {
  const std::string text = store::redis::check_script(store::redis::ScriptStyle::fast).text;
  std::set<std::string> called;
  const std::regex call(R"(redis\.p?call\('([A-Z]+)')");
  for (std::sregex_iterator found(text.begin(), text.end(), call), end; found != end; ++found) {
    std::string name = (*found)[1];
    for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
    called.insert(name);
  }
  EXPECT_GT(called.size(), 10U);
  for (const std::string_view title : {kOneServer, kBehindSentinel, kClusterNodes}) {
    const std::set<std::string> rights = commands_in(documented_rights(title));
    EXPECT_TRUE(std::ranges::includes(rights, called)) << title;
    EXPECT_THAT(documented_user(title), ::testing::HasSubstr(" ~sluice:* "));
  }
}

TEST_F(RedisSecured, OthersKeysAndCommandsAreOutOfReach) {
  RedisServer server({}, documented_user(kOneServer));
  server.command({"AUTH", "sluice", "secret"});
  for (const std::vector<std::string>& words : {std::vector<std::string>{"GET", "other"},
                                                {"FLUSHALL"},
                                                {"KEYS", "*"},
                                                {"CONFIG", "GET", "*"},
                                                {"EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "other"}}) {
    EXPECT_EQ(server.command(words)->type, REDIS_REPLY_ERROR) << words[0];
  }
  EXPECT_EQ(server.command({"EVAL", "return redis.call('SET', KEYS[1], '1')", "1", "sluice:{a}x"})->type,
            REDIS_REPLY_STATUS);
}

TEST_F(RedisSecured, WhoHasNotAllOfItIsShutOut) {
  store::redis::Access access = secured_.access();
  access.tls = {};
  expect_shut_out(access, "redis://127.0.0.1:" + std::to_string(server_.port()));
  access = secured_.access();
  access.tls.server_name.clear();  // so it must name 127.0.0.1
  expect_shut_out(access, server_.url());
  access = secured_.access();
  access.tls.cert.clear();
  access.tls.key.clear();
  expect_shut_out(access, server_.url());
  access = secured_.access();
  access.tls.cert = secured_.certificates().cert(Certificates::kStranger);
  access.tls.key = secured_.certificates().key(Certificates::kStranger);
  expect_shut_out(access, server_.url());
  access = secured_.access();
  access.tls.ca = secured_.certificates().cert(Certificates::kStranger);
  expect_shut_out(access, server_.url());
  access = secured_.access();
  access.password_file.clear();
  access.password = "wrong";
  expect_shut_out(access, server_.url());
  // And nothing but that was wrong.
  EXPECT_TRUE(becomes_ready(*open()));
}

TEST_F(RedisSecured, ChangedPasswordsAndCertificatesAreReadAgain) {
  const auto store = open();
  ASSERT_TRUE(becomes_ready(*store));
  const store::CountedLimit limit{
      .numbers = {.algorithm = Algorithm::token_bucket, .rate = 1, .period = 24h, .burst = 10},
      .identity = "d/b;tb",
      .id = 1};
  HeldCheck check({{.limit = &limit, .key = "a"}});
  const auto all_are_cut = [&] {
    ASSERT_GE(server_.integer({"CLIENT", "KILL", "USER", "sluice"}), 1);
    ASSERT_TRUE(run_until(io_, [&] { return !store->ready(); }));
  };
  ask(io_, *store, check);
  EXPECT_EQ(check.decisions[0].remaining, 9U);

  // The server first, so the old password is refused for a while.
  server_.command({"ACL", "SETUSER", "sluice", "resetpass", ">changed"});
  all_are_cut();
  secured_.write_password("changed");
  ASSERT_TRUE(becomes_ready(*store));
  ask(io_, *store, check);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_EQ(check.decisions[0].remaining, 8U);

  // Another authority, and all that it certifies, in the same files.
  const Certificates renewed(std::filesystem::path(secured_.certificates().ca()).parent_path());
  server_.command({"CONFIG", "SET", "tls-cert-file", renewed.cert(Certificates::kServer), "tls-key-file",
                   renewed.key(Certificates::kServer), "tls-ca-cert-file", renewed.ca()});
  all_are_cut();
  ASSERT_TRUE(becomes_ready(*store));
  ask(io_, *store, check);
  EXPECT_EQ(check.failure, store::Failure::none);
  EXPECT_EQ(check.decisions[0].remaining, 7U);
}

}  // namespace
}  // namespace sluice::testing
