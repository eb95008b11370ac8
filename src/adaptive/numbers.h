// The numbers of an adaptive limit: are they within their ranges, and what the default of one is.
#pragma once

#include <cstdint>

#include "sluice/adaptive_concurrency.h"

namespace sluice::adaptive {

/// Throws std::invalid_argument that names each field out of range, and its range.
void require_valid(const AdaptiveConcurrency::Numbers& numbers);

/// The limit at first. Precondition: valid numbers.
[[nodiscard]] std::uint64_t initial_limit(const AdaptiveConcurrency::Numbers& numbers);

}  // namespace sluice::adaptive
