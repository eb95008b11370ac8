// How a scalar's text is typed.
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "yaml/tree.h"

namespace sluice::yaml {
namespace {

using Type = Scalar::Type;

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::array<std::string_view, 11> kTrue{"y",    "Y",    "yes", "Yes", "YES", "true",
                                                 "True", "TRUE", "on",  "On",  "ON"};
constexpr std::array<std::string_view, 11> kFalse{"n",     "N",     "no",  "No",  "NO", "false",
                                                  "False", "FALSE", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 5> kNull{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 12> kNotFinite{".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                                      "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A word for what is not finite, or [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_floating(std::string_view text) {
  if (is_one_of(text, kNotFinite)) return true;
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t begin = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return i - begin;
  };
  const auto sign = [&] {
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
  };
  sign();
  const std::size_t whole = digits();
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0 && whole == 0) return false;
  } else if (whole == 0) {
    return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    sign();
    if (digits() == 0) return false;
  }
  return i == text.size();
}

/// A whole number in the base its prefix names. What does not fit 64 bits is floating, as in the field.
bool read_integer(std::string_view text, Scalar& scalar) {
  scalar.negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  const auto prefix = [&](std::string_view lower, std::string_view upper, int its_base) {
    if (!text.starts_with(lower) && !text.starts_with(upper)) return false;
    text.remove_prefix(2);
    base = its_base;
    return true;
  };
  if (!prefix("0x", "0X", 16) && !prefix("0b", "0B", 2) && !prefix("0o", "0O", 8) && text.size() > 1 &&
      text.starts_with('0')) {
    text.remove_prefix(1);
    base = 8;
  }
  if (text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scalar.magnitude, base);
  return error == std::errc{} && end == text.data() + text.size();
}

Scalar resolve_plain(std::string_view text) {
  Scalar scalar;
  if (is_one_of(text, kNull)) {
    scalar.type = Type::null;
  } else if (is_one_of(text, kTrue) || is_one_of(text, kFalse)) {
    scalar.type = Type::boolean;
    scalar.boolean = is_one_of(text, kTrue);
  } else if (is_digit(text.front()) || text.front() == '-' || text.front() == '+') {
    std::string digits(text);
    std::erase(digits, '_');
    if (read_integer(digits, scalar)) {
      scalar.type = Type::integer;
    } else if (is_floating(digits)) {
      scalar.type = Type::floating;
    }
  } else if (text.front() == '.' && is_floating(text)) {
    scalar.type = Type::floating;
  }
  return scalar;
}

}  // namespace

Scalar resolve_scalar(const Node& node) {
  if (node.kind == Node::Kind::null) return {.type = Type::null};
  static constexpr std::string_view kStandard = "tag:yaml.org,2002:";
  if (node.plain) return resolve_plain(node.text);
  if (!node.tag.starts_with(kStandard)) return {};
  const std::string_view tag = std::string_view(node.tag).substr(kStandard.size());
  if (tag == "float") return {.type = Type::floating};
  if (tag == "int" || tag == "bool" || tag == "null") return resolve_plain(node.text);
  return {};
}

}  // namespace sluice::yaml
