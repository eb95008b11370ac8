// Whoever speaks to Redis, where it is as production runs it: behind Sentinel and as a cluster, over TLS, by a user
// with the manual's rights. The library by its options, sluice keys by flags, and both commands by the variables of
// envoyproxy/ratelimit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sluice/limiter.h"
#include "store/redis/key_slot.h"
#include "tests/integration/redis_secured.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/redis_sets.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/documented_acl.h"
#include "tests/integration/support/process.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: PerUser, period: 1d, requests_per_unit: 30, algorithm: token_bucket }
)";
const std::string kUrlFlag = "--store.redis.url";

LimiterOptions options_of(const std::string& url, const store::redis::Access& access) {
  return {.policy_text = kPolicy,
          .redis_url = url,
          .redis_username = access.user,
          .redis_password_file = access.password_file,
          .redis_tls = {.ca = access.tls.ca,
                        .cert = access.tls.cert,
                        .key = access.tls.key,
                        .server_name = access.tls.server_name},
          .redis_timeout = std::chrono::seconds(5)};
}

// Charges one token of each of so many users, or `cost` of one.
void charge(const LimiterOptions& options, int users, std::uint64_t cost = 1) {
  Limiter limiter(options);
  ASSERT_TRUE(wait_for([&] { return limiter.ready(); }));
  for (int i = 1; i <= users; ++i) {
    const LimiterRequest request{
        .domain = "shop", .descriptors = {{{"user", std::to_string(i)}}}, .cost = cost, .peek = true};
    // A cluster's masters are connected one by one, and a check that is not answered by Redis would not be charged.
    ASSERT_TRUE(wait_for([&] { return limiter.check(request).decision.source == Source::redis; }));
    LimiterRequest charged = request;
    charged.peek = false;
    ASSERT_EQ(limiter.check(charged).decision.source, Source::redis);
  }
}

