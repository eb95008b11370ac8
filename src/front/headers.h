// Header fields that tell a caller about its limits: one pure function from an answer, shared by all fronts.
#pragma once

#include "front/plain_headers.h"
#include "limiter/call.h"
#include "sluice/decision.h"
#include "sluice/http_answer.h"
#include "sluice/wait.h"

namespace sluice::front {

/// Which fields are rendered. Meanings: docs/semantics.md section 9.
struct HeaderOptions {
  bool retry_after = true;   ///< Retry-After, on denied answers
  bool rate_limit = true;    ///< RateLimit and RateLimit-Policy (IETF draft-ietf-httpapi-ratelimit-headers-11)
  bool x_rate_limit = true;  ///< X-RateLimit-Limit, -Remaining, -Reset (seconds from now)
  /// Not null: the fields of envoyproxy/ratelimit with these names, and no others.
  const PlainHeaderNames* plain = nullptr;
};

using Header = HttpHeader;
using HeaderList = HttpHeaders;

/// Replaces `out` by the fields for `answer`; none at all when it has no figures to show (the store failed, nothing
/// was limited, only shadow limits took part). Several limits: X-RateLimit-* is the deciding limit's alone, RateLimit
/// and RateLimit-Policy have one item for each, its name unique and at most about 100 characters. Every value comes
/// from the decision's one instant. Pure; allocates only while values grow.
void render_headers(const limiter::Answer& answer, const HeaderOptions& options, HeaderList& out);

/// What a caller is shown as the time until reset: fixed windows – until the window ends; others – denied:
/// retry_after (when never: reset_after), allowed: reset_after. May be never.
[[nodiscard]] Wait until_reset(const policy::Rule& rule, const Decision& decision);

/// Was `decision` made by a limiter, so that its figures mean something?
[[nodiscard]] bool has_figures(const Decision& decision);

}  // namespace sluice::front
