#include "tracing/span.h"

#include "base/utf8.h"

namespace sluice::tracing {

std::string text_of(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = length == 0 ? replacement : text.substr(0, length);
    if (out.size() + character.size() > kMostTextBytes) break;
    out += character;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace sluice::tracing
