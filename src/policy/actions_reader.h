// Reads the `actions` of `requests`: Envoy's, and some more.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/field_reader.h"
#include "policy/findings.h"
#include "request/rules.h"
#include "yaml/tree.h"

namespace sluice::policy {

/// What the actions of a `requests` have asked for.
struct ActionNeeds {
  std::vector<std::vector<std::string>> claims;  ///< paths, each once; actions name them by index
  std::optional<yaml::Position> claim;           ///< where the first of these stands
  std::optional<yaml::Position> api_key;
  std::optional<yaml::Position> address;
};

/// Reads one descriptor's actions and its cost.
[[nodiscard]] request::DescriptorRule read_descriptor_rule(const yaml::Node& map, ActionNeeds& needs,
                                                           Findings& findings);

/// A cost: a number, or { header_name, default }.
[[nodiscard]] request::Cost read_cost(const yaml::Node& node, Findings& findings);

}  // namespace sluice::policy
