// What is wrong with a policy, for those who may ask but not read its files.
#pragma once

#include <string>

#include "policy/policy.h"

namespace sluice::policy {

/// As Finding::to_string(), but with nothing that stood in the file: where a text or a number of it was shown is "…". A
/// file that is no policy at all, put there by mistake, may hold anybody's password.
[[nodiscard]] std::string public_text(const Finding& finding);

}  // namespace sluice::policy
