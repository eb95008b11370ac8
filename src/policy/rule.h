// One limit of a policy, compiled: what is counted and how it is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/denial_text.h"
#include "policy/overflow.h"
#include "policy/request.h"
#include "store/charge.h"

namespace sluice::policy {

/// One level of the statistics' name of a rule that puts values of the request into it.
struct MetricLevel {
  std::string text;            ///< key, or key_value where the policy has one
  bool runtime_value = false;  ///< key_ and the value that the request has
};

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
  /// Empty unless `detailed_metric` or `value_to_metric` make the name depend on the request (see metric_path.h).
  std::vector<MetricLevel> metric_levels;
  std::string metadata;  ///< `metadata:` of the policy as a JSON object; empty when there is none
  std::string domain;
  Denial denial;                     ///< what is said when it denies
  bool holds = false;                ///< leaky bucket: fronts answer after the delay, in place of telling it
  std::optional<Overflow> overflow;  ///< where requests beyond the limit may wait
  std::uint32_t slot = 0;            ///< dense index of the rule in its snapshot, for per-rule counters

  /// The name to show a person: `name`, or else the path in the policy.
  [[nodiscard]] const std::string& label() const { return name.empty() ? metric_path : name; }
};

}  // namespace sluice::policy
