#include "front/http/json_text.h"

#include <array>
#include <charconv>

namespace sluice::http {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// All nine digits of a fraction of a second.
void append_fraction(std::string& out, std::uint64_t nanoseconds) {
  std::array<char, 9> digits{};
  for (std::size_t i = digits.size(); i-- > 0; nanoseconds /= 10) digits[i] = static_cast<char>('0' + nanoseconds % 10);
  out += '.';
  out.append(digits.data(), digits.size());
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out.append(text.substr(begin, i - begin));
    begin = i + 1;
    out += '\\';
    if (byte >= 0x20) {
      out += text[i];
    } else {
      out += "u00";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
  out.append(text.substr(begin));
  out += '"';
}

void append_unsigned(std::string& out, std::uint64_t value) {
  std::array<char, 20> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), result.ptr);
}

void append_seconds(std::string& out, std::chrono::nanoseconds time) {
  const auto ticks = static_cast<std::uint64_t>(time.count());
  append_unsigned(out, ticks / kSecond);
  if (const std::uint64_t fraction = ticks % kSecond; fraction != 0) {
    append_fraction(out, fraction);
    out.erase(out.find_last_not_of('0') + 1);
  }
}

}  // namespace sluice::http
