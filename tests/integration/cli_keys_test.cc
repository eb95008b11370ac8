// sluice keys, the real binary on a real Redis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sluice/limiter.h"
#include "store/redis/advice.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/documented_acl.h"
#include "tests/integration/support/process.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: PerUser, period: 1d, requests_per_unit: 30, algorithm: token_bucket }
    descriptors:
      - key: path
        rate_limit: { period: 1d, requests_per_unit: 5, algorithm: fixed_window }
  - key: log
    rate_limit: { period: 1h, requests_per_unit: 7, algorithm: sliding_log }
  - key: window
    rate_limit: { period: 1h, requests_per_unit: 9, algorithm: sliding_window }
  - key: leaky
    rate_limit: { period: 1h, requests_per_unit: 3600, algorithm: leaky_bucket, queue: 9 }
  - key: month
    rate_limit: { unit: month, requests_per_unit: 11, align: calendar }
)";

class CliKeys : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RedisServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { server_->command({"FLUSHALL"}); }

  // Charges a descriptor as a program would.
  static void charge(LimiterRequest::Descriptor descriptor, std::uint64_t cost) {
    Limiter limiter({.policy_text = kPolicy, .redis_url = server_->url(), .redis_timeout = std::chrono::seconds(5)});
    const LimiterAnswer answer =
        limiter.check({.domain = "shop", .descriptors = {std::move(descriptor)}, .cost = cost});
    ASSERT_TRUE(answer.allowed);
    ASSERT_EQ(answer.decision.source, Source::redis);
  }
  struct Outcome {
    std::optional<int> code;
    std::string output;
  };
  static Outcome run(const std::vector<std::string>& words) {
    std::vector<std::string> command{test::sluice_binary(), "keys"};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--store.redis.url", server_->url()});
    test::Process process(command);
    const auto code = process.wait();
    return {code, process.output()};
  }
  [[nodiscard]] Outcome with_policy(std::vector<std::string> words) const {
    words.insert(words.end(), {"--policy", policy_});
    return run(words);
  }
  static boost::json::object object(const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return boost::json::parse(outcome.output).as_object();
  }

  static inline std::unique_ptr<RedisServer> server_;
  const test::TempFolder folder_;
  const std::string policy_ = folder_.write("policy.yaml", kPolicy);
};

TEST_F(CliKeys, InspectTellsEachAlgorithm) {
  struct Case {
    LimiterRequest::Descriptor descriptor;
    std::string text;
    std::string_view algorithm;
    std::uint64_t limit;
  };
  const Case cases[] = {{{{"user", "42"}}, "user=42", "token_bucket", 30},
                        {{{"user", "42"}, {"path", "/x"}}, "user=42,path=/x", "fixed_window", 5},
                        {{{"log", "a"}}, "log=a", "sliding_log", 7},
                        {{{"window", "a"}}, "window=a", "sliding_window", 9},
                        {{{"leaky", "a"}}, "leaky=a", "leaky_bucket", 10},
                        {{{"month", "a"}}, "month=a", "fixed_window", 11}};
  for (const Case& one : cases) {
    const boost::json::object fresh = object(with_policy({"inspect", "--json", one.text}));
    EXPECT_FALSE(fresh.at("found").as_bool()) << one.text;
    EXPECT_EQ(fresh.at("remaining").to_number<std::uint64_t>(), one.limit) << one.text;
    charge(one.descriptor, 2);
    const boost::json::object told = object(with_policy({"inspect", "--json", one.text}));
    EXPECT_TRUE(told.at("found").as_bool()) << one.text;
    EXPECT_EQ(told.at("algorithm").as_string(), one.algorithm);
    EXPECT_EQ(told.at("limit").to_number<std::uint64_t>(), one.limit) << one.text;
    EXPECT_EQ(told.at("remaining").to_number<std::uint64_t>(), one.limit - 2) << one.text;
    EXPECT_FALSE(told.contains("problem")) << boost::json::serialize(told);
    EXPECT_GT(told.at("ttl").to_number<double>(), 0) << one.text;
    EXPECT_GE(told.at("age").to_number<double>(), 0) << one.text;
    EXPECT_LT(told.at("age").to_number<double>(), 60) << one.text;
    EXPECT_GE(told.at("ttl").to_number<double>(), told.at("reset_after").to_number<double>()) << one.text;
    // Without the policy the value tells what it can.
    const std::string name(told.at("key").as_string());
    const boost::json::object alone = object(run({"inspect", "--json", "--key", name}));
    EXPECT_FALSE(alone.contains("problem")) << boost::json::serialize(alone);
    EXPECT_GT(alone.at("ttl").to_number<double>(), 0) << one.text;
    if (one.text != "month=a") {
      EXPECT_EQ(alone.at("used").to_number<std::uint64_t>(), 2U) << one.text;
    }
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), 6);
}

