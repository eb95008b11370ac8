// The rule that a time zone file gives for the time after its last entry: a POSIX TZ string.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::algorithm {

/// "CET-1CEST,M3.5.0,M10.5.0/3": offsets and, if there is daylight saving, when it begins and ends in a year.
struct PosixZoneRule {
  /// A day and time of day, of any year.
  struct Change {
    enum class Kind : std::uint8_t { julian_without_leap_day, day_of_year, week_of_month };
    Kind kind = Kind::week_of_month;
    int month = 1;    ///< 1 … 12
    int week = 1;     ///< 1 … 5; 5: the last
    int day = 0;      ///< of the week (0 … 6, from Sunday), or of the year
    int time = 7200;  ///< seconds after local midnight; may lie outside the day
    /// Seconds since 1970, as if local time were UTC.
    [[nodiscard]] std::int64_t in_year(int year) const;
  };

  std::int64_t standard_offset = 0;  ///< local minus UTC, in seconds
  bool has_daylight = false;
  std::int64_t daylight_offset = 0;
  Change begin;
  Change end;
};

[[nodiscard]] std::optional<PosixZoneRule> parse_posix_zone_rule(std::string_view text);

}  // namespace sluice::algorithm
