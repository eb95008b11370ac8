#include "config/environment_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <system_error>

#include "base/duration.h"

namespace sluice::config {

EnvironmentReader::EnvironmentReader(std::span<const std::string> environment) {
  for (const std::string& line : environment) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos) variables_[line.substr(0, equals)] = line.substr(equals + 1);
  }
}

std::string EnvironmentReader::text(std::string_view name, const std::string& fallback) const {
  const auto found = variables_.find(name);
  return found == variables_.end() || found->second.empty() ? fallback : found->second;
}

void EnvironmentReader::fail(std::string_view name, const std::string& expected) {
  errors_.push_back(std::string(name) + ": expected " + expected + ", found '" + text(name) + "'");
}

bool EnvironmentReader::truth(std::string_view name, bool fallback) {
  const std::string value = text(name);
  constexpr std::array<std::string_view, 6> yes{"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> no{"0", "f", "F", "FALSE", "false", "False"};
  if (value.empty()) return fallback;
  if (std::ranges::find(yes, value) != yes.end()) return true;
  if (std::ranges::find(no, value) == no.end()) fail(name, "true or false");
  return false;
}

std::uint64_t EnvironmentReader::number(std::string_view name, std::uint64_t fallback, std::uint64_t most) {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  std::uint64_t read = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), read);
  if (error == std::errc{} && end == value.data() + value.size() && read <= most) return read;
  fail(name, "a whole number of 0 to " + std::to_string(most));
  return fallback;
}

void EnvironmentReader::warn(std::string_view name, const std::string& as) {
  warnings_.push_back(std::string(name) + ": '" + text(name) + "' counts as " + as);
}

float EnvironmentReader::ratio(std::string_view name, float fallback) {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  // Signs, hexadecimal digits, inf and nan as well; no space before it, and nothing in brackets behind it.
  char* end = nullptr;
  const float read = std::strtof(value.c_str(), &end);
  const bool is_number = std::isspace(static_cast<unsigned char>(value.front())) == 0 &&
                         value.find('(') == std::string::npos && end == value.c_str() + value.size();
  if (!is_number) {
    fail(name, "a number of 0 to 1");
    return fallback;
  }
  if (read >= 0 && read <= 1) return read;
  warn(name, read < 0 ? "0" : "1");
  return read < 0 ? 0.0F : 1.0F;
}

std::chrono::nanoseconds EnvironmentReader::duration(std::string_view name, std::chrono::nanoseconds fallback) {
  const std::string value = text(name);
  if (value.empty()) return fallback;
  if (value == "0") return std::chrono::nanoseconds(0);
  const auto read = parse_duration(value);
  if (read && read->count() >= 0) return *read;
  fail(name, "a duration such as 10s");
  return fallback;
}

std::vector<std::string> EnvironmentReader::list(std::string_view name) const {
  const std::string value = text(name);
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < value.size();) {
    const std::size_t comma = std::min(value.find(',', begin), value.size());
    if (comma > begin) parts.push_back(value.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

std::vector<std::pair<std::string, std::string>> EnvironmentReader::pairs(std::string_view name) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& part : list(name)) {
    const std::size_t colon = part.find(':');
    if (colon == std::string::npos || colon == 0) {
      fail(name, "pairs of NAME:VALUE with commas between");
      return {};
    }
    std::pair<std::string, std::string> pair(part.substr(0, colon), part.substr(colon + 1));
    const auto same = std::ranges::find(all, pair.first, &std::pair<std::string, std::string>::first);
    if (same == all.end()) {
      all.push_back(std::move(pair));
    } else {
      *same = std::move(pair);  // the last one counts
    }
  }
  return all;
}

}  // namespace sluice::config
