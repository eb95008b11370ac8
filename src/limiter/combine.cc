#include "limiter/combine.h"

#include <cassert>
#include <cstddef>
#include <optional>

#include "store/admission.h"

namespace sluice::limiter {
namespace {

__extension__ using Wide = unsigned __int128;  // a product of two figures of up to 10^15

/// remaining/limit of `a` < that of `b`; limit 0 is less than all others.
bool ratio_less(const Decision& a, const Decision& b) {
  if (a.limit == 0 || b.limit == 0) return a.limit == 0 && b.limit != 0;
  return Wide{a.remaining} * b.limit < Wide{b.remaining} * a.limit;
}

/// How much a decision has to say about an admitted request; the greatest rules, whatever its figures.
int weight(const store::Charge& charge, const Decision& decision) {
  if (charge.enforcement == store::Enforcement::shadow) return has_figures(decision.source) ? 1 : 0;
  return has_figures(decision.source) ? 3 : 2;
}

Decision combine_allowed(std::span<const store::Charge> charges, std::span<const Decision> decisions) {
  std::optional<std::size_t> best;
  int best_weight = 0;
  Wait delay;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const bool shadow = charges[i].enforcement == store::Enforcement::shadow;
    if (!decisions[i].allowed && !shadow) continue;  // a quota that is over, beside one that is not
    if (!shadow && decisions[i].delay > delay) delay = decisions[i].delay;
    const int mine = weight(charges[i], decisions[i]);
    if (best && (mine < best_weight || (mine == best_weight && !ratio_less(decisions[i], decisions[*best])))) continue;
    best = i;
    best_weight = mine;
  }
  assert(best);
  Decision answer = decisions[*best];
  answer.which = static_cast<std::uint32_t>(*best);
  answer.delay = delay;
  if (!answer.allowed) {  // a shadow limit's own verdict does not count
    answer.allowed = true;
    answer.mark = Mark::none;
    answer.retry_after = Wait();
  }
  return answer;
}

Decision combine_denied(std::span<const store::Charge> charges, std::span<const Decision> decisions,
                        bool quota_exhausted) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (decisions[i].allowed || charges[i].enforcement == store::Enforcement::shadow) continue;
    if (charges[i].enforcement == store::Enforcement::quota && !quota_exhausted) continue;
    if (best) {
      const bool mine = has_figures(decisions[i].source);
      const bool theirs = has_figures(decisions[*best].source);
      if (mine != theirs ? theirs : decisions[i].retry_after <= decisions[*best].retry_after) continue;
    }
    best = i;
  }
  assert(best);
  Decision answer = decisions[*best];
  answer.which = static_cast<std::uint32_t>(*best);
  return answer;
}

}  // namespace

Decision combine(std::span<const store::Charge> charges, std::span<const Decision> decisions) {
  assert(!charges.empty() && charges.size() == decisions.size());
  const store::Admission admission = store::admission_of(charges, decisions);
  return admission.admitted() ? combine_allowed(charges, decisions)
                              : combine_denied(charges, decisions, admission.quota_exhausted());
}

}  // namespace sluice::limiter
