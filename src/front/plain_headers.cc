#include "front/plain_headers.h"

#include <cstdint>
#include <string>

#include "front/headers.h"

namespace sluice::front {

void render_plain_headers(const limiter::Answer& answer, const PlainHeaderNames& names, HttpHeaders& out) {
  out.clear();
  if (answer.problem != limiter::Answer::Problem::none) return;
  const limiter::Status* shown = nullptr;
  std::uint64_t least = UINT64_MAX;
  for (const limiter::Status& status : answer.statuses) {
    if (status.rule == nullptr || status.rule->unlimited || !has_figures(status.decision)) continue;
    if (status.decision.remaining < least) {
      shown = &status;
      least = status.decision.remaining;
    }
    if (status.over_limit && status.rule->enforcement == store::Enforcement::enforce) {
      shown = &status;
      least = 0;
    }
  }
  if (shown == nullptr) return;
  const Wait reset = until_reset(*shown->rule, shown->decision);
  out.add(names.limit) = std::to_string(shown->decision.limit);
  out.add(names.remaining) = std::to_string(shown->decision.remaining);
  out.add(names.reset) = std::to_string(reset.is_never() ? 0 : reset.ceil_seconds());
}

}  // namespace sluice::front
