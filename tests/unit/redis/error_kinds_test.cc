#include "store/redis/error_kinds.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

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
  EXPECT_EQ(error_detail(Failure::no_permission, "NOPERM \x1b[2J\x80\nsecond line"), "NOPERM ?[2J?");
  EXPECT_EQ(error_detail(Failure::server_error, std::string(1'000, 'x')), std::string(200, 'x'));
  EXPECT_EQ(error_detail(Failure::out_of_memory, "OOM command not allowed"), "");
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
