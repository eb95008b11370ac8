// The statistics of envoyproxy/ratelimit as its default mapping gives them to Prometheus.
#pragma once

#include <string>

#include "compat/statistics.h"
#include "config/envoy_options.h"

namespace sluice::compat {

/// The text format. Names below a domain that have more than two levels are folded into their first two, as there, and
/// what the mapping does not name has its own name with `_` for what a name may not hold. EXTRA_TAGS are labels of all.
[[nodiscard]] std::string to_prometheus(const Statistics& statistics, const config::EnvoyOptions& options);

}  // namespace sluice::compat
