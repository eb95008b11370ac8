#include "algorithm/time_zone.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "algorithm/posix_zone_rule.h"

namespace sluice::algorithm {
namespace {

constexpr std::int64_t kHours = 3'600;

std::int64_t offset(const std::string& zone, std::int64_t utc) {
  const auto opened = TimeZone::open(zone);
  EXPECT_TRUE(opened) << zone;
  return opened ? opened->offset_at(utc) : -1;
}

TEST(TimeZone, OffsetsFromListedChanges) {
  EXPECT_EQ(offset("UTC", 0), 0);
  EXPECT_EQ(offset("Europe/Berlin", 1'774'745'999), 1 * kHours);  // 2026-03-29 00:59:59 UTC
  EXPECT_EQ(offset("Europe/Berlin", 1'774'746'000), 2 * kHours);
  EXPECT_EQ(offset("Asia/Kathmandu", 1'767'225'600), 5 * kHours + 45 * 60);
  EXPECT_EQ(offset("America/New_York", -3'000'000'000), -(4 * kHours + 56 * 60 + 2));  // local mean time of 1874
}

TEST(TimeZone, OffsetsFromTheRuleForTheFuture) {
  EXPECT_EQ(offset("America/New_York", 2'347'311'927), -4 * kHours);  // May 2044
  EXPECT_EQ(offset("America/New_York", 2'335'000'000), -5 * kHours);  // December 2043
  EXPECT_EQ(offset("Australia/Sydney", 4'103'000'000), 11 * kHours);  // January 2100
  EXPECT_EQ(offset("Europe/Dublin", 4'103'000'000), 0);               // winter time is the negative daylight saving
}

TEST(TimeZone, FirstInstantOfALocalTime) {
  const auto berlin = TimeZone::open("Europe/Berlin");
  ASSERT_TRUE(berlin);
  EXPECT_EQ(berlin->first_instant(1'774'742'400), 1'774'738'800);            // midnight
  EXPECT_EQ(berlin->first_instant(1'774'746'000 + 90 * 60), 1'774'746'000);  // 02:30 is skipped
  EXPECT_EQ(berlin->first_instant(1'792'890'000 + 90 * 60), 1'792'888'200);  // 02:30 comes twice
}

TEST(TimeZone, ThoseOfOneNameShareTheirMemory) {
  const auto first = TimeZone::open("Europe/Berlin");
  ASSERT_TRUE(first);
  constexpr std::size_t kZones = 100;
  std::vector<Result<TimeZone>> zones;
  zones.reserve(kZones);
  const std::size_t before = mallinfo2().uordblks;
  for (std::size_t i = 0; i < kZones; ++i) zones.push_back(TimeZone::open("Europe/Berlin"));
  EXPECT_LT(mallinfo2().uordblks, before + kZones * 1'000);  // one alone takes some 10 000
  for (const auto& zone : zones) EXPECT_EQ(zone->offset_at(1'774'746'000), 2 * kHours);
}

TEST(TimeZone, OpensFromManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k) EXPECT_EQ(offset("Asia/Tokyo", 1'767'225'600), 9 * kHours);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TimeZone, ShowsAnUnknownNameCutAndEscaped) {
  const auto message = [](const std::string& name) {
    const auto zone = TimeZone::open(name);
    return zone ? std::string() : zone.error().message;
  };
  const std::string rest = " is not in the system's time zone database";
  EXPECT_EQ(message("Mars/Olympus"), "\"Mars/Olympus\"" + rest);
  EXPECT_EQ(message(std::string("a\0b\n\"\\\xff", 7)), R"("a\x00b\x0a\x22\x5c\xff")" + rest);
  EXPECT_EQ(message(std::string(60, 'x')), '"' + std::string(60, 'x') + '"' + rest);
  EXPECT_EQ(message(std::string(10'000, 'x')), '"' + std::string(60, 'x') + "…\"" + rest);
}

TEST(TimeZone, RefusesDamagedFiles) {
  std::ifstream file("/usr/share/zoneinfo/Europe/Berlin", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  ASSERT_TRUE(TimeZone::parse(whole));
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {
    EXPECT_FALSE(TimeZone::parse(whole.substr(0, length))) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ '\xFF');
    const auto zone = TimeZone::parse(damaged);
    if (zone) static_cast<void>(zone->first_instant(zone->offset_at(1'774'742'400)));
  }
  EXPECT_FALSE(TimeZone::parse("hello"));
}

TEST(PosixZoneRule, ReadsEveryForm) {
  const auto berlin = parse_posix_zone_rule("CET-1CEST,M3.5.0,M10.5.0/3");
  ASSERT_TRUE(berlin);
  EXPECT_EQ(berlin->standard_offset, kHours);
  EXPECT_EQ(berlin->daylight_offset, 2 * kHours);
  EXPECT_EQ(berlin->begin.in_year(2026), 1'774'749'600);  // 2026-03-29 02:00
  EXPECT_EQ(berlin->end.in_year(2026), 1'792'897'200);    // 2026-10-25 03:00
  const auto nepal = parse_posix_zone_rule("<+0545>-5:45");
  ASSERT_TRUE(nepal);
  EXPECT_FALSE(nepal->has_daylight);
  EXPECT_EQ(nepal->standard_offset, 5 * kHours + 45 * 60);
  const auto days = parse_posix_zone_rule("AAA3BBB2:30,J60/0,59/-1");
  ASSERT_TRUE(days);
  EXPECT_EQ(days->daylight_offset, -(2 * kHours + 30 * 60));
  EXPECT_EQ(days->begin.in_year(2024), 1'709'251'200);         // March 1 in a leap year, too
  EXPECT_EQ(days->end.in_year(2024), 1'709'164'800 - kHours);  // February 29, an hour before midnight
}

TEST(PosixZoneRule, RefusesWhatIsNone) {
  for (const char* text : {"", "CE", "CET", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
                           "CET-1CEST,M3.5.0,M10.5.0x", "<+05", "CET-200", "CET-1CEST,M3.6.0,M10.5.0", "CET-1:60",
                           "CET-1CEST,J0,J1", "CET-1CEST,366,1", "CET-1CEST,M3.5.7,M10.5.0"}) {
    EXPECT_FALSE(parse_posix_zone_rule(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::algorithm
