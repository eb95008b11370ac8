// The body of an answer that denies somebody else's request: what its client will see.
#pragma once

#include <string>
#include <string_view>

#include "limiter/call.h"

namespace sluice::http {

/// Appends the body, as the deciding limit's `body` or `message` has it, or else
/// {"msg":"rate limit exceeded","retry_after":N}; as a problem document when that is wanted and there is no `body`.
/// Returns its media type. Precondition: denied by a limit.
[[nodiscard]] std::string_view append_denial_body(const limiter::Answer& answer, unsigned status, bool wants_problem,
                                                  std::string& out);

/// The same in words: "rate limit exceeded", or the deciding limit's `message`. Same precondition.
[[nodiscard]] std::string denial_message(const limiter::Answer& answer);

}  // namespace sluice::http
