#include "yaml/text.h"

#include <fmt/format.h>

namespace sluice::yaml {
namespace {

/// The length of the well-formed UTF-8 character at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t from, std::size_t count) {
    for (std::size_t i = from; i < from + count; ++i) {
      if (i >= text.size() || (byte(i) & 0xC0U) != 0x80U) return false;
    }
    return true;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1, 1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1, 2)) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1, 3)) return 0;
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

bool is_forbidden(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return (first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F;
  // C1 controls but NEL.
  if (character.size() == 2 && first == 0xC2) {
    const auto second = static_cast<unsigned char>(character[1]);
    return second < 0xA0 && second != 0x85;
  }
  return character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
}

}  // namespace

std::optional<Problem> normalise_text(std::string_view text, std::string& out) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    return Problem{{1, 1}, "the file is UTF-16; expected UTF-8"};
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  out.clear();
  out.reserve(text.size());
  Position at{1, 1};
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[0]));
    if (length == 0) return Problem{at, fmt::format("the byte 0x{:02X} is not valid UTF-8 here", byte)};
    const std::string_view character = text.substr(0, length);
    if (is_forbidden(character)) {
      return Problem{at, length == 1 ? fmt::format("the control character 0x{:02X} is not allowed in YAML", byte)
                                     : std::string("a control character that YAML does not allow")};
    }
    if (byte == '\r' || byte == '\n') {
      text.remove_prefix(text.starts_with("\r\n") ? 2 : 1);
      out.push_back('\n');
      at = {at.line + 1, 1};
      continue;
    }
    out.append(character);
    text.remove_prefix(length);
    at.column += static_cast<int>(length);
  }
  return std::nullopt;
}

}  // namespace sluice::yaml
