#include "request/percent.h"

#include <cstddef>
#include <optional>

namespace sluice::request {
namespace {

std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return std::nullopt;
}

/// The byte of an escape at the front of `text`.
std::optional<char> escaped(std::string_view text) {
  if (text.size() < 3 || text[0] != '%') return std::nullopt;
  const auto high = digit_of(text[1]);
  const auto low = digit_of(text[2]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high << 4U | *low);
}

// What would mean something else without its escape: the end of a segment, of a path, another escape. None of these
// can stand in a segment in the other spelling.
bool divides(char c) { return c == '/' || c == '?' || c == '#' || c == '%'; }

char upper(char c) { return c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

void append_normal(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::optional<char> byte = escaped(text.substr(i));
    if (!byte) {
      // A lone % as the escape that it should have been, so that nothing becomes another escape by this.
      if (text[i] == '%') {
        out += "%25";
      } else {
        out += text[i];
      }
      continue;
    }
    if (divides(*byte)) {
      out += {'%', upper(text[i + 1]), upper(text[i + 2])};
    } else {
      out += *byte;
    }
    i += 2;
  }
}

void append_decoded(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (const std::optional<char> byte = escaped(text.substr(i))) {
      out += *byte;
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
}

}  // namespace sluice::request
