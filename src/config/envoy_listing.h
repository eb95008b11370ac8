// What the environment of envoyproxy/ratelimit came to where no setting of Sluice's own shows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/envoy_options.h"

namespace sluice::config {

/// A variable and what is in force.
struct ListedOption {
  std::string_view variable;
  std::string value;
};

/// In an order for people.
[[nodiscard]] std::vector<ListedOption> list_options(const EnvoyOptions& options);

}  // namespace sluice::config
