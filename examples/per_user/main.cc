// One limit for each user: two calls at once, then one a minute. Users who stay away are forgotten by themselves, so
// the table does not grow with everybody who ever came.
#include <sluice/keyed.h>
#include <sluice/token_bucket.h>

#include <chrono>
#include <iostream>
#include <string>

int main() {
  using namespace std::chrono_literals;

  sluice::Keyed<sluice::TokenBucket, std::string> per_user{{.rate = 1, .period = 1min, .burst = 2},
                                                           {.max_keys = 100'000}};

  for (const char* user : {"ann", "ann", "ann", "bob"}) {
    if (const auto decision = per_user.try_acquire(user); decision.allowed) {
      std::cout << user << ": served, " << decision.remaining << " left\n";
    } else {
      std::cout << user << ": come back in " << decision.retry_after.ceil_seconds() << " s\n";
    }
  }
  std::cout << per_user.figures().keys << " users are remembered\n";
}
