#include "limiter/redis_options.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sluice::limiter {
namespace {

using namespace std::chrono_literals;
using OverTls = store::redis::Access::SentinelTls;

TEST(RedisOptionsOfAProgram, DefaultsAreTheDaemons) {
  const store::redis::RedisOptions redis = redis_options({.redis_url = "redis://h:1"});
  const store::redis::RedisOptions usual;
  EXPECT_EQ(redis.url, "redis://h:1");
  EXPECT_EQ(redis.prefix, usual.prefix);
  EXPECT_EQ(redis.timeout, 20ms);
  EXPECT_EQ(redis.failures, 5U);
  EXPECT_EQ(redis.probe_interval, 500ms);
  EXPECT_EQ(redis.connection_max_age, 1h);
  EXPECT_EQ(redis.wait_timeout, 10ms);
  EXPECT_EQ(redis.script_style, store::redis::ScriptStyle::fast);
  EXPECT_TRUE(redis.access.tls.verify);
  EXPECT_EQ(redis.access.sentinel_tls, OverTls::same);
}

TEST(RedisOptionsOfAProgram, EachReachesTheStore) {
  LimiterOptions options{
      .redis_url = "rediss-sentinel://h/m",
      .redis_master = "master",
      .redis_username = "user",
      .redis_password = "password",
      .redis_password_file = "file",
      .redis_tls = {.ca = "ca", .cert = "cert", .key = "key", .server_name = "name", .verify = false},
      .redis_sentinel = {.username = "s-user",
                         .password = "s-password",
                         .password_file = "s-file",
                         .over_tls = RedisSentinel::OverTls::on,
                         .tls = {.ca = "s-ca", .cert = "s-cert", .key = "s-key", .verify_name = false}},
      .redis_cluster_groups = 64,
      .redis_proxy = true,
      .redis_wait_replicas = 2,
      .redis_wait_timeout = 1'500us,
      .redis_prefix = "p:",
      .redis_timeout = 3ms,
      .redis_failures = 4,
      .redis_probe_interval = 6ms,
      .redis_connection_max_age = 7s,
      .redis_script_style = RedisScriptStyle::literal};
  const store::redis::RedisOptions redis = redis_options(options);
  const store::redis::Access& access = redis.access;
  const std::vector<std::pair<std::string, std::string>> texts{{redis.url, "rediss-sentinel://h/m"},
                                                               {access.master, "master"},
                                                               {access.user, "user"},
                                                               {access.password, "password"},
                                                               {access.password_file, "file"},
                                                               {access.tls.ca, "ca"},
                                                               {access.tls.cert, "cert"},
                                                               {access.tls.key, "key"},
                                                               {access.tls.server_name, "name"},
                                                               {access.sentinel_user, "s-user"},
                                                               {access.sentinel_password, "s-password"},
                                                               {access.sentinel_password_file, "s-file"},
                                                               {access.sentinel_tls_files.ca, "s-ca"},
                                                               {access.sentinel_tls_files.cert, "s-cert"},
                                                               {access.sentinel_tls_files.key, "s-key"},
                                                               {redis.prefix, "p:"}};
  for (const auto& [found, expected] : texts) EXPECT_EQ(found, expected);
  EXPECT_FALSE(access.tls.verify);
  EXPECT_TRUE(access.sentinel_tls_files.verify);
  EXPECT_TRUE(access.tls.verify_name);
  EXPECT_FALSE(access.sentinel_tls_files.verify_name);
  EXPECT_EQ(access.sentinel_tls, OverTls::on);
  EXPECT_EQ(redis.cluster_groups, 64U);
  EXPECT_TRUE(redis.proxy);
  EXPECT_EQ(redis.wait_replicas, 2U);
  EXPECT_EQ(redis.wait_timeout, 2ms);  // up to the next whole one
  EXPECT_EQ(redis.timeout, 3ms);
  EXPECT_EQ(redis.failures, 4U);
  EXPECT_EQ(redis.probe_interval, 6ms);
  EXPECT_EQ(redis.connection_max_age, 7s);
  EXPECT_EQ(redis.script_style, store::redis::ScriptStyle::literal);
  options.redis_sentinel.over_tls = RedisSentinel::OverTls::off;
  EXPECT_EQ(redis_options(options).access.sentinel_tls, OverTls::off);
}

TEST(RedisOptionsOfAProgram, WhatContradictsIsTold) {
  constexpr const char* policy =
      "domain: d\ndescriptors: [{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }]";
  const auto told = [](LimiterOptions options) -> std::string {
    try {
      const Limiter limiter(options);
    } catch (const std::invalid_argument& problem) {
      return problem.what();
    }
    return "nothing";
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(told({.policy_text = policy, .redis_url = "redis://h", .redis_username = "u"}), "needs a password"));
  EXPECT_TRUE(has(told({.policy_text = policy, .redis_url = "redis://h", .redis_tls = {.ca = "x"}}), "rediss://"));
  EXPECT_TRUE(
      has(told({.policy_text = policy, .redis_url = "rediss://h", .redis_tls = {.ca = "/no/such"}}), "/no/such"));
  EXPECT_TRUE(
      has(told({.policy_text = policy, .redis_url = "redis://h", .redis_cluster_groups = 3}), "only a cluster"));
  EXPECT_TRUE(has(told({.policy_text = policy, .redis_url = "redis://h", .redis_sentinel = {.password = "x"}}),
                  "names no sentinels"));
}

}  // namespace
}  // namespace sluice::limiter
