// Tracing as envoyproxy/ratelimit is told of it: TRACING_… and OTEL_….
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/environment_reader.h"
#include "config/ratelimit_environment.h"

namespace sluice::config {

struct OtelEnvironment {
  std::vector<RatelimitEnvironment::Value> values;  ///< of the settings of tracing
  std::vector<std::string> warnings;                ///< of variables without effect
};

/// `environment` holds the lines that `reader` has. Mistakes go to `reader`.
[[nodiscard]] OtelEnvironment read_otel_environment(EnvironmentReader& reader,
                                                    std::span<const std::string> environment);

}  // namespace sluice::config
