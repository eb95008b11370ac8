// The statistics of envoyproxy/ratelimit, by its names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/metrics.h"

namespace sluice::compat {

/// One counter. `value` never falls.
struct Statistic {
  std::string name;
  std::uint64_t value = 0;
};

/// A moment's figures.
struct Statistics {
  std::vector<Statistic> counters;  ///< in the order of their names; limits that were hit, and the service's own
  metrics::ServiceHits service;     ///< for the times of calls
};

inline constexpr const char* kResponseTime = "ratelimit_server.ShouldRateLimit.response_time";

/// Thread-safe. Cost: proportional to the names.
[[nodiscard]] Statistics read_statistics(const metrics::Registry& registry, bool is_policy_loaded);

}  // namespace sluice::compat
