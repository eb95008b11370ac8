// A sender that waits until it may send, but no longer than its messages are good for: 100 messages a second, 100 at
// once.
#include <sluice/token_bucket.h>

#include <chrono>
#include <iostream>

int main() {
  using namespace std::chrono_literals;

  sluice::TokenBucket limit{{.rate = 100, .period = 1s, .burst = 100}};

  // All at once: the bucket is full, so this doesn't wait.
  if (limit.wait(100, 1s)) std::cout << "100 messages sent\n";

  // Sleeps for 50 ms, until five tokens have come. Threads that wait at one limiter are served as they came.
  if (limit.wait(5, 1s)) std::cout << "5 messages sent\n";

  // A second's worth of tokens can't come within 100 ms, so the answer comes at once and nothing is taken.
  const auto result = limit.wait(100, 100ms);
  if (result.outcome == sluice::WaitOutcome::deadline) std::cout << "100 messages would be late\n";
}
