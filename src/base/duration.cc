#include "base/duration.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longer names before those that begin them, so that "ms" is not read as "m" and "s".
constexpr std::array<Unit, 8> kUnits{{{"ns", 1},
                                      {"us", 1'000},
                                      {"µs", 1'000},
                                      {"ms", 1'000'000},
                                      {"s", 1'000'000'000},
                                      {"m", 60'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"d", 86'400'000'000'000}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Error not_a_duration(std::string_view text) {
  return Error{"expected a duration such as 20ms, 1.5s or 1m30s, found '" + std::string(text) + "'"};
}

Error out_of_range(std::string_view text) { return Error{"'" + std::string(text) + "' is longer than 292 years"}; }

Error not_exact(std::string_view text) {
  return Error{"'" + std::string(text) + "' is not a whole number of nanoseconds"};
}

const Unit* unit_at(std::string_view text) {
  for (const Unit& unit : kUnits) {
    if (text.starts_with(unit.name)) return &unit;
  }
  return nullptr;
}

// "25" of a minute: 0.25 × 60 s. Nothing when that is no whole number of nanoseconds.
std::optional<std::int64_t> fraction_of(std::string_view digits, std::int64_t unit) {
  while (digits.ends_with('0')) digits.remove_suffix(1);
  // A day is 2^16 × 5^11 × 27 ns, so that more than 16 digits are never exact.
  if (digits.size() > 16) return std::nullopt;
  __extension__ using Wide = unsigned __int128;
  Wide numerator = static_cast<Wide>(unit);
  Wide denominator = 1;
  std::uint64_t value = 0;
  for (const char digit : digits) {
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    denominator *= 10;
  }
  numerator *= value;
  if (numerator % denominator != 0) return std::nullopt;
  return static_cast<std::int64_t>(numerator / denominator);
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  std::int64_t sum = 0;
  std::size_t at = 0;
  if (text.empty()) return not_a_duration(text);
  while (at < text.size()) {
    if (!is_digit(text[at])) return not_a_duration(text);
    std::int64_t whole = 0;
    for (; at < text.size() && is_digit(text[at]); ++at) {
      if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, text[at] - '0', &whole)) {
        return out_of_range(text);
      }
    }
    std::string_view fraction;
    if (at < text.size() && text[at] == '.') {
      const std::size_t begin = ++at;
      while (at < text.size() && is_digit(text[at])) ++at;
      fraction = text.substr(begin, at - begin);
      if (fraction.empty()) return not_a_duration(text);
    }
    const Unit* unit = unit_at(text.substr(at));
    if (unit == nullptr) return not_a_duration(text);
    at += unit->name.size();
    std::int64_t part = 0;
    if (__builtin_mul_overflow(whole, unit->nanoseconds, &part) || __builtin_add_overflow(sum, part, &sum)) {
      return out_of_range(text);
    }
    const std::optional<std::int64_t> rest = fraction_of(fraction, unit->nanoseconds);
    if (!rest) return not_exact(text);
    if (__builtin_add_overflow(sum, *rest, &sum)) return out_of_range(text);
  }
  return std::chrono::nanoseconds(sum);
}

std::string to_text(std::chrono::nanoseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits | std::views::reverse) {
    if (count % unit.nanoseconds == 0 && unit.name != "µs") {
      return std::to_string(count / unit.nanoseconds) + std::string(unit.name);
    }
  }
  return std::to_string(count) + "ns";
}

std::string to_rounded_text(std::chrono::nanoseconds duration) {
  constexpr std::int64_t second = 1'000'000'000;
  const auto divide_up = [](std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); };
  std::int64_t count = duration.count();
  if (count < 60 * second) {
    std::int64_t quantum = 1;
    while (count / quantum >= 1'000) quantum *= 10;
    count = divide_up(count, quantum) * quantum;
  }
  if (count < 60 * second) {
    if (count == 0) return "0s";
    const Unit* unit = std::data(kUnits);
    for (const Unit& larger : kUnits) {
      if (larger.nanoseconds <= count) unit = larger.name == "µs" ? unit : &larger;
    }
    std::string fraction = std::to_string(unit->nanoseconds + count % unit->nanoseconds).substr(1);
    while (fraction.ends_with('0')) fraction.pop_back();
    return std::to_string(count / unit->nanoseconds) + (fraction.empty() ? "" : "." + fraction) +
           std::string(unit->name);
  }
  const auto two_units = [](std::int64_t value, std::int64_t ratio, std::string_view large, std::string_view small) {
    std::string text = std::to_string(value / ratio) + std::string(large);
    if (value % ratio != 0) text += " " + std::to_string(value % ratio) + std::string(small);
    return text;
  };
  const std::int64_t seconds = divide_up(count, second);
  if (seconds < 3'600) return two_units(seconds, 60, "m", "s");
  const std::int64_t minutes = divide_up(seconds, 60);
  if (minutes < std::int64_t{24} * 60) return two_units(minutes, 60, "h", "m");
  return two_units(divide_up(minutes, 60), 24, "d", "h");
}

}  // namespace sluice
