#include "base/seconds.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(Seconds, AreExact) {
  EXPECT_EQ(parse_seconds("0", 9, 10), 0ns);
  EXPECT_EQ(parse_seconds("2.5", 9, 10), 2500ms);
  EXPECT_EQ(parse_seconds("0.123456789", 9, 10), 123456789ns);
  EXPECT_EQ(parse_seconds("0.000001", 6, 10), 1us);
  EXPECT_EQ(parse_seconds("1.500000000000000000000", 9, 10), 1500ms);
  EXPECT_EQ(parse_seconds("1.000", 0, 10), 1s);
  EXPECT_EQ(parse_seconds("10.0", 9, 10), 10s);
  EXPECT_EQ(parse_seconds("315360000.999999999", 9, 4'000'000'000), 315'360'001s - 1ns);
}

// Nothing is cut off, and nothing else is a number of seconds.
TEST(Seconds, OrNothing) {
  for (const std::string_view text : {"0.1234567891", "0.0000000001", "0.30000000000000004", "10.000000001", "11"}) {
    EXPECT_FALSE(parse_seconds(text, 9, 10)) << text;
  }
  EXPECT_FALSE(parse_seconds("0.0000001", 6, 10));
  EXPECT_FALSE(parse_seconds("0.5", 0, 10));
  for (const std::string_view text : {"", ".", ".5", "5.", "-1", "-0", "+1", "1e1", "1.-5", "1.+5", "1.5e0", " 1", "1 ",
                                      "0x1", "1.5.5", "inf", "nan", "9223372036854775808"}) {
    EXPECT_FALSE(parse_seconds(text, 9, 10)) << text;
  }
}

}  // namespace
}  // namespace sluice
