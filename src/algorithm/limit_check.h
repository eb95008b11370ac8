// Are the numbers of a limit within their ranges?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/limit.h"

namespace sluice::algorithm {

/// One number that is out of range.
struct LimitProblem {
  std::string_view field;  ///< as in Limit: "rate", "period", "calendar.timezone", …
  std::string message;     ///< the range, and what was found: "must be 0 … 1000000000000, is 1000000000001"
};

/// All problems of the fields that the limit's algorithm uses, in the order of Limit. Empty: the limit can be compiled
/// (but for the name of a time zone, which only Calendars::open can judge).
[[nodiscard]] std::vector<LimitProblem> validate(const Limit& limit);

/// "field: message; field: message"
[[nodiscard]] std::string joined(const std::vector<LimitProblem>& problems);

/// Empty, or why `cost` is out of range.
[[nodiscard]] std::string validate_cost(std::uint64_t cost);

}  // namespace sluice::algorithm
