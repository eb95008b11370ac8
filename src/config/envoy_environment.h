// The variables of envoyproxy/ratelimit but for those of its Redis: `sluice serve --compat envoyproxy`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/envoy_options.h"
#include "config/ratelimit_environment.h"

namespace sluice::config {

/// What they come to.
struct EnvoyEnvironment {
  std::vector<RatelimitEnvironment::Value> values;  ///< of settings, its defaults with them
  EnvoyOptions options;
  std::vector<RatelimitEnvironment::Value> listing;  ///< the options, by the names of their variables, for people
  bool names_policy = false;                         ///< RUNTIME_ROOT says where the policy is
  bool has_per_second = false;                       ///< limits per second have a Redis of their own
  std::vector<std::string> errors;                   ///< each one line, naming the variable
  std::vector<std::string> warnings;                 ///< of those that have no meaning here, one line each
};

/// `environment` holds NAME=value lines; those of other names are not looked at. Pure.
[[nodiscard]] EnvoyEnvironment read_envoy_environment(std::span<const std::string> environment);

}  // namespace sluice::config
