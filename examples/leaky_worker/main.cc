// A worker that a leaky bucket paces: jobs come in a burst and are done one every 20 ms. What the queue can't hold is
// refused at once, with the time to come back.
#include <sluice/clock.h>
#include <sluice/leaky_bucket.h>

#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

int main() {
  using namespace std::chrono_literals;
  using Instant = std::chrono::steady_clock::time_point;
  struct Job {
    int number;
    Instant due;
  };

  sluice::LeakyBucket pace{{.rate = 50, .period = 1s, .queue = 4}};

  // The burst comes at one instant, so the clock is read once for all of it.
  std::vector<Job> jobs;
  const sluice::Time now = sluice::SystemClock().now();
  const Instant begin = std::chrono::steady_clock::now();
  for (int number = 1; number <= 6; ++number) {
    const auto decision = pace.try_acquire(1, now);
    if (decision.allowed) {
      std::cout << "job " << number << ": due in " << decision.delay.value() / 1ms << " ms\n";
      jobs.push_back({number, begin + decision.delay.value()});
    } else {
      std::cout << "job " << number << ": refused, come back in " << decision.retry_after.value() / 1ms << " ms\n";
    }
  }

  std::thread worker([&jobs] {
    for (const Job& job : jobs) {
      std::this_thread::sleep_until(job.due);
      std::cout << "job " << job.number << ": done\n";
    }
  });
  worker.join();
}
