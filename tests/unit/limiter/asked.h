// Policies and requests as tests of the limiter write them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "policy/request.h"

namespace sluice::limiter {

/// A policy from text; identities are those of the text, so each test names a domain of its own.
inline std::shared_ptr<const policy::Policy> policy_of(const std::string& yaml) {
  const policy::SourceText text{"test.yaml", yaml};
  policy::Loaded loaded = policy::load_texts({&text, 1});
  for (const policy::Finding& finding : loaded.findings) {
    if (finding.severity == policy::Finding::Severity::error) ADD_FAILURE() << finding.to_string();
  }
  return loaded.policy;
}

/// A request that owns its texts.
class Asked {
 public:
  explicit Asked(std::string domain, std::uint64_t cost = 1) : domain_(std::move(domain)), cost_(cost) {}
  Asked& with(std::vector<std::pair<std::string, std::string>> entries, std::optional<std::uint64_t> cost = {},
              std::optional<LimitOverride> limit = {}) {
    texts_.push_back(std::move(entries));
    costs_.push_back(cost);
    limits_.push_back(limit);
    return *this;
  }
  [[nodiscard]] Request request() {
    entries_.clear();
    descriptors_.clear();
    entries_.resize(texts_.size());
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      for (const auto& [key, value] : texts_[i]) entries_[i].push_back({key, value});
      descriptors_.push_back({entries_[i], costs_[i], limits_[i]});
    }
    return {domain_, descriptors_, cost_};
  }

 private:
  std::string domain_;
  std::uint64_t cost_;
  std::vector<std::vector<std::pair<std::string, std::string>>> texts_;
  std::vector<std::optional<std::uint64_t>> costs_;
  std::vector<std::optional<LimitOverride>> limits_;
  std::vector<std::vector<Entry>> entries_;
  std::vector<Descriptor> descriptors_;
};

}  // namespace sluice::limiter
