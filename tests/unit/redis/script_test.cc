#include "store/redis/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::store::redis {
namespace {

std::string without_comments(std::string_view text) {
  std::string code;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    code.append(line.substr(0, line.find("--"))).append("\n");
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return code;
}

// The first two arguments of each redis.call and redis.pcall.
std::vector<std::pair<std::string, std::string>> calls() {
  const std::string code = without_comments(check_script().text);
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t at = code.find("call("); at != std::string::npos; at = code.find("call(", at + 1)) {
    const std::size_t begin = at + 5;
    const std::size_t end = code.find_first_of(",)", begin);
    std::string key;
    if (code[end] == ',') key = code.substr(end + 2, code.find_first_of(",)", end + 1) - end - 2);
    found.emplace_back(code.substr(begin, end - begin), key);
  }
  return found;
}

TEST(CheckScript, UsesOnlyOldCommands) {
  std::set<std::string> commands;
  for (const auto& [command, key] : calls()) commands.insert(command);
  EXPECT_THAT(commands, ::testing::ElementsAre("'DEL'", "'GET'", "'SET'", "'TIME'"));
}

// Every key is in KEYS; nothing else is named, and no name is made.
TEST(CheckScript, public_report_60) {
  std::set<std::string> keys;
  for (const auto& [command, key] : calls()) {
    if (command != "'TIME'") keys.insert(key);
  }
  EXPECT_THAT(keys, ::testing::ElementsAre("KEYS[i]", "bucket.key", "window.key"));
  const std::string& code = check_script().text;
  // Where the last two come from.
  EXPECT_THAT(code, ::testing::HasSubstr("load(KEYS[i], value, ARGV[i])"));
  EXPECT_THAT(code, ::testing::Not(::testing::HasSubstr(".key =")));
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
