#include "algorithm/posix_zone_rule.h"

#include <chrono>

namespace sluice::algorithm {

namespace {

namespace chrono = std::chrono;

constexpr int kHour = 3'600;
constexpr int kMinute = 60;
constexpr std::int64_t kDay = 86'400;

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  bool skip(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // "CET", "<+0545>"
  bool name() {
    if (skip('<')) {
      const std::size_t end = rest_.find('>');
      if (end == std::string_view::npos) return false;
      rest_.remove_prefix(end + 1);
      return true;
    }
    std::size_t length = 0;
    while (length < rest_.size() && is_letter(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length >= 3;
  }
  std::optional<int> number(int low, int high) {
    int value = 0;
    std::size_t length = 0;
    while (length < rest_.size() && length < 4 && rest_[length] >= '0' && rest_[length] <= '9') {
      value = value * 10 + (rest_[length++] - '0');
    }
    rest_.remove_prefix(length);
    if (length == 0 || value < low || value > high) return std::nullopt;
    return value;
  }
  // [+-]hh[:mm[:ss]] in seconds
  std::optional<int> time() {
    const int sign = skip('-') ? -1 : (skip('+'), 1);
    const auto hours = number(0, 167);
    if (!hours) return std::nullopt;
    int seconds = *hours * kHour;
    for (const int unit : {kMinute, 1}) {
      if (!skip(':')) break;
      const auto part = number(0, 59);
      if (!part) return std::nullopt;
      seconds += *part * unit;
    }
    return sign * seconds;
  }
  // ",M3.5.0/2", ",J60", ",59"
  std::optional<PosixZoneRule::Change> change() {
    using Kind = PosixZoneRule::Change::Kind;
    PosixZoneRule::Change change;
    if (!skip(',')) return std::nullopt;
    std::optional<int> day;
    if (skip('M')) {
      const auto month = number(1, 12);
      if (!month || !skip('.')) return std::nullopt;
      const auto week = number(1, 5);
      if (!week || !skip('.')) return std::nullopt;
      change.month = *month;
      change.week = *week;
      day = number(0, 6);
    } else if (skip('J')) {
      change.kind = Kind::julian_without_leap_day;
      day = number(1, 365);
    } else {
      change.kind = Kind::day_of_year;
      day = number(0, 365);
    }
    if (!day) return std::nullopt;
    change.day = *day;
    if (skip('/')) {
      const auto at = time();
      if (!at) return std::nullopt;
      change.time = *at;
    }
    return change;
  }

 private:
  static bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
  std::string_view rest_;
};

}  // namespace

std::int64_t PosixZoneRule::Change::in_year(int year) const {
  const chrono::year in{year};
  chrono::sys_days date = in / chrono::January / 1;
  switch (kind) {
    case Kind::day_of_year:
      date += chrono::days{day};
      break;
    case Kind::julian_without_leap_day:
      date += chrono::days{day - 1 + (in.is_leap() && day >= 60 ? 1 : 0)};
      break;
    case Kind::week_of_month: {
      const chrono::month of{static_cast<unsigned>(month)};
      const chrono::weekday weekday{static_cast<unsigned>(day)};
      date = week == 5 ? chrono::sys_days{in / of / weekday[chrono::last]}
                       : chrono::sys_days{in / of / weekday[static_cast<unsigned>(week)]};
      break;
    }
  }
  return date.time_since_epoch().count() * kDay + time;
}

std::optional<PosixZoneRule> parse_posix_zone_rule(std::string_view text) {
  Reader reader(text);
  PosixZoneRule rule;
  if (!reader.name()) return std::nullopt;
  const auto standard = reader.time();
  if (!standard) return std::nullopt;
  rule.standard_offset = -*standard;  // POSIX counts westwards
  if (reader.at_end()) return rule;
  if (!reader.name()) return std::nullopt;
  rule.has_daylight = true;
  rule.daylight_offset = rule.standard_offset + kHour;
  Reader ahead = reader;
  if (const auto daylight = ahead.time()) {
    rule.daylight_offset = -*daylight;
    reader = ahead;
  }
  const auto begin = reader.change();
  const auto end = begin ? reader.change() : std::nullopt;
  if (!end || !reader.at_end()) return std::nullopt;
  rule.begin = *begin;
  rule.end = *end;
  return rule;
}

}  // namespace sluice::algorithm
