// Which limits the scripts can count exactly.
#pragma once

#include <optional>
#include <string>

#include "sluice/limit.h"

namespace sluice::store::redis {

/// Why a limit cannot be kept in Redis, as a sentence that begins with the field and names the range; nothing when it
/// can. Numbers are counted in doubles, exact below 2^53; the state keeps whole tokens and parts of one apart, so every
/// limit within the ranges of sluice/limit.h is exact. What is refused is what lies outside.
[[nodiscard]] std::optional<std::string> inexact_in_redis(const Limit& limit);

}  // namespace sluice::store::redis
