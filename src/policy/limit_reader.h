// Reads `rate_limit` of a policy file.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/denial_text.h"
#include "policy/field_reader.h"
#include "policy/findings.h"
#include "policy/overflow.h"
#include "policy/policy.h"
#include "policy/request.h"
#include "sluice/limit.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// What a `rate_limit` says.
struct LimitText {
  Limit numbers;  ///< in range and known to the algorithm, unless `unlimited`
  bool unlimited = false;
  std::string name;
  std::vector<std::string> replaces;
  std::uint32_t requests_per_unit = 0;  ///< 2^32 − 1 where it is more
  Unit unit = Unit::unknown;
  std::optional<OnStoreFailure> on_store_failure;
  Denial denial;
  bool holds = false;
  std::optional<Overflow> overflow;
};

/// Reads a `rate_limit` map. Nothing when there were errors; all are added to `findings`.
[[nodiscard]] std::optional<LimitText> read_limit(const yaml::Node& map, const LoadOptions& options,
                                                  Findings& findings);

/// Reads `on_store_failure`, where it stands among `fields`.
[[nodiscard]] std::optional<OnStoreFailure> read_on_store_failure(const FieldReader& fields, Findings& findings);

/// The length of a unit's windows: a month is 30 days, a year 365. Zero for unknown.
[[nodiscard]] std::chrono::nanoseconds length_of(Unit unit);

/// The unit's name in lower case; "unknown" for unknown.
[[nodiscard]] std::string_view name_of(Unit unit);

}  // namespace sluice::policy
