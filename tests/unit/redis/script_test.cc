#include "store/redis/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/literal_text.h"

namespace sluice::store::redis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A redis.call or redis.pcall: its arguments as they are written.
using Words = std::vector<std::string>;

std::vector<Words> calls_in(std::string_view code) {
  std::vector<Words> found;
  for (std::size_t at = code.find("call("); at != std::string_view::npos; at = code.find("call(", at + 1)) {
    Words words(1);
    int depth = 1;
    for (std::size_t i = at + 5; depth > 0; ++i) {
      const char byte = code[i];
      if (byte == '(' || byte == '[') ++depth;
      if (byte == ')' || byte == ']') --depth;
      if (depth == 0) break;
      if (depth == 1 && byte == ',') {
        words.emplace_back();
      } else if (byte != ' ' && byte != '\n') {
        words.back() += byte;
      }
    }
    found.push_back(words);
  }
  return found;
}

class CheckScript : public ::testing::TestWithParam<ScriptStyle> {
 protected:
  const std::string& text_ = check_script(GetParam()).text;
};

INSTANTIATE_TEST_SUITE_P(Styles, CheckScript, ::testing::Values(ScriptStyle::fast, ScriptStyle::literal),
                         [](const auto& tested) { return tested.param == ScriptStyle::fast ? "fast" : "literal"; });

// Nothing that came after Redis 5.0, in commands or in their flags.
TEST_P(CheckScript, UsesOnlyOldCommands) {
  std::set<std::string> commands;
  std::set<std::string> flags;
  for (const Words& words : calls_in(text_)) {
    commands.insert(words[0]);
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i].starts_with('\'') && std::isalpha(static_cast<unsigned char>(words[i][1])) != 0)
        flags.insert(words[i]);
    }
  }
  EXPECT_THAT(commands, ::testing::UnorderedElementsAre("'TIME'", "'GET'", "'SET'", "'SETRANGE'", "'DEL'", "'PEXPIRE'",
                                                        "'ZADD'", "'ZREM'", "'ZRANGE'", "'ZRANGEBYSCORE'",
                                                        "'ZREMRANGEBYRANK'", "'ZRANK'", "'ZCARD'", "'ZSCORE'"));
  EXPECT_THAT(flags, ::testing::UnorderedElementsAre("'PX'", "'LIMIT'", "'WITHSCORES'"));
}

// No state is ever without an expiry: a string has it from the command that sets it, a sorted set from the same step.
TEST_P(CheckScript, SetsNothingWithoutAnExpiry) {
  std::set<std::string> commands;
  for (const Words& words : calls_in(text_)) {
    commands.insert(words[0]);
    if (words[0] == "'SET'") {
      EXPECT_EQ(words[3], "'PX'");
    }
  }
  EXPECT_TRUE(commands.contains("'PEXPIRE'"));
}

// Every key is in KEYS; nothing else is named, and no name is made.
TEST_P(CheckScript, public_report_60) {
  std::size_t named = 0;
  for (const Words& words : calls_in(text_)) {
    if (words[0] == "'TIME'") continue;
    ASSERT_GE(words.size(), 2U);
    EXPECT_TRUE(words[1].starts_with("KEYS[") && words[1].ends_with("]")) << words[1];
    ++named;
  }
  std::size_t all = 0;
  for (std::size_t at = text_.find("KEYS"); at != std::string::npos; at = text_.find("KEYS", at + 1)) ++all;
  EXPECT_EQ(named, all);  // and keys are in no other expression
}

TEST(LiteralScript, NamesKeysByNumbersAlone) {
  std::set<std::string> keys;
  for (const Words& words : calls_in(check_script(ScriptStyle::literal).text)) {
    if (words[0] != "'TIME'") keys.insert(words[1]);
  }
  std::set<std::string> numbers;
  for (std::size_t i = 1; i <= kMostLiteralKeys; ++i) numbers.insert("KEYS[" + std::to_string(i) + "]");
  EXPECT_EQ(keys, numbers);
  EXPECT_THAT(check_script(ScriptStyle::literal).text, Not(HasSubstr("MGET")));
}

TEST(LiteralScript, IsTheFastOneButForKeys) {
  EXPECT_EQ(literal_text("local a = redis.call('SET', KEYS[i + 1], f(x, 'a,b'), 'PX', t[1])\nreturn 'KEYS, x'\n", 2),
            "local function on_key_1(i,a2,a4)\n"
            "if i==1 then return redis.call('SET',KEYS[1],a2,'PX',a4) end\n"
            "if i==2 then return redis.call('SET',KEYS[2],a2,'PX',a4) end\n"
            "error('a key beyond the last of this text')\nend\n"
            "local a = on_key_1(i + 1,f(x, 'a,b'),t[1])\nreturn 'KEYS, x'\n");
  // Equal commands share a function, others don't; what has no key stays.
  const std::string three = literal_text(
      "redis.call('TIME') redis.call('GET', KEYS[a]) redis.call('GET', KEYS[b]) redis.pcall('GET', KEYS[c])", 1);
  EXPECT_THAT(three, HasSubstr("redis.call('TIME') on_key_1(a) on_key_1(b) on_key_2(c)"));
}

// Numbers never become text by Lua's own rules, which keep 14 digits.
TEST_P(CheckScript, public_report_64) { EXPECT_THAT(text_, Not(HasSubstr("tostring"))); }

// Sections are all in their places, and comments are left out.
TEST_P(CheckScript, IsCodeAlone) { EXPECT_THAT(text_, Not(HasSubstr("--"))); }

TEST(CheckScripts, IsNamedByItsSha1) {
  EXPECT_EQ(make_check_script("").sha1.size(), 40U);
  EXPECT_NE(make_check_script("").sha1, make_check_script("local a\n").sha1);
  EXPECT_EQ(check_script().sha1, check_script().sha1);
  EXPECT_NE(check_script(ScriptStyle::fast).sha1, check_script(ScriptStyle::literal).sha1);
}

}  // namespace
}  // namespace sluice::store::redis