TEST_F(CliKeys, InspectInWords) {
  charge({{"user", "42"}}, 3);
  const Outcome told = with_policy({"inspect", "--domain", "shop", "user=42"});
  EXPECT_EQ(told.code, 0);
  EXPECT_THAT(told.output, HasSubstr("sluice:{42}shop/user;tb\n  limit: PerUser\n  algorithm: token bucket, 30 per 1d, "
                                     "burst 30\n  remaining: 27 of 30\n  reset after: "));
  EXPECT_THAT(told.output, HasSubstr("  last changed: "));
  EXPECT_THAT(with_policy({"inspect", "user=none"}).output, HasSubstr("  state: none: as never used\n"));
}

TEST_F(CliKeys, WhatIsNotAStateIsNamed) {
  server_->command({"SET", "sluice:{42}shop/user;tb", "hello"});
  server_->command({"LPUSH", "sluice:{43}shop/user;tb", "1"});
  server_->command({"SET", "sluice:{44}shop/user;tb", std::string("\x01t\x00\x01", 4)});
  server_->command({"SET", "sluice:other", "1"});
  const Outcome told = with_policy({"inspect", "--pattern", "sluice:*"});
  EXPECT_EQ(told.code, 0);
  EXPECT_THAT(told.output, HasSubstr("problem: a foreign value: it does not begin as a state does"));
  EXPECT_THAT(told.output, HasSubstr("problem: a list is no state of a limit"));
  EXPECT_THAT(told.output, HasSubstr("problem: a key holds a value that is not a state of its limit"));
  EXPECT_THAT(told.output, HasSubstr("problem: the name is not one of Sluice's"));
  const Outcome without_policy = run({"inspect", "--pattern", "sluice:*"});
  EXPECT_EQ(without_policy.code, 0);
  EXPECT_THAT(without_policy.output, HasSubstr("its numbers are out of range"));
}

TEST_F(CliKeys, ResetRemovesExactlyThese) {
  for (const char* user : {"1", "2", "3"}) charge({{"user", user}}, 1);
  Outcome told = with_policy({"reset", "user=1"});
  EXPECT_EQ(told.output, "1 of 1 key removed\n");
  EXPECT_EQ(with_policy({"reset", "user=1"}).output, "0 of 1 key removed; the other was not there\n");
  EXPECT_EQ(run({"reset", "--key", "sluice:{2}shop/user;tb", "--json"}).output, "{\"keys\":1,\"removed\":1}\n");
  EXPECT_EQ(server_->integer({"DBSIZE"}), 1);
  server_->command({"SET", "sluic", "theirs"});
  told = run({"reset", "--pattern", "sluice:*"});
  EXPECT_EQ(told.code, 1);
  EXPECT_THAT(told.output, HasSubstr("1 key matches; say --yes to remove it"));
  EXPECT_EQ(run({"reset", "--pattern", "sluice:*", "--yes"}).output, "1 of 1 key removed\n");
  EXPECT_EQ(server_->integer({"DBSIZE"}), 1);
  const Outcome nothing = run({"inspect", "--pattern", "sluice:*"});
  EXPECT_EQ(nothing.code, 0);
  EXPECT_THAT(nothing.output, HasSubstr("no counter matches sluice:*"));
}

