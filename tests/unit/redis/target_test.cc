#include "store/redis/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "store/redis/redis_options.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RedisTarget, UserAndPasswordMayStandApart) {
  Access access;
  access.password = "secret";
  for (const char* url : {"redis://me@h", "redis://me:@h", "redis+cluster://me@h", "redis-sentinel://me@h/m"}) {
    const auto resolved = resolve_target(url, access);
    ASSERT_TRUE(resolved) << url << ": " << resolved.error().message;
    EXPECT_EQ(resolved->credentials.user, "me");
    EXPECT_EQ(resolved->credentials.password, "secret");
  }
  Access in_a_file;
  in_a_file.password_file = "/run/password";
  EXPECT_EQ(resolve_target("redis://me@h", in_a_file)->credentials.password_file, "/run/password");
  // Somebody's password, perhaps.
  EXPECT_THAT(resolve_target("redis://secret@h", {}).error().message,
              AllOf(HasSubstr(":password"), HasSubstr("store.redis.password"), Not(HasSubstr("secret"))));
  access.user = "other";
  EXPECT_THAT(resolve_target("redis://me@h", access).error().message, HasSubstr("another one is in the URL"));
  EXPECT_THAT(resolve_target("redis://:x@h", access).error().message, HasSubstr("leave one of them out"));
}

// What is told of a sentinel's certificate names the settings that are in force for it.
TEST(RedisTarget, TheSettingsOfSentinelsAreNamed) {
  Access access;
  access.tls.ca = "/ca";
  EXPECT_EQ(resolve_target("rediss-sentinel://h/m", access)->sentinel_tls.setting, "store.redis.tls");
  access.sentinel_tls_files.ca = "/other";
  const auto own = resolve_target("rediss-sentinel://h/m", access);
  EXPECT_EQ(own->sentinel_tls.setting, "store.redis.sentinel.tls");
  EXPECT_EQ(own->sentinel_tls.ca, "/other");
}

TEST(RedisTarget, NobodyWaitsForReplicasAfterTheCheckIsAnswered) {
  RedisOptions options{.timeout = 20ms, .wait_replicas = 1, .wait_timeout = 21ms};
  const Target target = resolve_target(options.url, {})->target;
  EXPECT_THAT(check_numbers(options, target)->message,
              AllOf(HasSubstr("store.redis.timeout"), HasSubstr("store.redis.wait_timeout")));
  options.wait_timeout = 20ms;
  EXPECT_FALSE(check_numbers(options, target));
  options.wait_timeout = 21ms;
  options.wait_replicas = 0;
  EXPECT_FALSE(check_numbers(options, target));
}

}  // namespace
}  // namespace sluice::store::redis
