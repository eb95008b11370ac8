#include "store/redis/error_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "store/redis/advice.h"

namespace sluice::store::redis {
namespace {

TEST(RedisErrors, AreToldApart) {
  const std::vector<std::pair<std::string_view, Failure>> cases = {
      {"LOADING Redis is loading the dataset in memory", Failure::loading},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL", Failure::busy},
      {"OOM command not allowed when used memory > 'maxmemory'. script: x, on @user_script:1.", Failure::out_of_memory},
      {"ERR Error running script (call to f_1): @user_script:9: @user_script: 9: -OOM command not allowed when used "
       "memory > "
       "'maxmemory'.",
       Failure::out_of_memory},
      {"NOPERM this user has no permissions to run the 'evalsha' command", Failure::no_permission},
      // A right that is missing within the script: Redis 6, 7.0, and what came after them.
      {"ERR Error running script (call to f_1): @user_script:3: @user_script: 3: The user executing the script can't "
       "run "
       "this command or subcommand",
       Failure::no_permission},
      {"ERR The user executing the script can't access at least one of the keys mentioned in the command arguments "
       "script: 1, on @user_script:1.",
       Failure::no_permission},
      {"ERR ACL failure in script: User sluice has no permissions to run the 'zadd' command script: 1, on "
       "@user_script:1.",
       Failure::no_permission},
      {"NOAUTH Authentication required.", Failure::not_authenticated},
      {"WRONGPASS invalid username-password pair or user is disabled.", Failure::not_authenticated},
      {"ERR invalid password", Failure::not_authenticated},
      {"ERR Protocol error: unauthenticated bulk length", Failure::not_authenticated},
      {"WRONGTYPE Operation against a key holding the wrong kind of value (key sluice:{k}x)", Failure::wrong_type},
      {"FOREIGN key sluice:{k}x holds a value that is not a state of this limit", Failure::foreign_value},
      {"CLOCK the windows given", Failure::clock_apart},
      {"ERR unknown command 'EVALSHA'", Failure::server_error},
      {"", Failure::server_error},
      {"LOADINGS", Failure::server_error},
      // A key may hold such a word: only the first word counts, or one that an error inside a script begins with.
      {"ERR something about OOM and READONLY", Failure::server_error},
  };
  for (const auto& [text, failure] : cases) EXPECT_EQ(classify_error(text), failure) << text;
}

TEST(RedisErrors, public_report_61) {
  EXPECT_EQ(
      classify_error("ERR Error running script (call to f_0): @user_script:3: @user_script: 3: -READONLY You can't "
                     "write against a read only replica."),
      Failure::read_only);
  EXPECT_EQ(classify_error("READONLY You can't write against a read only replica. script: f_0, on @user_script:3."),
            Failure::read_only);
}

TEST(RedisErrors, DetailIsOneBoundedPrintableLine) {
  EXPECT_EQ(error_detail(Failure::server_error, "ERR DB index is out of range"), "ERR DB index is out of range");
  EXPECT_EQ(error_detail(Failure::no_permission, "NOPERM \x1b[2J\x80\nsecond line"),
            "NOPERM ?[2J?: " + std::string(kRights));
  EXPECT_EQ(error_detail(Failure::server_error, std::string(1'000, 'x')), std::string(200, 'x'));
}

// What to do about it: the rights and the prefix, the login, the memory.
TEST(RedisErrors, DetailTellsWhatToLookAt) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(error_detail(Failure::no_permission, "NOPERM x"),
              AllOf(HasSubstr("The least rights"), HasSubstr("store.redis.prefix")));
  EXPECT_THAT(error_detail(Failure::not_authenticated, "WRONGPASS x"),
              AllOf(HasSubstr("WRONGPASS x"), HasSubstr("store.redis.username")));
  EXPECT_THAT(error_detail(Failure::out_of_memory, "OOM command not allowed"), HasSubstr("maxmemory"));
  EXPECT_EQ(error_detail(Failure::loading, "LOADING x"), "");
}

TEST(RedisErrors, NoScript) {
  EXPECT_TRUE(is_noscript("NOSCRIPT No matching script. Please use EVAL."));
  EXPECT_FALSE(is_noscript("ERR NOSCRIPT"));
}

TEST(RedisErrors, OnlySomeAreOfOneKey) {
  EXPECT_TRUE(is_of_one_key(Failure::wrong_type));
  EXPECT_TRUE(is_of_one_key(Failure::foreign_value));
  EXPECT_FALSE(is_of_one_key(Failure::out_of_memory));
  EXPECT_FALSE(is_of_one_key(Failure::timeout));
}

}  // namespace
}  // namespace sluice::store::redis
