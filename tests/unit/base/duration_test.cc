#include "base/duration.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace {

using namespace std::chrono_literals;
using sluice::parse_duration;
using sluice::to_rounded_text;
using sluice::to_text;

std::chrono::nanoseconds read(std::string_view text) {
  const auto result = parse_duration(text);
  EXPECT_TRUE(result) << text;
  return result ? *result : -1ns;
}

std::string refusal(std::string_view text) {
  const auto result = parse_duration(text);
  EXPECT_FALSE(result) << text;
  return result ? "" : result.error().message;
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(read("7ns"), 7ns);
  EXPECT_EQ(read("250us"), 250us);
  EXPECT_EQ(read("250µs"), 250us);
  EXPECT_EQ(read("20ms"), 20ms);
  EXPECT_EQ(read("1s"), 1s);
  EXPECT_EQ(read("5m"), 5min);
  EXPECT_EQ(read("24h"), 24h);
  EXPECT_EQ(read("366d"), 366 * 24h);
  EXPECT_EQ(read("0s"), 0ns);
}

TEST(ParseDuration, AddsParts) {
  EXPECT_EQ(read("1m30s"), 90s);
  EXPECT_EQ(read("1h2m3s4ms"), 1h + 2min + 3s + 4ms);
}

TEST(ParseDuration, FractionsAreExactOrRefused) {
  EXPECT_EQ(read("1.5s"), 1500ms);
  EXPECT_EQ(read("0.000000001s"), 1ns);
  EXPECT_EQ(read("1.10000000000000000000s"), 1100ms);
  EXPECT_EQ(read("0.25m"), 15s);
  EXPECT_EQ(read("0.00000000005m"), 3ns);
  EXPECT_EQ(refusal("0.0000000001s"), "'0.0000000001s' is not a whole number of nanoseconds");
  EXPECT_EQ(refusal("0.5ns"), "'0.5ns' is not a whole number of nanoseconds");
}

TEST(ParseDuration, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", "20", "ms", "-1s", "1 s", "1s ", "1.s", ".5s", "1y", "1e3s", "0x1s", "1s2", "+1s"}) {
    EXPECT_EQ(refusal(text), "expected a duration such as 20ms, 1.5s or 1m30s, found '" + std::string(text) + "'");
  }
}

TEST(ParseDuration, NeverWrapsAround) {
  EXPECT_EQ(read("9223372036854775807ns").count(), INT64_MAX);
  EXPECT_EQ(refusal("9223372036854775808ns"), "'9223372036854775808ns' is longer than 292 years");
  EXPECT_EQ(refusal("106752d"), "'106752d' is longer than 292 years");
  EXPECT_EQ(refusal("99999999999999999999999999d"), "'99999999999999999999999999d' is longer than 292 years");
  EXPECT_EQ(refusal("9223372036s9223372036s"), "'9223372036s9223372036s' is longer than 292 years");
}

TEST(DurationText, IsTheShortestThatReadsBack) {
  EXPECT_EQ(to_text(0ns), "0s");
  EXPECT_EQ(to_text(20ms), "20ms");
  EXPECT_EQ(to_text(1500ms), "1500ms");
  EXPECT_EQ(to_text(60s), "1m");
  EXPECT_EQ(to_text(48h), "2d");
  EXPECT_EQ(to_text(1ns), "1ns");
  EXPECT_EQ(to_text(3us), "3us");
  for (const std::chrono::nanoseconds value :
       std::initializer_list<std::chrono::nanoseconds>{1ns, 999ns, 1us, 1001us, 90s, 86400s, 86401s})
    EXPECT_EQ(read(to_text(value)), value);
}

TEST(RoundedDurationText, IsShortAndNeverLess) {
  EXPECT_EQ(to_rounded_text(0ns), "0s");
  EXPECT_EQ(to_rounded_text(1ns), "1ns");
  EXPECT_EQ(to_rounded_text(1'001ns), "1.01us");
  EXPECT_EQ(to_rounded_text(100ms), "100ms");
  EXPECT_EQ(to_rounded_text(33'333'334ns), "33.4ms");
  EXPECT_EQ(to_rounded_text(999'000'001ns), "1s");
  EXPECT_EQ(to_rounded_text(1'500ms), "1.5s");
  EXPECT_EQ(to_rounded_text(10'050ms), "10.1s");
  EXPECT_EQ(to_rounded_text(59'900'000'001ns), "1m");
  EXPECT_EQ(to_rounded_text(60s), "1m");
  EXPECT_EQ(to_rounded_text(60s + 1ns), "1m 1s");
  EXPECT_EQ(to_rounded_text(2'702'673'994'594ns), "45m 3s");
  EXPECT_EQ(to_rounded_text(3'599s + 1ns), "1h");
  EXPECT_EQ(to_rounded_text(2h), "2h");
  EXPECT_EQ(to_rounded_text(2h + 1ns), "2h 1m");
  EXPECT_EQ(to_rounded_text(24h - 1ns), "1d");
  EXPECT_EQ(to_rounded_text(49h + 1ns), "2d 2h");
  EXPECT_EQ(to_rounded_text(366 * 24h), "366d");
  EXPECT_EQ(to_rounded_text(std::chrono::nanoseconds(INT64_MAX)), "106752d");
}

}  // namespace