// The rights of the daemon's user, and besides them those that the manual names, are enough.
TEST_F(CliKeys, NeedsTheDocumentedRightsAlone) {
  charge({{"user", "42"}}, 3);
  charge({{"log", "a"}}, 2);
  for (const std::string_view title : {kOneServer, kOperators}) {
    std::istringstream line(documented_user(title));
    std::vector<std::string> words{"ACL", "SETUSER"};
    line >> words.emplace_back();  // "user"
    words.pop_back();
    for (std::string word; line >> word;) words.push_back(word);
    ASSERT_EQ(server_->command(words)->type, REDIS_REPLY_STATUS);
  }
  const auto as_user = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--store.redis.username", "sluice", "--store.redis.password", "secret"});
    return with_policy(words);
  };
  EXPECT_EQ(object(as_user({"inspect", "--json", "user=42"})).at("remaining").to_number<int>(), 27);
  EXPECT_EQ(object(as_user({"inspect", "--json", "log=a"})).at("remaining").to_number<int>(), 5);
  const Outcome all = as_user({"inspect", "--pattern", "sluice:*"});
  EXPECT_EQ(all.code, 0) << all.output;
  EXPECT_THAT(all.output, ::testing::Not(HasSubstr("problem")));
  EXPECT_EQ(as_user({"reset", "--pattern", "sluice:*", "--yes"}).output, "2 of 2 keys removed\n");
  server_->command({"ACL", "DELUSER", "sluice"});
}

TEST_F(CliKeys, MistakesAreTold) {
  for (int i = 0; i < 3; ++i) server_->command({"SET", "sluice:{" + std::to_string(i) + "}x", "1"});
  const auto told = [](const Outcome& outcome) {
    EXPECT_EQ(outcome.code, 1);
    return outcome.output;
  };
  EXPECT_THAT(told(run({"inspect", "--pattern", "sluice:*", "--most", "2"})), HasSubstr("more than 2 keys match"));
  EXPECT_THAT(told(run({"reset", "--pattern", "*", "--yes"})), HasSubstr("must begin with the prefix sluice:"));
  EXPECT_EQ(server_->integer({"DBSIZE"}), 3);
  EXPECT_THAT(told(run({"inspect", "user=42"})), HasSubstr("descriptors need a policy"));
  EXPECT_THAT(told(with_policy({"inspect", "team=42"})), HasSubstr("no limit of domain 'shop' counts team=42"));
  EXPECT_THAT(told(run({"inspect"})), HasSubstr("name the counters"));
  EXPECT_THAT(told(run({"inspect", "--key", "x", "--store.redis.url", "redis://other"})),
              HasSubstr("--store.redis.url is given more than once"));
  EXPECT_THAT(told(run({"remove", "--key", "x"})), HasSubstr("expected inspect or reset, found 'remove'"));
}

TEST_F(CliKeys, KeysOfOthersAreNeverRemoved) {
  server_->command({"SET", "other", "theirs"});
  server_->command({"SET", "sluice:ticket:1", "a ticket"});
  server_->command({"SET", "sluice:{1}shop/user;tb", "ours, as its name says"});
  for (const char* name : {"other", "sluice:ticket:1", "sluice:", ""}) {
    const Outcome told = run({"reset", "--key", "sluice:{1}shop/user;tb", "--key", name});
    EXPECT_EQ(told.code, 1) << name;
    EXPECT_THAT(told.output, HasSubstr("'" + std::string(name) +
                                       "' is not the name of a counter of Sluice's "
                                       "(sluice:{first value}limit); nothing was removed"));
  }
  EXPECT_EQ(server_->integer({"DBSIZE"}), 3);
  EXPECT_EQ(run({"reset", "--pattern", "sluice:*", "--yes"}).output,
            "1 of 1 key removed; 1 key of the pattern left alone, as it is no counter\n");
  EXPECT_EQ(run({"reset", "--pattern", "sluice:*", "--yes", "--json"}).output,
            "{\"keys\":0,\"removed\":0,\"left_alone\":1}\n");
  EXPECT_EQ(server_->integer({"DBSIZE"}), 2);
}

