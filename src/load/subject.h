// Which counters a request is counted on, by the policy.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "load/checker.h"
#include "load/traffic.h"
#include "policy/policy.h"

namespace sluice::load {

/// Reads the policy as the daemon does. Not thread-safe.
class Subject {
 public:
  /// `policy` has `domain`.
  Subject(std::shared_ptr<const policy::Policy> policy, const std::string& domain);
  /// Appends the keys of all limits that count a request and enforce: neither shadow limits, nor quotas, which may be
  /// passed, nor unlimited ones.
  void find(const Descriptors& descriptors, Checker& checker, std::vector<Checker::KeyId>& keys);

 private:
  std::shared_ptr<const policy::Policy> policy_;
  const policy::Domain* domain_;
  std::vector<Entry> entries_;
  std::string key_;
  std::vector<const policy::Rule*> rules_;
  std::vector<std::string> names_;
};

/// A policy of one limit: `numbers` is what stands after `rate_limit:` between braces, and it limits descriptors of
/// this shape, each value by itself.
[[nodiscard]] std::string policy_text(const std::string& domain, const Descriptors& shape, const std::string& numbers);

}  // namespace sluice::load
