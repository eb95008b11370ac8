#include "cli/printable.h"

#include <cstddef>
#include <cstdint>

#include "base/utf8.h"
#include "front/http/json_text.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(value >> static_cast<unsigned>(shift)) & 15U];
}

std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  std::uint32_t point = byte(0) & (0xffU >> (character.size() + 1));
  for (std::size_t i = 1; i < character.size(); ++i) point = (point << 6U) | (byte(i) & 0x3fU);
  return point;
}

// Controls, line and paragraph separators, and what turns the direction of text.
bool is_control(std::uint32_t point) {
  return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x061c || point == 0x200e || point == 0x200f ||
         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = utf8_length(text);
    const bool stays = length != 0 && text.front() != '\\' && !is_control(code_point(text.substr(0, length)));
    if (length == 0) length = 1;
    if (stays) {
      out += text.substr(0, length);
    } else if (text.front() == '\\') {
      out += "\\\\";
    } else {
      for (const char c : text.substr(0, length)) {
        out += "\\x";
        append_hex(out, static_cast<unsigned char>(c), 2);
      }
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    const std::string_view character = text.substr(0, length);
    const std::uint32_t point = code_point(character);
    if (is_control(point) && point != '\n' && point != '\t') {
      out += "\\u";
      append_hex(out, point, 4);
    } else {
      out += character;
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string json_text(std::string_view text) {
  std::string quoted;
  http::append_json_string(quoted, text);
  return without_controls(quoted);
}

SafeOutput::~SafeOutput() { (void)pass(waiting_.size()); }

bool SafeOutput::pass(std::size_t size) {
  const std::string lines = without_controls(std::string_view(waiting_).substr(0, size));
  waiting_.erase(0, size);
  const auto all = static_cast<std::streamsize>(lines.size());
  return to_.sputn(lines.data(), all) == all;
}

SafeOutput::int_type SafeOutput::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize SafeOutput::xsputn(const char* text, std::streamsize size) {
  const std::size_t before = waiting_.size();
  waiting_.append(text, static_cast<std::size_t>(size));
  const std::size_t end = waiting_.rfind('\n');
  const bool has_line = end != std::string::npos && end >= before;
  return !has_line || pass(end + 1) ? size : 0;
}

int SafeOutput::sync() { return pass(waiting_.size()) && to_.pubsync() == 0 ? 0 : -1; }

}  // namespace sluice::cli
