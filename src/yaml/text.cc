#include "yaml/text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace sluice::yaml {
namespace {

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
  text = without_byte_order_mark(text);
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
