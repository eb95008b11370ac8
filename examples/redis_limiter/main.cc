// Articles by one user, counted in the Redis that is named on the command line, for all processes together.
#include <sluice/limiter.h>

#include <chrono>
#include <iostream>

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  sluice::Limiter limiter({.policy_paths = {"policy.yaml"},
                           .redis_url = argc > 1 ? argv[1] : "redis://127.0.0.1:6379",
                           .redis_timeout = 5s});
  const sluice::LimiterRequest article{.domain = "shop", .descriptors = {{{"user", "42"}}}};
  for (int i = 1; i <= 4; ++i) {
    const sluice::LimiterAnswer answer = limiter.check(article);
    std::cout << "article " << i << ": " << (answer.allowed ? "yes" : "no") << ", " << answer.decision.remaining
              << " of " << answer.decision.limit << " left\n";
  }
  // One could not be created after all.
  const sluice::LimiterVerbAnswer refund = limiter.apply(article, sluice::LimiterVerb::refund());
  std::cout << "refund: " << (refund.done ? "done" : "not done") << ", " << refund.descriptors[0].decision.remaining
            << " left\n";
}
