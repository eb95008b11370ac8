#include "policy/first_document.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace sluice::policy {
namespace {

/// `---` or `...`, alone or before a space.
bool is_mark(std::string_view line, std::string_view mark) {
  constexpr std::string_view spaces = " \t\r";
  return line.starts_with(mark) &&
         (line.size() == mark.size() || spaces.find(line[mark.size()]) != std::string_view::npos);
}

bool says_nothing(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  return first == std::string_view::npos || line[first] == '#';
}

}  // namespace

FirstDocument first_document(std::string_view text) {
  constexpr std::string_view start = "---";
  constexpr std::string_view end = "...";
  bool has_begun = false;
  bool has_ended = false;
  int number = 1;
  FirstDocument first{.text = text};
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t length = std::min(text.find('\n', begin), text.size()) - begin;
    std::string_view line = text.substr(begin, length);
    if (number == 1) line = without_byte_order_mark(line);
    const bool starts = is_mark(line, start);
    if (has_begun && !has_ended && (starts || is_mark(line, end))) {
      has_ended = true;
      first.text = text.substr(0, begin);
    }
    // Directives stand before the line that begins a document.
    const bool is_directive = !has_begun && line.starts_with('%');
    has_begun = has_begun || starts || (!says_nothing(line) && !is_directive);
    if (has_ended && !says_nothing(starts || is_mark(line, end) ? line.substr(start.size()) : line)) {
      first.rest_line = number;
      return first;
    }
    begin += length + 1;
  }
  return first;
}

}  // namespace sluice::policy
