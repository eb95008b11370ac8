#include "algorithm/calendar.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <utility>

#include "algorithm/time_zone.h"

namespace sluice::algorithm {

namespace {

namespace chrono = std::chrono;
using chrono::days;
using chrono::local_days;

// The anchor day of a month, or its last day when it is shorter.
local_days day_in(chrono::year_month month, int anchor) {
  const chrono::day last = (month / chrono::last).day();
  const chrono::day wanted{static_cast<unsigned>(anchor)};
  return local_days{month / std::min(wanted, last)};
}

// First days of the window before the one that `today` seems to lie in, of that one, and of the two after. Four, since
// a clock set back over midnight, or an anchor day later in the month than today, moves the right window by one.
std::array<local_days, 4> first_days(const Calendar& calendar, local_days today) {
  const chrono::year_month_day date{today};
  const auto each = [](auto&& first_day) {
    return std::array{first_day(-1), first_day(0), first_day(1), first_day(2)};
  };
  switch (calendar.unit) {
    case Calendar::Unit::year:
      return each([&](int k) { return local_days{(date.year() + chrono::years{k}) / chrono::January / 1}; });
    case Calendar::Unit::month:
      return each([&](int k) { return day_in(date.year() / date.month() + chrono::months{k}, calendar.anchor_day); });
    case Calendar::Unit::week: {
      const local_days monday = today - (chrono::weekday{today} - chrono::Monday);
      return each([&](int k) { return monday + chrono::weeks{k}; });
    }
    case Calendar::Unit::day:
      break;
  }
  return each([&](int k) { return today + days{k}; });
}

class ZonedWindows final : public CalendarWindows {
 public:
  ZonedWindows(Calendar calendar, TimeZone zone, Tick tick)
      : calendar_(std::move(calendar)), zone_(std::move(zone)), second_(ticks_per_second(tick)) {}

  [[nodiscard]] const Calendar& calendar() const noexcept override { return calendar_; }

  [[nodiscard]] Window window(std::int64_t now) const noexcept override {
    const std::int64_t second = now / second_ - (now % second_ < 0 ? 1 : 0);
    const Seconds known = unpack(latest_.load(std::memory_order_relaxed));
    if (second >= known.start && second - known.start < known.length) return in_ticks(known);
    const Seconds found = find(second);
    latest_.store(pack(found), std::memory_order_relaxed);
    return in_ticks(found);
  }

 private:
  struct Seconds {
    std::int64_t start = 0;
    std::int64_t length = 0;
  };

  // The window last looked up, in one word so that readers see it whole: a length is at most 366 days and some hours
  // (below 2^26 s), a start below 2^37 s either way.
  static constexpr unsigned kLengthBits = 26;
  static std::uint64_t pack(Seconds window) {
    return static_cast<std::uint64_t>(window.start) << kLengthBits | static_cast<std::uint64_t>(window.length);
  }
  static Seconds unpack(std::uint64_t word) {
    return {static_cast<std::int64_t>(word) >> kLengthBits,
            static_cast<std::int64_t>(word & ((std::uint64_t{1} << kLengthBits) - 1))};
  }
  [[nodiscard]] Window in_ticks(Seconds window) const { return {window.start * second_, window.length * second_}; }

  [[nodiscard]] Seconds find(std::int64_t second) const {
    constexpr std::int64_t kDay = 86'400;
    const chrono::local_seconds local{chrono::seconds{second + zone_.offset_at(second)}};
    const auto first = first_days(calendar_, chrono::floor<days>(local));
    // The first instant of a local day, also where the clock skips or repeats midnight.
    std::array<std::int64_t, first.size()> begin{};
    std::transform(first.begin(), first.end(), begin.begin(),
                   [&](local_days day) { return zone_.first_instant(day.time_since_epoch().count() * kDay); });
    const auto* next = std::upper_bound(begin.begin() + 1, begin.end() - 1, second);
    return {*(next - 1), *next - *(next - 1)};
  }

  Calendar calendar_;
  TimeZone zone_;
  std::int64_t second_;
  mutable std::atomic<std::uint64_t> latest_{0};
};

}  // namespace

Result<std::shared_ptr<const CalendarWindows>> open_calendar(const Calendar& calendar, Tick tick) {
  auto zone = TimeZone::open(calendar.timezone);
  if (!zone) return Error{"calendar.timezone: " + zone.error().message};
  return std::shared_ptr<const CalendarWindows>(std::make_shared<ZonedWindows>(calendar, *std::move(zone), tick));
}

}  // namespace sluice::algorithm
