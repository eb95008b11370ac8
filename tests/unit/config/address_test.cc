#include "config/address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace {

using sluice::config::Address;
using sluice::config::parse_address;
using sluice::config::to_text;

TEST(Address, ReadsEveryForm) {
  struct Case {
    std::string_view text;
    Address expected;
  };
  for (const auto& [text, expected] :
       {Case{"127.0.0.1:8080", {false, "127.0.0.1", 8080, ""}}, Case{"[::1]:8081", {false, "::1", 8081, ""}},
        Case{"[fe80::1%eth0]:1", {false, "fe80::1%eth0", 1, ""}}, Case{":6070", {false, "", 6070, ""}},
        Case{"localhost:0", {false, "localhost", 0, ""}}, Case{"off", {true, "", 0, ""}},
        Case{"unix:/run/rl sock", {false, "", 0, "/run/rl sock"}}}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(*address, expected) << text;
    EXPECT_EQ(to_text(*address), text);
  }
}

TEST(Address, RefusesWhatIsNone) {
  for (const std::string_view text : {"", "8080", "127.0.0.1", "127.0.0.1:", ":x", "::1:80", "[::1]", "[]:80",
                                      "[::1:80", "::1]:80", "a b:80", "h:80x", "h:-1", "h:+1", "http://h:80", "OFF"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().message,
              "expected HOST:PORT, [IPV6]:PORT, :PORT, unix:PATH or off, found '" + std::string(text) + "'");
  }
}

TEST(Address, ASocketsNameHasALength) {
  EXPECT_FALSE(parse_address("unix:"));
  EXPECT_TRUE(parse_address("unix:" + std::string(107, 'x')));
  EXPECT_FALSE(parse_address("unix:" + std::string(108, 'x')));
}

TEST(Address, NamesTheRangeOfPorts) {
  EXPECT_TRUE(parse_address("h:65535"));
  const auto address = parse_address("h:65536");
  ASSERT_FALSE(address);
  EXPECT_EQ(address.error().message, "expected a port of 0 to 65535, found '65536'");
}

}  // namespace
