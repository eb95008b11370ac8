#include "single/decision_of.h"

#include <chrono>
#include <stdexcept>

#include "algorithm/limit_check.h"

namespace sluice::internal {

namespace {

Wait wait(std::int64_t ticks) {
  return ticks == algorithm::kNever ? Wait::never() : Wait(std::chrono::nanoseconds(ticks));
}

}  // namespace

Decision decision_of(const algorithm::Verdict& verdict, const algorithm::View& view) noexcept {
  return {.allowed = verdict.fits,
          .mark = verdict.mark,
          .limit = view.limit,
          .remaining = view.remaining,
          .retry_after = wait(verdict.retry_after),
          .reset_after = wait(view.reset_after),
          .delay = wait(verdict.delay)};
}

void require_valid(const Limit& limit) {
  const auto problems = algorithm::validate(limit);
  if (!problems.empty()) throw std::invalid_argument("sluice: " + algorithm::joined(problems));
}

}  // namespace sluice::internal
