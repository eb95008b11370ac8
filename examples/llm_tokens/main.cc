// Tokens of a language model: how many an answer takes is known when it is there. So the most that it may take is
// reserved, and settled afterwards: what was not used is given back, what was used beyond is owed.
#include <sluice/limiter.h>

#include <cstdint>
#include <iostream>

namespace {

void complete(sluice::Limiter& limiter, std::uint64_t prompt, std::uint64_t max_tokens, std::uint64_t used) {
  sluice::LimiterRequest request{.domain = "llm", .descriptors = {{{"user", "42"}}}, .cost = prompt + max_tokens};
  const sluice::LimiterAnswer answer = limiter.check(request);
  if (!answer.allowed) {
    std::cout << "reserve " << request.cost << ": no\n";
    return;
  }
  const auto settled = limiter.apply(request, sluice::LimiterVerb::settle(request.cost, prompt + used));
  // In thousands: the bucket fills while this runs.
  std::cout << "reserve " << request.cost << ": yes, used " << prompt + used << ", "
            << settled.descriptors[0].decision.remaining / 1'000 << " thousand left\n";
}

}  // namespace

int main() {
  sluice::Limiter limiter({.policy_paths = {"policy.yaml"}});
  complete(limiter, 500, 4'000, 1'200);
  complete(limiter, 500, 4'000, 3'900);
  complete(limiter, 500, 40'000, 100);     // can never fit
  complete(limiter, 9'000, 4'000, 9'900);  // the model said more than it was allowed to: a debt
  complete(limiter, 100, 100, 10);         // which is paid first
}
