#include "tracing/decision_span.h"

#include <algorithm>
#include <string>

#include "limiter/denial_log.h"
#include "limiter/words.h"

namespace sluice::tracing {
namespace {

std::string_view verdict_name(const limiter::Answer& answer) {
  if (!answer.allowed) return "denied";
  const bool is_shadowed = std::ranges::any_of(answer.statuses, [](const limiter::Status& status) {
    return status.rule != nullptr && !status.decision.allowed && !status.over_limit;
  });
  return is_shadowed ? "shadow_denied" : "allowed";
}

}  // namespace

void describe(const limiter::Answer& answer, Span& span) {
  span.set("sluice.verdict", verdict_name(answer));
  if (answer.deciding == nullptr) return;
  span.set("sluice.limit", answer.deciding->label());
  span.set("sluice.store", limiter::source_name(answer.decision.source));
  if (answer.deciding->unlimited || answer.decision.which >= answer.statuses.size()) return;
  const limiter::Status& status = answer.statuses[answer.decision.which];
  span.set("sluice.cost", static_cast<std::int64_t>(status.cost));
  if (answer.has_figures) span.set("sluice.remaining", static_cast<std::int64_t>(answer.decision.remaining));
  if (const std::string key = limiter::DenialLog::shown(status.key); !key.empty()) span.set("sluice.key", key);
}

}  // namespace sluice::tracing
