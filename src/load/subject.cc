#include "load/subject.h"

#include <algorithm>
#include <utility>

namespace sluice::load {

Subject::Subject(std::shared_ptr<const policy::Policy> policy, const std::string& domain)
    : policy_(std::move(policy)), domain_(policy_->find_domain(domain)) {}

void Subject::find(const Descriptors& descriptors, Checker& checker, std::vector<Checker::KeyId>& keys) {
  rules_.clear();
  names_.resize(std::max(names_.size(), descriptors.size()));
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    entries_.clear();
    for (const auto& [key, value] : descriptors[i]) entries_.push_back({.key = key, .value = value});
    names_[i].clear();
    rules_.push_back(policy_->match(*domain_, entries_, names_[i]));
  }
  const auto is_replaced = [this](const policy::Rule& rule) {
    return !rule.name.empty() && std::ranges::any_of(rules_, [&](const policy::Rule* other) {
      return other != nullptr && other != &rule &&
             std::ranges::find(other->replaces, rule.name) != other->replaces.end();
    });
  };
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const policy::Rule* const rule = rules_[i];
    if (rule == nullptr || rule->unlimited || rule->enforcement != store::Enforcement::enforce || is_replaced(*rule)) {
      continue;
    }
    key_ = rule->counted.identity;
    key_ += ' ';
    key_ += names_[i];
    const Checker::KeyId id = checker.key(rule->counted.numbers, key_);
    // The same key twice is one charge of the sum.
    keys.push_back(id);
  }
}

std::string policy_text(const std::string& domain, const Descriptors& shape, const std::string& numbers) {
  const auto quoted = [](const std::string& text) {
    std::string out = "'";
    for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
    return out + "'";
  };
  std::string text = "domain: " + quoted(domain) + "\ndescriptors:\n";
  std::vector<std::vector<std::string>> seen;
  for (const auto& descriptor : shape) {
    std::vector<std::string> keys;
    keys.reserve(descriptor.size());
    for (const auto& entry : descriptor) keys.push_back(entry.first);
    if (std::ranges::find(seen, keys) != seen.end()) continue;
    seen.push_back(keys);
    std::string indent = "  ";
    for (std::size_t i = 0; i < keys.size(); ++i) {
      text.append(indent).append("- key: ").append(quoted(keys[i])).append("\n");
      indent += "  ";
      text.append(indent);
      if (i + 1 < keys.size()) {
        text.append("descriptors:\n");
      } else {
        text.append("rate_limit: { ").append(numbers).append(" }\n");
      }
      if (i + 1 < keys.size()) indent += "  ";
    }
  }
  return text;
}

}  // namespace sluice::load