TEST_F(CliKeys, NamesCannotCommandATerminalNorBreakJson) {
  const std::string name = "sluice:{\x1b]0;owned\x07\xff}x";
  server_->command({"SET", name, "1"});
  const Outcome words = run({"inspect", "--pattern", "sluice:*"});
  EXPECT_EQ(words.code, 0);
  EXPECT_THAT(words.output, HasSubstr("sluice:{\\x1b]0;owned\\x07\\xff}x\n"));
  const boost::json::object told = object(run({"inspect", "--pattern", "sluice:*", "--json"}));
  EXPECT_EQ(told.at("key").as_string(), "sluice:{\x1b]0;owned\x07\xef\xbf\xbd}x");
  EXPECT_EQ(told.at("key_hex").as_string(), "736c756963653a7b1b5d303b6f776e656407ff7d78");
  // What is given on the command line comes back in messages.
  for (const Outcome& outcome : {run({"\x1b[2J"}), run({"reset", "--key", "\x1b[2J\xff"}),
                                 with_policy({"inspect", "--domain", "\x1b[2J\xff", "user=1"})}) {
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.output, ::testing::AllOf(HasSubstr("1b[2J"), ::testing::Not(HasSubstr("\x1b")),
                                                 ::testing::Not(HasSubstr("\xff"))));
  }
}

// More than one batch, and more than can be done without a word where nobody sees it.
TEST_F(CliKeys, ResetOfManyKeysRemovesThemAll) {
  server_->command({"EVAL", "for i = 1, 20000 do redis.call('SET', 'sluice:{' .. i .. '}shop/user;tb', 'x') end", "0"});
  const Outcome told = run({"reset", "--pattern", "sluice:*", "--most", "30000", "--yes"});
  EXPECT_THAT(told.output, ::testing::EndsWith("20000 of 20000 keys removed\n"));
  EXPECT_EQ(server_->integer({"DBSIZE"}), 0);
}

// What serve refuses, keys refuses, with the same words; and what the URL says is what is asked.
TEST_F(CliKeys, ServersThatAreOfAnotherKind) {
  const RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(server_->port())});
  const RedisServer node({"--cluster-enabled", "yes"});
  const RedisServer sentinel({"--sentinel"},
                             "sentinel monitor mymaster 127.0.0.1 " + std::to_string(server_->port()) + " 1\n");
  const auto host = [](const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); };
  const auto expect = [](const std::string& url, std::string_view words) {
    for (const std::vector<std::string>& action :
         {std::vector<std::string>{"inspect", "--pattern", "sluice:*"}, {"reset", "--key", "sluice:{1}x"}}) {
      std::vector<std::string> command{test::sluice_binary(), "keys"};
      command.insert(command.end(), action.begin(), action.end());
      command.insert(command.end(), {"--store.redis.url", url});
      test::Process process(command);
      EXPECT_EQ(process.wait(), 1) << url;
      EXPECT_THAT(process.output(), HasSubstr(std::string(words))) << url;
    }
  };
  expect(replica.url(), store::redis::kNotMaster);
  expect(node.url(), store::redis::kIsClusterNode);
  expect(sentinel.url(), store::redis::kIsSentinel);
  expect("redis+cluster://" + host(*server_), store::redis::kIsNoCluster);
  expect("redis+cluster://" + host(sentinel), store::redis::kKnowsNoCluster);
  expect("redis-sentinel://" + host(*server_) + "/mymaster", store::redis::kIsNoSentinel);
  expect(server_->url() + "/99", store::redis::kNoDatabase);
}

TEST_F(CliKeys, AUserWithAPassword) {
  RedisServer locked({}, "requirepass default\nuser ops on >secret ~sluice:* +@all\n");
  const auto told = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {test::sluice_binary(), "keys", "inspect", "--key", "sluice:{1}x", "--store.redis.url", locked.url()});
    test::Process process(words);
    (void)process.wait();
    return process.output();
  };
  EXPECT_THAT(told({}), HasSubstr("NOAUTH"));
  EXPECT_THAT(told({"--store.redis.username", "ops", "--store.redis.password", "wrong"}), HasSubstr("WRONGPASS"));
  EXPECT_THAT(told({"--store.redis.username", "ops", "--store.redis.password", "secret"}),
              HasSubstr("state: none: as never used"));
  const std::string file = folder_.write("password", "secret\n");
  EXPECT_THAT(told({"--store.redis.username", "ops", "--store.redis.password_file", file}),
              HasSubstr("state: none: as never used"));
}

}  // namespace
}  // namespace sluice::testing
