// Helpers of this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace sluice::policy {

inline Loaded load_text(std::string text, std::string name = "p.yaml") {
  const std::vector<SourceText> texts{{std::move(name), std::move(text)}};
  return load_texts(texts);
}

/// All findings, one a line.
inline std::string findings_of(const Loaded& loaded) {
  std::string out;
  for (const Finding& finding : loaded.findings) out += finding.to_string() + "\n";
  return out;
}

inline std::string findings_of(std::string text) { return findings_of(load_text(std::move(text))); }

/// The policy of a text that must have no error.
inline std::shared_ptr<const Policy> policy_of(std::string text) {
  Loaded loaded = load_text(std::move(text));
  EXPECT_NE(loaded.policy, nullptr) << findings_of(loaded);
  return loaded.policy;
}

struct Matched {
  const Rule* rule = nullptr;
  std::string key;
};

inline Matched match(const Policy& policy, std::string_view domain, std::initializer_list<Entry> entries) {
  Matched matched;
  const Domain* found = policy.find_domain(domain);
  EXPECT_NE(found, nullptr) << "no domain " << domain;
  if (found != nullptr) matched.rule = policy.match(*found, std::vector<Entry>(entries), matched.key);
  return matched;
}

/// The path of the rule that a descriptor matches; "-" for none.
inline std::string path_of(const Policy& policy, std::string_view domain, std::initializer_list<Entry> entries) {
  const Rule* rule = match(policy, domain, entries).rule;
  return rule == nullptr ? "-" : rule->metric_path;
}

}  // namespace sluice::policy
