// What a program out there does with the library: each kind of limiter once, at given times. Linked with other.cc,
// which includes the same headers.
#include <sluice/adaptive_concurrency.h>
#include <sluice/clock.h>
#include <sluice/concurrency.h>
#include <sluice/decision.h>
#include <sluice/fixed_window.h>
#include <sluice/keyed.h>
#include <sluice/leaky_bucket.h>
#include <sluice/limit.h>
#include <sluice/sharded_token_bucket.h>
#include <sluice/sliding_log.h>
#include <sluice/sliding_window.h>
#include <sluice/testing/simulated_clock.h>
#include <sluice/token_bucket.h>
#include <sluice/wait.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

bool other_file_agrees();

namespace {

using namespace std::chrono_literals;

int failures = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}

sluice::Time at(std::chrono::nanoseconds since_start) {
  return {.steady = since_start.count(), .utc = since_start.count()};
}

template <typename Limiter>
int admitted(Limiter& limiter, int asked) {
  int count = 0;
  for (int i = 0; i < asked; ++i) count += limiter.try_acquire(1, at(0s)).allowed ? 1 : 0;
  return count;
}

}  // namespace

int main() {
  sluice::TokenBucket bucket{{.rate = 10, .period = 1s, .burst = 30}};
  expect(admitted(bucket, 31) == 30, "a token bucket admits its burst");
  const sluice::Decision denied = bucket.try_acquire(1, at(0s));
  expect(denied.retry_after == sluice::Wait(100ms), "and says when to come back");
  expect(bucket.try_acquire(1, at(100ms)).allowed, "which is right");
  expect(bucket.try_acquire(31, at(100ms)).retry_after.is_never(), "more than the burst never fits");

  sluice::LeakyBucket queue{{.rate = 10, .period = 1s, .queue = 2}};
  expect(admitted(queue, 4) == 3, "a leaky bucket admits one and its queue");

  sluice::FixedWindow window{{.rate = 5, .period = 1min}};
  expect(admitted(window, 6) == 5, "a fixed window admits its rate");
  sluice::FixedWindow day{{.rate = 5, .align = sluice::Align::calendar, .calendar = {.timezone = "UTC"}}};
  expect(day.peek(1, at(1h)).reset_after == sluice::Wait(23h), "a calendar window ends at midnight");
  sluice::SlidingWindow sliding{{.rate = 5, .period = 1min, .slots = 6}};
  expect(admitted(sliding, 6) == 5, "a sliding window admits its rate");
  sluice::SlidingLog log{{.rate = 5, .period = 1min}};
  expect(admitted(log, 6) == 5, "a sliding log admits its rate");

  sluice::Concurrency slots{{.rate = 1}};
  const auto lease = slots.try_acquire();
  expect(static_cast<bool>(lease) && !slots.try_acquire(), "one lease is held at once");

  sluice::Keyed<sluice::TokenBucket> per_user{{.rate = 1, .burst = 2}};
  expect(per_user.try_acquire("a", 2).allowed && !per_user.try_acquire("a").allowed, "a key has its own limit");
  expect(per_user.try_acquire("b").allowed && per_user.figures().keys == 2, "and so has another");
  sluice::Keyed<sluice::Concurrency, int> per_number{{.rate = 1}};
  const auto numbered = per_number.try_acquire(7);
  expect(numbered && !per_number.try_acquire(7) && per_number.try_acquire(8), "a lease is of one key");

  sluice::AdaptiveConcurrency calls{{.initial = 1}};
  auto permit = calls.try_acquire();
  expect(permit && !calls.try_acquire(), "an adaptive limit holds back what is above it");
  permit.success();

  sluice::ShardedTokenBucket sharded{{.rate = 0, .burst = 1000}};
  expect(admitted(sharded, 1001) == 1000, "a sharded bucket admits its burst");

  sluice::SimulatedClock simulated;
  sluice::TokenBucket waited{{.rate = 10, .period = 1s, .burst = 1}, &simulated};
  expect(waited.wait().outcome == sluice::WaitOutcome::granted, "a full bucket has nobody wait");
  expect(waited.wait(1, 99ms).outcome == sluice::WaitOutcome::deadline, "and an empty one tells who would be late");
  auto ahead = waited.reserve(1, 1s);
  expect(ahead && ahead.delay() == 100ms, "a reservation tells its instant");
  ahead.cancel();

  // An exception thrown in the library is caught here, and tells the field.
  std::string told;
  try {
    const sluice::TokenBucket wrong{{.rate = 1, .period = 1s, .burst = 0}};
  } catch (const std::invalid_argument& error) {
    told = error.what();
  }
  expect(told.find("burst") != std::string::npos, "a number out of range is named");

  const sluice::SystemClock system;
  const sluice::Clock& clock = system;
  expect(bucket.try_acquire(1, clock.now()).allowed, "the system's clock is later");
  expect(other_file_agrees(), "another file sees the same");

  if (failures == 0) std::puts("all right");
  return failures == 0 ? 0 : 1;
}
