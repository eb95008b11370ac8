// The header fields of envoyproxy/ratelimit: three whole numbers, with names of the operator's choice.
#pragma once

#include <string>

#include "limiter/call.h"
#include "sluice/http_answer.h"

namespace sluice::front {

struct PlainHeaderNames {
  std::string limit = "RateLimit-Limit";
  std::string remaining = "RateLimit-Remaining";
  std::string reset = "RateLimit-Reset";  ///< seconds from now
};

/// Replaces `out` by the fields for `answer`: those of the last descriptor that denies, else of the first with the
/// least remaining; none when nothing is limited. Pure.
void render_plain_headers(const limiter::Answer& answer, const PlainHeaderNames& names, HttpHeaders& out);

}  // namespace sluice::front
