// The names of limits in statistics, as envoyproxy/ratelimit writes them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "policy/request.h"
#include "policy/rule.h"

namespace sluice::policy {

/// Replaces what has a meaning of its own in statsd: ':' and '|', and the dots of IPv4 addresses, become '_'.
[[nodiscard]] std::string clean_metric_name(std::string_view name);

/// The name of `rule`'s statistics for one request: rule.metric_path, unless the policy asks for values of the request
/// in it. Those are as many as clients care to send: bound them before you keep a counter for each.
[[nodiscard]] std::string metric_path_for(const Rule& rule, std::span<const Entry> entries);

/// The name of the statistics of a limit that a request brings: all of the request's keys and values.
[[nodiscard]] std::string metric_path_of(std::span<const Entry> entries);

}  // namespace sluice::policy
