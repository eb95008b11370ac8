#include "front/http/json_reader.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace sluice::http {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0U | (point >> 6U));
    put(0x80U | (point & 0x3FU));
  } else if (point < 0x10000) {
    put(0xE0U | (point >> 12U));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  } else {
    put(0xF0U | (point >> 18U));
    put(0x80U | ((point >> 12U) & 0x3FU));
    put(0x80U | ((point >> 6U) & 0x3FU));
    put(0x80U | (point & 0x3FU));
  }
}

}  // namespace

std::string_view describe(JsonType type) {
  switch (type) {
    case JsonType::object:
      return "an object";
    case JsonType::array:
      return "an array";
    case JsonType::string:
      return "a string";
    case JsonType::number:
      return "a number";
    case JsonType::boolean:
      return "a boolean";
    case JsonType::null:
      return "null";
    case JsonType::none:
      break;
  }
  return "the end of the text";
}

std::size_t json_number_length(std::string_view text) {
  std::size_t i = 0;
  const auto digits = [&text, &i] {
    const std::size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i > begin;
  };
  if (i < text.size() && text[i] == '-') ++i;
  if (i < text.size() && text[i] == '0') {
    ++i;
  } else if (!digits()) {
    return 0;
  }
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (!digits()) return 0;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (!digits()) return 0;
  }
  return i;
}

void JsonReader::skip_space() {
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++position_;
  }
}

bool JsonReader::fail(std::string what) {
  if (!failed_) {
    failed_ = true;
    fault_ = std::move(what);
    mark_ = position_;
  }
  return false;
}

bool JsonReader::fail_here(std::string_view expected) {
  std::string what = "expected ";
  what += expected;
  what += ", found ";
  if (position_ >= text_.size()) {
    what += "the end of the text";
  } else if (const char c = text_[position_]; c > 0x20 && c < 0x7F) {
    what += '\'';
    what += c;
    what += '\'';
  } else {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    what += "byte 0x";
    what += hex[byte >> 4U];
    what += hex[byte & 15U];
  }
  return fail(std::move(what));
}

JsonType JsonReader::peek() {
  if (failed_) return JsonType::none;
  skip_space();
  mark_ = position_;
  if (position_ < text_.size()) {
    switch (const char c = text_[position_]; c) {
      case '{':
        return JsonType::object;
      case '[':
        return JsonType::array;
      case '"':
        return JsonType::string;
      case 't':
      case 'f':
        return JsonType::boolean;
      case 'n':
        return JsonType::null;
      default:
        if (c == '-' || is_digit(c)) return JsonType::number;
    }
  }
  fail_here("a value");
  return JsonType::none;
}

bool JsonReader::begin_object() {
  if (peek() != JsonType::object) return fail_here("'{'");
  ++position_;
  first_ = true;
  return true;
}

bool JsonReader::begin_array() {
  if (peek() != JsonType::array) return fail_here("'['");
  ++position_;
  first_ = true;
  return true;
}

bool JsonReader::next_member(std::string_view& name) {
  if (failed_) return false;
  skip_space();
  const bool first = std::exchange(first_, false);
  if (position_ < text_.size() && text_[position_] == '}') {
    ++position_;
    return false;
  }
  if (!first) {
    if (position_ >= text_.size() || text_[position_] != ',') return fail_here("',' or '}'");
    ++position_;
    skip_space();
  }
  if (position_ >= text_.size() || text_[position_] != '"') {
    return fail_here(first ? "a name in double quotes or '}'" : "a name in double quotes");
  }
  if (!read_string(name)) return false;
  const std::size_t begin = mark_;
  skip_space();
  if (position_ >= text_.size() || text_[position_] != ':') return fail_here("':'");
  ++position_;
  mark_ = begin;
  return true;
}

bool JsonReader::next_element() {
  if (failed_) return false;
  skip_space();
  const bool first = std::exchange(first_, false);
  if (position_ < text_.size() && text_[position_] == ']') {
    ++position_;
    return false;
  }
  if (first) return position_ < text_.size() || fail_here("a value or ']'");
  if (position_ >= text_.size() || text_[position_] != ',') return fail_here("',' or ']'");
  ++position_;
  return true;
}

bool JsonReader::read_string(std::string_view& value) {
  if (peek() != JsonType::string) return fail_here("a string");
  const std::size_t begin = ++position_;
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '"') {
      value = text_.substr(begin, position_ - begin);
      ++position_;
      return true;
    }
    if (c == '\\') return read_escapes(begin, value);
    if (static_cast<unsigned char>(c) < 0x20) return fail_here("an escape for a control character");
    if (static_cast<unsigned char>(c) < 0x80) {
      ++position_;
      continue;
    }
    const std::size_t length = utf8_length(text_.substr(position_));
    if (length == 0) return fail_here("UTF-8");
    position_ += length;
  }
  return fail_here("'\"' at the end of a string");
}

