// What a program out there does with sluice::limiter: limits by policy, in memory, and in the Redis that it is told of.
#include <sluice/limiter.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

using namespace std::chrono_literals;

bool is_right(const std::string& redis_url) {
  sluice::Limiter limiter({.policy_text = "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { period: 1d, "
                                          "requests_per_unit: 2, algorithm: token_bucket }\n",
                           .redis_url = redis_url,
                           .redis_timeout = 5s});
  const sluice::LimiterRequest request{.domain = "shop", .descriptors = {{{"user", "42"}}}};
  const bool taken =
      limiter.check(request).allowed && limiter.check(request).allowed && !limiter.check(request).allowed;
  const sluice::LimiterVerbAnswer refund = limiter.apply(request, sluice::LimiterVerb::refund());
  const auto source = redis_url.empty() ? sluice::Source::memory : sluice::Source::redis;
  return taken && refund.done && refund.descriptors.at(0).decision.source == source && limiter.check(request).allowed;
}

bool throws() {
  try {
    const sluice::Limiter limiter({.policy_text = "domain:"});
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (!is_right("") || !throws()) return 1;
  if (argc > 1 && !is_right(argv[1])) return 1;
  std::puts("all right");
}
