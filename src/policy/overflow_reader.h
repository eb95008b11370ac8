// Reads `overflow` of a limit.
#pragma once

#include <optional>

#include "policy/field_reader.h"
#include "policy/findings.h"
#include "policy/overflow.h"
#include "policy/policy.h"

namespace sluice::policy {

/// Reads the map `overflow` where it stands among `limit`. Nothing when it is absent, or wrong, which is a finding.
[[nodiscard]] std::optional<Overflow> read_overflow(const FieldReader& limit, const LoadOptions& options,
                                                    Findings& findings);

}  // namespace sluice::policy