bool JsonReader::read_escapes(std::size_t begin, std::string_view& value) {
  if (arena_.empty()) arena_.reserve(text_.size());
  const std::size_t arena_begin = arena_.size();
  const std::size_t start = mark_;
  arena_.append(text_.substr(begin, position_ - begin));
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c == '"') {
      value = std::string_view(arena_).substr(arena_begin);
      ++position_;
      mark_ = start;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20) return fail_here("an escape for a control character");
    if (c != '\\') {
      const std::size_t length = utf8_length(text_.substr(position_));
      if (length == 0) return fail_here("UTF-8");
      arena_.append(text_.substr(position_, length));
      position_ += length;
      continue;
    }
    ++position_;
    if (position_ >= text_.size()) break;
    constexpr std::string_view escapes = "\"\\/bfnrtu";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const std::size_t which = escapes.find(text_[position_]);
    if (which == std::string_view::npos) return fail_here(R"(one of "\/bfnrtu after '\')");
    ++position_;
    if (which < meanings.size()) {
      arena_ += meanings[which];
    } else if (!decode_unicode()) {
      return false;
    }
  }
  return fail_here("'\"' at the end of a string");
}

bool JsonReader::decode_unicode() {
  std::uint32_t unit = 0;
  if (!read_hex4(unit)) return false;
  if (unit >= 0xDC00 && unit < 0xE000) return fail("a low surrogate without a high one before it");
  if (unit >= 0xD800 && unit < 0xDC00) {
    if (text_.substr(position_, 2) != "\\u") return fail("a high surrogate without a low one after it");
    position_ += 2;
    std::uint32_t low = 0;
    if (!read_hex4(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return fail("a high surrogate without a low one after it");
    unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
  }
  append_utf8(arena_, unit);
  return true;
}

bool JsonReader::read_hex4(std::uint32_t& unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++position_) {
    const char c = position_ < text_.size() ? text_[position_] : '\0';
    std::uint32_t digit = 0;
    if (is_digit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A') + 10;
    } else {
      return fail_here("four hexadecimal digits after '\\u'");
    }
    unit = unit * 16 + digit;
  }
  return true;
}

bool JsonReader::read_number(std::string_view& token) {
  if (peek() != JsonType::number) return fail_here("a number");
  const std::size_t length = json_number_length(text_.substr(position_));
  if (length == 0) return fail("a malformed number");
  token = text_.substr(position_, length);
  position_ += length;
  return true;
}

bool JsonReader::read_word(std::string_view word) {
  if (text_.substr(position_, word.size()) != word) return fail_here("true, false or null");
  position_ += word.size();
  return true;
}

bool JsonReader::read_bool(bool& value) {
  if (peek() != JsonType::boolean) return fail_here("true or false");
  value = text_[position_] == 't';
  return read_word(value ? "true" : "false");
}

bool JsonReader::read_null() {
  if (peek() != JsonType::null) return fail_here("null");
  return read_word("null");
}

bool JsonReader::read_scalar(JsonType type) {
  std::string_view ignored;
  bool truth = false;
  switch (type) {
    case JsonType::string:
      return read_string(ignored);
    case JsonType::number:
      return read_number(ignored);
    case JsonType::boolean:
      return read_bool(truth);
    case JsonType::null:
      return read_null();
    case JsonType::object:
    case JsonType::array:
    case JsonType::none:
      break;
  }
  return false;
}

bool JsonReader::skip_value() {
  std::string open;  // the brackets around the place
  do {
    const JsonType type = peek();
    if (type == JsonType::object || type == JsonType::array) {
      open += type == JsonType::object ? '{' : '[';
      if (!(type == JsonType::object ? begin_object() : begin_array())) return false;
    } else if (!read_scalar(type)) {
      return false;
    }
    // On to the next value, out of all that ends here.
    std::string_view name;
    while (!open.empty() && !(open.back() == '{' ? next_member(name) : next_element())) {
      if (failed_) return false;
      open.pop_back();
    }
  } while (!open.empty());
  return true;
}

bool JsonReader::finish() {
  if (failed_) return false;
  skip_space();
  return position_ == text_.size() || fail_here("nothing more after the value");
}

std::optional<std::string> json_fault(std::string_view text) {
  std::string arena;
  JsonReader reader(text, arena);
  if (reader.skip_value() && reader.finish()) return std::nullopt;
  return reader.place() + ": " + reader.fault();
}

std::string JsonReader::place() const {
  const std::string_view before = text_.substr(0, mark_);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view line = before.substr(line_begin);
  const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return !is_continuation(c); });
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(columns + 1);
}

}  // namespace sluice::http
