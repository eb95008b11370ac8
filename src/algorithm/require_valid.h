// The check of numbers that come from a caller of the library.
#pragma once

#include "sluice/limit.h"

namespace sluice::algorithm {

/// Throws std::invalid_argument that names each field out of range.
void require_valid(const Limit& limit);

}  // namespace sluice::algorithm
