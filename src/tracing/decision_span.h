// What a span tells of a decision.
#pragma once

#include "limiter/call.h"
#include "tracing/span.h"

namespace sluice::tracing {

/// Adds sluice.verdict, .limit, .store, .cost, .remaining and .key, as far as there are such; the key as
/// `log.denial_keys` has it. `answer` is without a problem.
void describe(const limiter::Answer& answer, Span& span);

}  // namespace sluice::tracing
