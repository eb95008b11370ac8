// What a program out there does with the library: each kind of limiter once, at given times. Linked with other.cc,
// which includes the same headers.
#include <sluice/clock.h>
#include <sluice/concurrency.h>
#include <sluice/decision.h>
#include <sluice/fixed_window.h>
#include <sluice/leaky_bucket.h>
#include <sluice/limit.h>
#include <sluice/sliding_log.h>
#include <sluice/sliding_window.h>
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
