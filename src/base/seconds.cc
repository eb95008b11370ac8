#include "base/seconds.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <system_error>

namespace sluice {
namespace {

constexpr std::size_t kNanoDigits = 9;
constexpr std::int64_t kSecond = 1'000'000'000;

/// Digits alone, at least one of them.
std::optional<std::int64_t> read_digits(std::string_view text) {
  std::int64_t value = 0;
  const bool is_signed = text.starts_with('-');
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (is_signed || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text, std::size_t decimals, std::int64_t most) {
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::optional<std::int64_t> whole = read_digits(text.substr(0, point));
  if (!whole || *whole > most) return std::nullopt;
  if (point == text.size()) return std::chrono::nanoseconds(*whole * kSecond);
  std::string fraction(text.substr(point + 1));
  if (fraction.empty()) return std::nullopt;
  while (fraction.size() > decimals && fraction.back() == '0') fraction.pop_back();
  if (fraction.size() > decimals) return std::nullopt;
  fraction.resize(kNanoDigits, '0');
  const std::optional<std::int64_t> rest = read_digits(fraction);
  if (!rest || (*whole == most && *rest > 0)) return std::nullopt;
  return std::chrono::nanoseconds(*whole * kSecond + *rest);
}

}  // namespace sluice
