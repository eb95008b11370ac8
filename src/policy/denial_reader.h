// Reads what a limit says when it denies.
#pragma once

#include "policy/denial_text.h"
#include "policy/field_reader.h"
#include "policy/findings.h"

namespace sluice::policy {

/// Reads `message`, `body` and `content_type` where they stand among `limit`.
[[nodiscard]] Denial read_denial(const FieldReader& limit, Findings& findings);

}  // namespace sluice::policy
