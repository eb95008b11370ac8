#include "policy/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::policy {
namespace {

TEST(Glob, ReadsAStarAsAnyBytes) {
  EXPECT_TRUE(Glob("*").matches(""));
  EXPECT_TRUE(Glob("*").matches("anything"));
  EXPECT_TRUE(Glob("/api/*").matches("/api/"));
  EXPECT_TRUE(Glob("*.png").matches("a.png"));
  EXPECT_TRUE(Glob("a*b*c").matches("abc"));
  EXPECT_TRUE(Glob("a*b*c").matches("axbxbxc"));
  EXPECT_TRUE(Glob("a**c").matches("abc"));
  EXPECT_TRUE(Glob("*aa*").matches("baab"));
  EXPECT_FALSE(Glob("/api/*").matches("/ap"));
  EXPECT_FALSE(Glob("a*b*c").matches("acb"));
  EXPECT_FALSE(Glob("ab*ba").matches("aba"));  // the ends may not overlap
  EXPECT_FALSE(Glob("a*bb*b").matches("abb"));
}

TEST(Glob, ReadsAllElseAsItself) {
  EXPECT_TRUE(Glob("a?[b]").matches("a?[b]"));
  EXPECT_FALSE(Glob("a?").matches("ab"));
  EXPECT_FALSE(Glob("a").matches("ab"));
}

TEST(Glob, AgreesWithTheDefinition) {
  // All patterns and texts of up to five bytes of a small alphabet, against the recursive definition.
  const auto naive = [](const auto& self, std::string_view pattern, std::string_view text) -> bool {
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*')
      return self(self, pattern.substr(1), text) || (!text.empty() && self(self, pattern, text.substr(1)));
    return !text.empty() && pattern[0] == text[0] && self(self, pattern.substr(1), text.substr(1));
  };
  const auto all_of = [](std::string_view alphabet) {
    std::vector<std::string> words{""};
    for (std::size_t begin = 0; words.back().size() < 5;) {
      const std::size_t end = words.size();
      for (; begin < end; ++begin) {
        for (const char c : alphabet) words.push_back(words[begin] + c);
      }
    }
    return words;
  };
  const std::vector<std::string> texts = all_of("ab");
  for (const std::string& pattern : all_of("ab*")) {
    const Glob glob(pattern);
    for (const std::string& text : texts) {
      ASSERT_EQ(glob.matches(text), naive(naive, pattern, text)) << pattern << " against " << text;
    }
  }
}

TEST(Glob, HasNoBadCase) {
  std::string pattern;
  for (int i = 0; i < 1'000; ++i) pattern += "a*";
  pattern += "b";
  EXPECT_FALSE(Glob(pattern).matches(std::string(1'000'000, 'a')));
}

}  // namespace
}  // namespace sluice::policy
