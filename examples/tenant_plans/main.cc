// Tenants' plans: a quota for the month and a rate for the second, decided in one step.
#include <sluice/limiter.h>

#include <cstdint>
#include <iostream>
#include <string>

namespace {

sluice::LimiterRequest calls(const std::string& plan, const std::string& tenant, std::uint64_t count) {
  return {.domain = "api",
          .descriptors = {{{"plan", plan}, {"tenant", tenant}, {"per", "month"}},
                          {{"plan", plan}, {"tenant", tenant}, {"per", "second"}}},
          .cost = count};
}

}  // namespace

int main() {
  sluice::Limiter limiter({.policy_paths = {"policy.yaml"}});
  const auto try_calls = [&](const std::string& plan, const std::string& tenant, std::uint64_t count) {
    const sluice::LimiterAnswer answer = limiter.check(calls(plan, tenant, count));
    std::cout << tenant << " (" << plan << "), " << count << " calls: " << (answer.allowed ? "yes" : "no") << ", says "
              << answer.limit << "\n";
  };
  try_calls("free", "acme", 20);
  try_calls("free", "acme", 20);
  try_calls("free", "zeta", 20);
  try_calls("pro", "bigco", 800);

  // What the refused calls have taken from the month: nothing.
  sluice::LimiterRequest month = calls("free", "acme", 0);
  month.descriptors.pop_back();
  std::cout << "acme has " << limiter.check(month).decision.remaining << " calls left this month\n";
}
