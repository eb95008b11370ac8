// From the algorithms' answers, in ns, to a Decision; and the check of numbers that come from a caller.
#pragma once

#include "algorithm/verdict.h"
#include "sluice/decision.h"
#include "sluice/limit.h"

namespace sluice::internal {

[[nodiscard]] Decision decision_of(const algorithm::Verdict& verdict, const algorithm::View& view) noexcept;

/// Throws std::invalid_argument that names each field out of range.
void require_valid(const Limit& limit);

}  // namespace sluice::internal
