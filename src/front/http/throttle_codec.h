// POST /throttle, as throttlecrab has it.
#pragma once

#include <string>
#include <string_view>

#include "front/resp/throttle.h"
#include "sluice/decision.h"

namespace sluice::http {

/// Reads {"key", "max_burst", "count_per_period", "period", "quantity"?}; further members are skipped. Returns the
/// status: 200, or 400 (no JSON, a number out of range) or 422 (a member is missing, twice there, or of another type; a
/// number is not whole or has more than 64 bits), and `fault` in words. The key is a view into `text` or `arena`.
[[nodiscard]] unsigned decode_throttle(std::string_view text, resp::Throttle& throttle, std::string& arena,
                                       std::string& fault);

/// Appends {"allowed", "limit", "remaining", "reset_after", "retry_after"}: whole seconds, rounded up; -1: never.
void encode_throttle(const Decision& decision, std::string& out);

}  // namespace sluice::http
