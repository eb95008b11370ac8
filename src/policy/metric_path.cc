#include "policy/metric_path.h"

#include <algorithm>

namespace sluice::policy {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The length of four groups of one to three digits with dots between at the start of `text`, or 0.
std::size_t ipv4_length(std::string_view text) {
  std::size_t i = 0;
  for (int group = 0; group < 4; ++group) {
    if (group > 0) {
      if (i >= text.size() || text[i] != '.') return 0;
      ++i;
    }
    const std::size_t begin = i;
    while (i < text.size() && i - begin < 3 && is_digit(text[i])) ++i;
    if (i == begin) return 0;
  }
  return i;
}

void append_entry(const Entry& entry, std::string& path) {
  if (!path.empty()) path.push_back('.');
  path.append(entry.key);
  if (!entry.value.empty()) path.append("_").append(entry.value);
}

}  // namespace

std::string clean_metric_name(std::string_view name) {
  std::string clean(name);
  std::ranges::replace_if(clean, [](char c) { return c == ':' || c == '|'; }, '_');
  for (std::size_t i = 0; i < clean.size();) {
    const std::size_t length = is_digit(clean[i]) ? ipv4_length(std::string_view(clean).substr(i)) : 0;
    const auto begin = clean.begin() + static_cast<std::ptrdiff_t>(i);
    std::replace(begin, begin + static_cast<std::ptrdiff_t>(length), '.', '_');
    i += std::max<std::size_t>(length, 1);
  }
  return clean;
}

std::string metric_path_for(const Rule& rule, std::span<const Entry> entries) {
  if (rule.metric_levels.size() != entries.size()) return rule.metric_path;
  std::string path;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (rule.metric_levels[i].runtime_value) {
      append_entry(entries[i], path);
    } else {
      append_entry({rule.metric_levels[i].text, {}}, path);
    }
  }
  return clean_metric_name(path);
}

std::string metric_path_of(std::span<const Entry> entries) {
  std::string path;
  for (const Entry& entry : entries) append_entry(entry, path);
  return clean_metric_name(path);
}

}  // namespace sluice::policy
