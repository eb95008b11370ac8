#include "limiter/words.h"

#include <algorithm>

#include "limiter/combine.h"

namespace sluice::limiter {

std::string_view source_name(Source source) {
  switch (source) {
    case Source::memory:
      return "memory";
    case Source::redis:
      return "redis";
    case Source::fallback_local:
      return "fallback_local";
    case Source::fallback_allow:
      return "fallback_allow";
    case Source::fallback_deny:
      break;
  }
  return "fallback_deny";
}

std::string_view algorithm_name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::token_bucket:
      return "token_bucket";
    case Algorithm::leaky_bucket:
      return "leaky_bucket";
    case Algorithm::fixed_window:
      return "fixed_window";
    case Algorithm::sliding_window:
      return "sliding_window";
    case Algorithm::sliding_log:
      return "sliding_log";
    case Algorithm::concurrency:
      break;
  }
  return "concurrency";
}

std::string_view mode_name(store::Enforcement enforcement) {
  switch (enforcement) {
    case store::Enforcement::enforce:
      return "enforce";
    case store::Enforcement::shadow:
      return "shadow";
    case store::Enforcement::quota:
      break;
  }
  return "quota";
}

bool Verdict::has_figures() const {
  return rule != nullptr && !rule->unlimited && limiter::has_figures(decision.source);
}

Verdict verdict_of(const Answer& answer) {
  // The decision as a whole says allowed where a limit in shadow mode decides; its own verdict is in its status.
  const std::size_t which = answer.decision.which;
  const Status* deciding = which < answer.statuses.size() ? &answer.statuses[which] : nullptr;
  return {.allowed = answer.allowed,
          .fits = deciding != nullptr ? deciding->decision.allowed : answer.allowed,
          .never_fits = deciding != nullptr && deciding->never_fits,
          .rule = answer.deciding,
          .decision = answer.decision,
          .known_domain = answer.known_domain};
}

Verdict verdict_of(const Answer& answer, std::size_t descriptor) {
  const Status& status = answer.statuses[descriptor];
  return {.allowed = !status.over_limit,
          .fits = status.decision.allowed,
          .never_fits = status.never_fits,
          .rule = status.rule,
          .decision = status.decision,
          .known_domain = answer.known_domain};
}

std::string_view reason_of(const Verdict& verdict) {
  if (verdict.rule == nullptr) return verdict.known_domain ? "no_limit" : "unknown_domain";
  if (verdict.rule->unlimited) return "unlimited";
  if (!has_figures(verdict.decision.source)) return "store_unavailable";
  if (!verdict.fits && verdict.allowed) return "shadow";
  if (verdict.decision.mark == Mark::banned) return "banned";
  if (!verdict.fits) return verdict.never_fits ? "never_fits" : "over_limit";
  return verdict.decision.mark == Mark::quota_hit ? "last_token" : "within_limit";
}

std::string_view result_of(const VerbAnswer& answer) {
  if (answer.failed) return "store_unavailable";
  if (answer.any_done) return "done";
  const auto any = [&answer](VerbStatus::Other other) {
    return std::ranges::any_of(answer.statuses, [other](const VerbStatus& status) { return status.other == other; });
  };
  if (any(VerbStatus::Other::counter)) return "limit_changed";
  if (!answer.held) return "not_held";
  if (any(VerbStatus::Other::nothing)) return "nothing_taken";
  return answer.known_domain ? "no_limit" : "unknown_domain";
}

std::string_view result_of(const VerbAnswer& answer, const VerbStatus& status) {
  if (status.rule == nullptr) return answer.known_domain ? "no_limit" : "unknown_domain";
  if (status.done) return "done";
  if (status.failure != store::Failure::none) return "store_unavailable";
  if (status.other == VerbStatus::Other::counter) return "limit_changed";
  if (status.held && status.other == VerbStatus::Other::nothing) return "nothing_taken";
  return status.held ? "unlimited" : "not_held";
}

}  // namespace sluice::limiter
