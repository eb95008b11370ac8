#include "cli/descriptor_text.h"

#include <string_view>
#include <utility>

#include "base/suggest.h"

namespace sluice::cli {

/// "key=value,key=value" → entries.
Result<std::vector<DescriptorTexts::OwnEntry>> DescriptorTexts::parse_one(const std::string& text) {
  const Error shape{"expected key=value[,key=value…], found '" + text + "'"};
  std::vector<OwnEntry> entries(1);
  bool in_value = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == ',') {
      if (!in_value) return shape;
      entries.emplace_back();
      in_value = false;
      continue;
    }
    if (c == '=' && !in_value) {
      if (entries.back().key.empty()) return shape;
      in_value = true;
      continue;
    }
    if (c == '\\') {
      if (i + 1 == text.size() || (text[i + 1] != ',' && text[i + 1] != '\\')) {
        return Error{"a backslash stands before a comma or a backslash only, found '" + text + "'"};
      }
      c = text[++i];
    }
    (in_value ? entries.back().value : entries.back().key).push_back(c);
  }
  if (!in_value) return shape;
  return entries;
}

Result<DescriptorTexts> DescriptorTexts::parse(std::span<const std::string> texts) {
  DescriptorTexts all;
  for (const std::string& text : texts) {
    auto one = parse_one(text);
    if (!one) return one.error();
    all.owned_.push_back(*std::move(one));
  }
  for (const auto& own : all.owned_) {
    auto& entries = all.entries_.emplace_back();
    for (const OwnEntry& entry : own) entries.push_back({entry.key, entry.value});
  }
  for (const auto& one : all.entries_) all.descriptors_.push_back({.entries = one, .cost = {}, .limit = {}});
  return all;
}

std::string pick_domain(const std::string& asked, const policy::Policy& policy, std::string& problem) {
  const std::vector<std::string_view> names = policy.domain_names();
  if (asked.empty()) {
    if (names.size() == 1) return std::string(names.front());
    problem = "the policy has several domains; name one with --domain:";
    for (const std::string_view name : names) problem += " " + std::string(name);
    return {};
  }
  if (policy.find_domain(asked) == nullptr) {
    const std::string_view meant = nearest(asked, names);
    problem = "the policy has no domain '" + asked + "'" +
              (meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?");
    return {};
  }
  return asked;
}

}  // namespace sluice::cli
