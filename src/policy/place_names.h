// Which key belongs where in a policy file.
#pragma once

#include <cstdint>
#include <string_view>

#include "policy/field_reader.h"
#include "policy/findings.h"

namespace sluice::policy {

enum class Place : std::uint8_t { root, descriptor, rate_limit, replaces, calendar, overflow };

/// Complains about each field that does not belong in `place`: an error for a name that nobody knows (with what was
/// probably meant) and for a name of Sluice's that belongs elsewhere; a warning for one that envoyproxy/ratelimit
/// knows, as it reads the file without a word.
void check_names(const FieldReader& fields, Place place, Findings& findings);

}  // namespace sluice::policy
