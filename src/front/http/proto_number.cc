#include "front/http/proto_number.h"

#include <algorithm>
#include <charconv>

#include "front/http/json_reader.h"

namespace sluice::http {

std::optional<std::uint64_t> parse_proto_unsigned(std::string_view token, std::uint64_t most) {
  if (token.empty() || token.front() == '-' || json_number_length(token) != token.size()) return std::nullopt;

  // value = 0.digits × 10^point, so only digits before the point may differ from 0.
  std::int64_t exponent = 0;
  if (const std::size_t e = token.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view text = token.substr(e + 1);
    const bool negative = text.front() == '-';
    if (negative || text.front() == '+') text.remove_prefix(1);
    constexpr std::int64_t beyond_any_body = 1'000'000'000;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (parsed.ec != std::errc{} || exponent > beyond_any_body) exponent = beyond_any_body;
    if (negative) exponent = -exponent;
    token = token.substr(0, e);
  }
  const std::size_t dot = std::min(token.find('.'), token.size());
  const std::int64_t point = static_cast<std::int64_t>(dot) + exponent;

  std::uint64_t value = 0;
  std::int64_t index = 0;
  const auto take = [&value, most](std::uint64_t digit) {
    if (value > most / 10 || value * 10 > most - digit) return false;
    value = value * 10 + digit;
    return true;
  };
  for (const char c : token) {
    if (c == '.') continue;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (index++ < point) {
      if (digit > most || !take(digit)) return std::nullopt;
    } else if (digit != 0) {
      return std::nullopt;
    }
  }
  for (; index < point && value != 0; ++index) {
    if (!take(0)) return std::nullopt;
  }
  return value;
}

}  // namespace sluice::http
