#include "base/suggest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace {

using sluice::edit_distance;
using sluice::nearest;

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("unit", "units"), 1U);
  EXPECT_EQ(edit_distance("unti", "unit"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_GT(edit_distance(std::string(65, 'a'), "a"), 1000U);
  EXPECT_EQ(edit_distance(std::string(64, 'a'), std::string(64, 'b')), 64U);
}

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 3> kNames{"requests_per_unit", "unit", "unlimited"};
  EXPECT_EQ(nearest("requests_per_units", kNames), "requests_per_unit");
  EXPECT_EQ(nearest("unlimted", kNames), "unlimited");
  EXPECT_EQ(nearest("unt", kNames), "unit");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  constexpr std::array<std::string_view, 2> kNames{"unit", "ab"};
  EXPECT_EQ(nearest("burst", kNames), "");
  EXPECT_EQ(nearest("xy", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest(std::string(1000, 'u'), kNames), "");
}

}  // namespace
