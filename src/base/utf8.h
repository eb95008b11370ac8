// Is it UTF-8?
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// Length of the well-formed character that `text` begins with; 0: there is none. No overlong forms, no surrogates,
/// nothing beyond U+10FFFF. Precondition: not empty.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

}  // namespace sluice
