#include "http_client/retry_after.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <system_error>

namespace sluice::http_client {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int kCentury = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Takes a date apart, piece by piece. After a piece that is not as it should be it does not fit any more.
class DatePieces {
 public:
  explicit DatePieces(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool fits() const { return fits_ && rest_.empty(); }
  bool skip_if(std::string_view literal) {
    const bool is_next = rest_.starts_with(literal);
    if (is_next) rest_.remove_prefix(literal.size());
    return is_next;
  }
  void skip(std::string_view literal) { fits_ = skip_if(literal) && fits_; }
  /// How many there were.
  std::size_t skip_letters() {
    const auto end = std::ranges::find_if_not(rest_, is_letter);
    const auto count = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(count);
    return count;
  }
  int number(std::size_t digits) {
    int value = 0;
    fits_ = fits_ && rest_.size() >= digits;
    for (std::size_t i = 0; i < digits && fits_; ++i) {
      fits_ = is_digit(rest_[i]);
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(std::min(digits, rest_.size()));
    return value;
  }
  unsigned month() {
    constexpr std::array<std::string_view, 12> names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto* const found = std::ranges::find(names, rest_.substr(0, 3));
    fits_ = fits_ && found != names.end();
    rest_.remove_prefix(std::min(std::size_t{3}, rest_.size()));
    return static_cast<unsigned>(found - names.begin()) + 1;
  }
  /// 08:49:37, with a leap second.
  seconds time_of_day() {
    const int hour = number(2);
    skip(":");
    const int minute = number(2);
    skip(":");
    const int second = number(2);
    fits_ = fits_ && hour < 24 && minute < 60 && second <= 60;
    return std::chrono::hours(hour) + std::chrono::minutes(minute) + seconds(second);
  }

 private:
  std::string_view rest_;
  bool fits_ = true;
};

/// The year of two digits that is at most 50 years ahead.
int whole_year(int last_digits, sys_seconds now) {
  const int present = static_cast<int>(std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(now)).year());
  const int year = present / kCentury * kCentury + last_digits;
  return year > present + kCentury / 2 ? year - kCentury : year;
}

/// The day of the week is not looked at.
std::optional<sys_seconds> read_date(std::string_view text, sys_seconds now) {
  DatePieces pieces(text);
  const bool is_short = pieces.skip_letters() == 3;
  int year = 0;
  unsigned month = 0;
  int day = 0;
  seconds time{};
  if (pieces.skip_if(", ")) {
    // Sun, 06 Nov 1994 08:49:37 GMT, or Sunday, 06-Nov-94 08:49:37 GMT
    const std::string_view between = is_short ? " " : "-";
    day = pieces.number(2);
    pieces.skip(between);
    month = pieces.month();
    pieces.skip(between);
    year = is_short ? pieces.number(4) : whole_year(pieces.number(2), now);
    pieces.skip(" ");
    time = pieces.time_of_day();
    pieces.skip(" GMT");
  } else {
    // Sun Nov  6 08:49:37 1994
    pieces.skip(" ");
    month = pieces.month();
    pieces.skip(" ");
    day = pieces.skip_if(" ") ? pieces.number(1) : pieces.number(2);
    pieces.skip(" ");
    time = pieces.time_of_day();
    pieces.skip(" ");
    year = pieces.number(4);
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!pieces.fits() || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + time;
}

}  // namespace

seconds read_retry_after(std::string_view field, std::chrono::system_clock::time_point now, seconds most) {
  if (field.empty()) return seconds(0);
  if (std::ranges::all_of(field, is_digit)) {
    std::uint32_t count = 0;
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), count);
    return error == std::errc() ? std::min(seconds(count), most) : most;
  }
  const auto present = std::chrono::floor<seconds>(now);
  const auto date = read_date(field, present);
  return date ? std::clamp(*date - present, seconds(0), most) : seconds(0);
}

}  // namespace sluice::http_client
