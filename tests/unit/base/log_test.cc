#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace {

using sluice::log::Format;
using sluice::log::Level;
using sluice::log::line;

constexpr std::int64_t kNewYear = 1'767'225'600'123'000'000;  // 2026-01-01 00:00:00.123 UTC

TEST(LogLine, TextShowsTimeLevelMessageAndFields) {
  EXPECT_EQ(line(Format::text, Level::info, kNewYear, "listening http 127.0.0.1:8080", {{"threads", "2"}}),
            "2026-01-01T00:00:00.123Z info listening http 127.0.0.1:8080 threads=2");
}

TEST(LogLine, TextQuotesOddValues) {
  EXPECT_EQ(line(Format::text, Level::warn, kNewYear, "m", {{"a", "two words"}, {"b", ""}, {"c", "q\"\\=\n\x01"}}),
            "2026-01-01T00:00:00.123Z warn m a=\"two words\" b=\"\" c=\"q\\\"\\\\=\\n\\u0001\"");
}

TEST(LogLine, AMessageIsAlwaysOneLine) {
  EXPECT_EQ(line(Format::text, Level::error, kNewYear, "a\nb\r", {}), "2026-01-01T00:00:00.123Z error a\\nb\\u000d");
}

TEST(LogLine, AMessageOfTheTextFormatKeepsItsQuotes) {
  EXPECT_EQ(line(Format::text, Level::error, kNewYear, R"(unknown key "a\b")", {}),
            R"(2026-01-01T00:00:00.123Z error unknown key "a\b")");
}

TEST(LogLine, Json) {
  EXPECT_EQ(line(Format::json, Level::error, kNewYear, "say \"hi\"\n", {{"k", "日本"}}),
            R"({"time":"2026-01-01T00:00:00.123Z","level":"error","message":"say \"hi\"\n","k":"日本"})");
}

TEST(LogLevel, LeastLevelRules) {
  sluice::log::configure(Level::warn, Format::text);
  EXPECT_FALSE(sluice::log::enabled(Level::info));
  EXPECT_TRUE(sluice::log::enabled(Level::warn));
  EXPECT_TRUE(sluice::log::enabled(Level::error));
  sluice::log::configure(Level::info, Format::text);
  EXPECT_TRUE(sluice::log::enabled(Level::info));
  EXPECT_FALSE(sluice::log::enabled(Level::debug));
}

}  // namespace
