#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using sluice::is_utf8;
using sluice::utf8_length;

TEST(Utf8, LengthsOfWellFormedCharacters) {
  EXPECT_EQ(utf8_length(std::string_view("\0", 1)), 1U);
  EXPECT_EQ(utf8_length("a\xff"), 1U);
  EXPECT_EQ(utf8_length("\xc2\x80"), 2U);
  EXPECT_EQ(utf8_length("\xdf\xbf"), 2U);
  EXPECT_EQ(utf8_length("\xe0\xa0\x80"), 3U);
  EXPECT_EQ(utf8_length("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(utf8_length("\xef\xbf\xbf"), 3U);
  EXPECT_EQ(utf8_length("\xf0\x90\x80\x80"), 4U);
  EXPECT_EQ(utf8_length("\xf4\x8f\xbf\xbf"), 4U);
}

TEST(Utf8, WhatIsNotWellFormedHasNone) {
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x41", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xe2\x82", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff"}) {
    EXPECT_EQ(utf8_length(text), 0U);
    EXPECT_FALSE(is_utf8(std::string("ab") + text));
  }
  EXPECT_TRUE(is_utf8("aé€😀"));
  EXPECT_TRUE(is_utf8(""));
}

}  // namespace
