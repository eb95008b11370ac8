// A limiter in five lines: three calls at once, then one every twenty seconds.
#include <sluice/token_bucket.h>

#include <chrono>
#include <iostream>

int main() {
  using namespace std::chrono_literals;

  // One for the whole program: any thread may use it.
  sluice::TokenBucket limit{{.rate = 3, .period = 1min, .burst = 3}};

  for (int call = 1; call <= 4; ++call) {
    if (const auto decision = limit.try_acquire(); decision.allowed) {
      std::cout << "call " << call << ": served\n";
    } else {
      std::cout << "call " << call << ": come back in " << decision.retry_after.ceil_seconds() << " s\n";
    }
  }
}
