// The policy in the place of envoyproxy/ratelimit: which files, and how they are read and judged.
#pragma once

#include <functional>

#include "config/envoy_options.h"
#include "policy/envoy_rules.h"
#include "policy/policy.h"
#include "policy/runtime_files.h"

namespace sluice::compat {

/// How a policy judges.
[[nodiscard]] policy::EnvoyRules envoy_rules(const config::EnvoyOptions& options);
/// Where its files are: RUNTIME_….
[[nodiscard]] policy::RuntimeFiles runtime_files(const config::EnvoyOptions& options);
/// Reads them, again and again, on one thread at a time. Between two steps of a change there may be no files at all:
/// once there were some, that is an error, so that what was in force stays.
[[nodiscard]] std::function<policy::SourceFiles()> runtime_reader(policy::RuntimeFiles files);

}  // namespace sluice::compat
