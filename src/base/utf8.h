// Is it UTF-8? And does it begin with the mark of that?
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// Length of the well-formed character that `text` begins with; 0: there is none. No overlong forms, no surrogates,
/// nothing beyond U+10FFFF. Precondition: not empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

/// What follows the byte order mark that some editors put at the beginning of a file; all of it where there is none.
[[nodiscard]] constexpr std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

}  // namespace sluice
