// Are the numbers of an adaptive limit within their ranges?
#pragma once

#include "sluice/adaptive_concurrency.h"

namespace sluice::adaptive {

/// Throws std::invalid_argument that names each field out of range, and its range.
void require_valid(const AdaptiveConcurrency::Numbers& numbers);

}  // namespace sluice::adaptive
