#include "store/redis/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

namespace sluice::store::redis {
namespace {

std::string without_comments(const std::string& text) { return std::regex_replace(text, std::regex("--[^\n]*"), ""); }

TEST(CheckScript, UsesOnlyOldCommands) {
  const std::string code = without_comments(check_script().text);
  std::set<std::string> commands;
  const std::regex call(R"(redis\.p?call\(\s*('[^']*'|[^,)]*))");
  for (std::sregex_iterator it(code.begin(), code.end(), call), end; it != end; ++it) commands.insert((*it)[1].str());
  EXPECT_THAT(commands, ::testing::ElementsAre("'DEL'", "'GET'", "'SET'", "'TIME'"));
}

// Every key is in KEYS; nothing else is named, and no name is made.
TEST(CheckScript, public_report_60) {
  const std::string code = without_comments(check_script().text);
  const std::regex call(R"(redis\.p?call\('(GET|SET|DEL)',\s*([\w.\[\]]+))");
  std::set<std::string> keys;
  for (std::sregex_iterator it(code.begin(), code.end(), call), end; it != end; ++it) keys.insert((*it)[2].str());
  EXPECT_THAT(keys, ::testing::ElementsAre("KEYS[i]", "bucket.key", "window.key"));
  EXPECT_TRUE(std::regex_search(code, std::regex(R"(load\(KEYS\[i\], value, ARGV\[i\]\))")));
}

// Numbers never become text by Lua's own rules, which keep 14 digits.
TEST(CheckScript, public_report_64) { EXPECT_EQ(check_script().text.find("tostring"), std::string::npos); }

TEST(CheckScript, IsNamedByItsSha1) {
  EXPECT_EQ(make_check_script("").sha1.size(), 40U);
  EXPECT_NE(make_check_script("").sha1, make_check_script("\n").sha1);
  EXPECT_EQ(check_script().sha1, check_script().sha1);
}

}  // namespace
}  // namespace sluice::store::redis
