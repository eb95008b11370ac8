// The decisions on all charges of one request, taken together (docs/semantics.md section 4).
#pragma once

#include <span>

#include "sluice/decision.h"
#include "store/charge.h"

namespace sluice::limiter {

/// One decision out of many; `which` is the index of the charge that its figures are of.
///
/// Denied: `retry_after` and all figures are those of the limit that has to wait longest (never is the longest), among
/// the charges that deny. Allowed: the figures are those of the charge with the least remaining/limit (limit 0 is the
/// least of all), `delay` is the largest. Ties: the first in order.
///
/// Charges that cannot deny do not take part beside those that can: shadow charges, and quota charges that are over
/// while another is not. A request of shadow charges alone is allowed, with the figures of the nearest to its limit.
/// A decision that has no figures, because its store failed, decides only when no other can.
///
/// Pure. Precondition: as many decisions as charges, and at least one.
[[nodiscard]] Decision combine(std::span<const store::Charge> charges, std::span<const Decision> decisions);

/// False for what the policy answered in place of a failed store: there are no figures to show.
[[nodiscard]] constexpr bool has_figures(Source source) {
  return source != Source::fallback_allow && source != Source::fallback_deny;
}

}  // namespace sluice::limiter
