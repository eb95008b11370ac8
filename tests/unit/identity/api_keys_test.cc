#include "identity/api_keys.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

std::string problem_of(std::string_view text) {
  const auto keys = ApiKeys::parse(text);
  return keys ? std::string() : keys.error().message;
}

TEST(ApiKeys, knows_whose_a_key_is) {
  const auto keys = ApiKeys::parse(
      "# names and keys\r\n"
      "\n"
      "alice   key-of-alice\r\n"
      "bob\tkey-of-bob\n"
      "alice another-of-alice\n"
      "abc sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n"
      "last no-line-end");
  ASSERT_TRUE(keys) << keys.error().message;
  EXPECT_EQ((*keys)->size(), 5U);
  EXPECT_EQ((*keys)->owner_of("key-of-alice"), "alice");
  EXPECT_EQ((*keys)->owner_of("another-of-alice"), "alice");
  EXPECT_EQ((*keys)->owner_of("key-of-bob"), "bob");
  EXPECT_EQ((*keys)->owner_of("abc"), "abc");
  EXPECT_EQ((*keys)->owner_of("no-line-end"), "last");
}

TEST(ApiKeys, a_byte_order_mark_is_no_part_of_a_name) {
  for (const std::string_view first : {"alice key-of-alice\n", "# names and keys\nalice key-of-alice\n"}) {
    const auto keys = ApiKeys::parse("\xEF\xBB\xBF" + std::string(first));
    ASSERT_TRUE(keys) << keys.error().message;
    EXPECT_EQ((*keys)->size(), 1U);
    EXPECT_EQ((*keys)->owner_of("key-of-alice"), "alice");
  }
}

TEST(ApiKeys, public_report_48_the_whole_key_counts) {
  const auto keys = ApiKeys::parse("one live_AAAA1\ntwo live_AAAA2\n");
  ASSERT_TRUE(keys);
  EXPECT_EQ((*keys)->owner_of("live_AAAA1"), "one");
  EXPECT_EQ((*keys)->owner_of("live_AAAA2"), "two");
  for (const std::string& other : {std::string("live_AAAA"), std::string("live_AAAA3"), std::string("live_AAAA11"),
                                   std::string(), std::string("live_AAAA1\0", 11), std::string(65'536, 'x')}) {
    EXPECT_EQ((*keys)->owner_of(other), "") << other.substr(0, 20);
  }
}

TEST(ApiKeys, tells_what_is_wrong_without_showing_a_key) {
  EXPECT_EQ(problem_of("secretkey\n"), "line 1: expected a name, a space and a key");
  EXPECT_EQ(problem_of("\nalice my secret\n"), "line 2: a name and a key hold no spaces");
  EXPECT_EQ(problem_of("alice sha256:12\n"), "line 1: behind sha256: expected 64 hexadecimal digits");
  EXPECT_EQ(problem_of("alice sha256:" + std::string(63, 'a') + "g\n"),
            "line 1: behind sha256: expected 64 hexadecimal digits");
  EXPECT_EQ(problem_of("alice same\nbob same\n"), "the keys of alice and bob are the same");
  const auto tokens = ApiKeys::parse("secrettoken\n", "token");
  ASSERT_FALSE(tokens);
  EXPECT_EQ(tokens.error().message, "line 1: expected a name, a space and a token");
  const auto none = ApiKeys::parse("# none\n");
  ASSERT_TRUE(none);
  EXPECT_EQ((*none)->size(), 0U);
  EXPECT_EQ((*none)->owner_of("live_AAAA1"), "");
}

}  // namespace
}  // namespace sluice::identity
