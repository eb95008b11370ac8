#include "algorithm/require_valid.h"

#include <stdexcept>

#include "algorithm/limit_check.h"

namespace sluice::algorithm {

void require_valid(const Limit& limit) {
  const auto problems = validate(limit);
  if (!problems.empty()) throw std::invalid_argument("sluice: " + joined(problems));
}

}  // namespace sluice::algorithm
