// One limit of a policy, compiled: what is counted and how it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "policy/request.h"
#include "store/charge.h"

namespace sluice::policy {

/// Immutable; owned by a Policy snapshot (or by the call, for limits that a request brings).
struct Rule {
  store::CountedLimit counted;
  store::Enforcement enforcement = store::Enforcement::enforce;
  bool unlimited = false;               ///< always allowed, never reaches a store
  std::string name;                     ///< `name:` of the policy, may be empty; shown in answers, logs and metrics
  std::vector<std::string> replaces;    ///< names of limits this one drops from the same request
  std::uint32_t requests_per_unit = 0;  ///< as RateLimitService shows it
  Unit unit = Unit::unknown;            ///< as RateLimitService shows it; unknown when `period` is not one of its units
  std::string metric_path;              ///< key[_value].key[_value]… as in the statistics of envoyproxy/ratelimit
  std::string domain;
  std::uint32_t slot = 0;  ///< dense index of the rule in its snapshot, for per-rule counters

  /// The name to show a person: `name`, or else the path in the policy.
  [[nodiscard]] const std::string& label() const { return name.empty() ? metric_path : name; }
};

}  // namespace sluice::policy