class SecuredRedisClients : public ::testing::Test {
 protected:
  // The daemon's rights, and those of people.
  static SetOptions servers(const SecuredRedis& secured) {
    SetOptions options = secured.servers();
    options.config.pop_back();
    options.config += " " + documented_rights(kOperators) + "\n";
    return options;
  }
  static Words flags_of(const store::redis::Access& access) {
    return {"--store.redis.username", access.user,    "--store.redis.password_file",   access.password_file,
            "--store.redis.tls.ca",   access.tls.ca,  "--store.redis.tls.cert",        access.tls.cert,
            "--store.redis.tls.key",  access.tls.key, "--store.redis.tls.server_name", access.tls.server_name};
  }
  // `variables`: NAME=value.
  [[nodiscard]] std::string keys(Words words, const Words& flags, const Words& variables = {}) const {
    Words command{"/usr/bin/env"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.insert(command.end(), {test::sluice_binary(), "keys"});
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--policy", policy_});
    command.insert(command.end(), flags.begin(), flags.end());
    test::Process process(command);
    (void)process.wait();
    return process.output();
  }
  // Of both TLS and the password, as envoyproxy/ratelimit has them.
  static Words variables_of(const store::redis::Access& access) {
    return {"REDIS_TLS=true",
            "REDIS_TLS_CACERT=" + access.tls.ca,
            "REDIS_TLS_CLIENT_CERT=" + access.tls.cert,
            "REDIS_TLS_CLIENT_KEY=" + access.tls.key,
            "REDIS_AUTH=sluice:secret",
            "REDIS_TIMEOUT=5s"};
  }
  static std::string without_scheme(const std::string& url) { return url.substr(url.find("://") + 3); }

  const test::TempFolder folder_;
  const std::string policy_ = folder_.write("policy.yaml", kPolicy);
};

TEST_F(SecuredRedisClients, BehindSentinel) {
  const SecuredRedis secured(kBehindSentinel);
  SentinelSet set(servers(secured));
  const store::redis::Access access = secured.access();
  LimiterOptions options = options_of(set.url(), access);
  options.redis_sentinel = {.username = access.sentinel_user, .password = access.sentinel_password};
  charge(options, 1, 3);
  Words flags = flags_of(access);
  flags.insert(flags.end(), {"--store.redis.sentinel.username", access.sentinel_user, "--store.redis.sentinel.password",
                             access.sentinel_password});
  Words at_url = flags;
  at_url.insert(at_url.end(), {kUrlFlag, set.url()});
  EXPECT_THAT(keys({"inspect", "user=1"}, at_url), HasSubstr("  remaining: 27 of 30\n"));
  EXPECT_THAT(keys({"inspect", "--pattern", "sluice:*"}, at_url), HasSubstr("  remaining: 27 of 30\n"));
  Words elsewhere = flags;
  elsewhere.insert(elsewhere.end(), {kUrlFlag, set.url().substr(0, set.url().rfind('/')) + "/another"});
  EXPECT_THAT(keys({"inspect", "user=1"}, elsewhere), HasSubstr("does not know the master another"));

  // "mymaster,host:port,…", and a certificate that names none of these hosts.
  const std::string addresses = without_scheme(set.url()).substr(0, without_scheme(set.url()).rfind('/'));
  Words variables = variables_of(access);
  variables.insert(variables.end(),
                   {"REDIS_TYPE=SENTINEL", "REDIS_URL=" + std::string(SentinelSet::kMaster) + "," + addresses,
                    "REDIS_SENTINEL_AUTH=sluice:another"});
  EXPECT_THAT(keys({"inspect", "user=1"}, {}, variables), HasSubstr("TLS: "));
  variables.emplace_back("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true");
  EXPECT_THAT(keys({"inspect", "user=1"}, {}, variables), HasSubstr("  remaining: 27 of 30\n"));

  EXPECT_THAT(keys({"reset", "user=1"}, at_url), HasSubstr("1 of 1 key removed"));
  EXPECT_EQ(set.master().integer({"DBSIZE"}), 0);
}

TEST_F(SecuredRedisClients, InACluster) {
  const SecuredRedis secured(kClusterNodes);
  ClusterSet set(servers(secured));
  const store::redis::Access access = secured.access();
  Words flags = flags_of(access);
  flags.insert(flags.end(), {kUrlFlag, set.url()});
  Words variables = variables_of(access);
  variables.insert(variables.end(), {"REDIS_TYPE=cluster", "REDIS_URL=" + without_scheme(set.url()),
                                     "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true"});
  for (const char* groups : {"0", "3"}) {
    LimiterOptions options = options_of(set.url(), access);
    options.redis_cluster_groups = static_cast<std::uint32_t>(std::stoul(groups));
    charge(options, 20);
    const Words of_groups{"--store.redis.cluster_groups", groups};
    Words all_flags = flags;
    all_flags.insert(all_flags.end(), of_groups.begin(), of_groups.end());
    EXPECT_THAT(keys({"inspect", "user=7"}, all_flags), HasSubstr("  remaining: 29 of 30\n")) << groups;
    EXPECT_THAT(keys({"inspect", "user=8"}, of_groups, variables), HasSubstr("  remaining: 29 of 30\n")) << groups;
    const std::string all = keys({"inspect", "--pattern", "sluice:*", "--json"}, all_flags);
    EXPECT_EQ(std::ranges::count(all, '\n'), 20) << all;
    EXPECT_THAT(all, Not(HasSubstr("problem")));
    EXPECT_THAT(keys({"reset", "user=7"}, all_flags), HasSubstr("1 of 1 key removed"));
    EXPECT_THAT(keys({"reset", "--pattern", "sluice:*", "--yes"}, all_flags), HasSubstr("19 of 19 keys removed"));
    for (std::size_t i = 0; i < ClusterSet::kMasters; ++i) EXPECT_EQ(set.server(i).integer({"DBSIZE"}), 0);
  }
  // While a slot is on its way, its keys are here or there.
  charge(options_of(set.url(), access), 1, 3);
  const std::string name = "sluice:{1}shop/user;tb";
  const std::size_t from = set.owner_of(name);
  const std::size_t to = (from + 1) % ClusterSet::kMasters;
  const std::uint16_t slot = store::redis::key_slot(name);
  set.begin_move(slot, from, to);
  EXPECT_THAT(keys({"inspect", "user=1"}, flags), HasSubstr("  remaining: 27 of 30\n"));
  set.migrate(name, from, to);
  EXPECT_THAT(keys({"inspect", "user=1"}, flags), HasSubstr("  remaining: 27 of 30\n"));
  EXPECT_THAT(keys({"reset", "user=1"}, flags), HasSubstr("1 of 1 key removed"));
  set.end_move(slot, from, to);
}

// A daemon that is told by nothing but the variables.
TEST_F(SecuredRedisClients, ADaemonByVariablesAlone) {
  RedisServer open;
  RedisServer locked({}, "requirepass pw\n");
  const SecuredRedis secured(kOneServer);
  RedisServer secret = secured.server();
  const auto host = [](const RedisServer& server) { return "127.0.0.1:" + std::to_string(server.port()); };
  Words over_tls = variables_of(secured.access());
  over_tls.insert(over_tls.end(), {"REDIS_URL=" + host(secret), "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=1"});
  const std::vector<Words> cases{
      {"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=" + host(open)},
      {"REDIS_SOCKET_TYPE=unix", "REDIS_URL=" + open.socket_path(), "REDIS_POOL_SIZE=10"},
      {"REDIS_URL=" + host(locked), "REDIS_AUTH=pw"},
      {"REDIS_URL=redis://:pw@" + host(locked)},
      over_tls,
  };
  for (const Words& variables : cases) {
    Words command{"/usr/bin/env"};
    command.insert(command.end(), variables.begin(), variables.end());
    command.insert(command.end(), {test::sluice_binary(), "serve", "--policy", policy_, "--listen.http", "127.0.0.1:0",
                                   "--listen.admin", "off", "--listen.grpc", "off"});
    test::Process daemon(command);
    EXPECT_TRUE(daemon.has_printed("redis: connected, limits are shared")) << daemon.output();
    EXPECT_THAT(daemon.output(), HasSubstr("counters in Redis "));
    EXPECT_EQ(daemon.output().find("REDIS_POOL_SIZE has no effect") != std::string::npos,
              std::ranges::find(variables, "REDIS_POOL_SIZE=10") != variables.end());
  }
}

}  // namespace
}  // namespace sluice::testing
