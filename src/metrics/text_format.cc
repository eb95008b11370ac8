#include "metrics/text_format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace sluice::metrics {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Length of the well-formed UTF-8 sequence at the beginning of `text`, or 0 (Unicode, table 3-7).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto tail = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return tail(1) ? 2 : 0;
  if (first < 0xF0) {
    const bool short_form = first == 0xE0 && second < 0xA0;
    const bool surrogate = first == 0xED && second > 0x9F;
    return tail(1) && tail(2) && !short_form && !surrogate ? 3 : 0;
  }
  if (first < 0xF5) {
    const bool short_form = first == 0xF0 && second < 0x90;
    const bool too_large = first == 0xF4 && second > 0x8F;
    return tail(1) && tail(2) && tail(3) && !short_form && !too_large ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, std::string_view value, bool quotes) {
  while (!value.empty()) {
    const std::size_t length = sequence_length(value);
    if (length == 0) {
      out += kReplacement;
      value.remove_prefix(1);
      continue;
    }
    const char c = value.front();
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\' || (quotes && c == '"')) {
      out += '\\';
      out += c;
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(length);
  }
}

}  // namespace

std::string escape_label(std::string_view value) {
  std::string out;
  out.reserve(value.size());
  append_escaped(out, value, true);
  return out;
}

void TextFormat::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(text_, help, false);
  text_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void TextFormat::begin_sample(std::initializer_list<Label> labels) {
  text_ += name_;
  char separator = '{';
  for (const auto& [label, value] : labels) {
    text_ += separator;
    separator = ',';
    text_.append(label).append("=\"");
    append_escaped(text_, value, true);
    text_ += '"';
  }
  if (separator == ',') text_ += '}';
  text_ += ' ';
}

void TextFormat::sample(std::initializer_list<Label> labels, std::uint64_t value) {
  begin_sample(labels);
  std::array<char, 20> digits{};
  text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  text_ += '\n';
}

void TextFormat::sample(std::initializer_list<Label> labels, double value) {
  begin_sample(labels);
  if (std::isnan(value)) {
    text_ += "NaN";
  } else if (std::isinf(value)) {
    text_ += value > 0 ? "+Inf" : "-Inf";
  } else {
    std::array<char, 32> digits{};
    text_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
  }
  text_ += '\n';
}

}  // namespace sluice::metrics
