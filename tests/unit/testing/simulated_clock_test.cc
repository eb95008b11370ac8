// The clock that users' tests move by hand.
#include "sluice/testing/simulated_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sluice/fixed_window.h"
#include "sluice/testing/matchers.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(SimulatedClock, StandsStillUntilItIsMoved) {
  SimulatedClock clock;
  const Time start = clock.now();
  EXPECT_EQ(clock.now().steady, start.steady);
  EXPECT_EQ(clock.now().utc, start.utc);
  clock.advance(milliseconds(1));
  EXPECT_EQ(clock.now().steady, start.steady + 1'000'000);
  EXPECT_EQ(clock.now().utc, start.utc + 1'000'000);
  clock.set({.steady = 5, .utc = -7});
  EXPECT_EQ(clock.now().steady, 5);
  EXPECT_EQ(clock.now().utc, -7);
  EXPECT_EQ(SimulatedClock({.steady = 1, .utc = 2}).now().utc, 2);
}

TEST(SimulatedClock, StepsUtcAloneAsAServiceThatKeepsTimeDoes) {
  SimulatedClock clock({.steady = 0, .utc = 3'600'000'000'000});
  FixedWindow window{{.rate = 1, .period = minutes(1)}, &clock};
  TokenBucket bucket{{.rate = 1, .period = minutes(1), .burst = 1}, &clock};
  EXPECT_THAT(window.try_acquire(), IsAllowed());
  EXPECT_THAT(bucket.try_acquire(), IsAllowed());
  clock.step_utc(hours(-1));
  EXPECT_THAT(window.try_acquire(), IsDenied());  // a clock that goes back gives nothing
  EXPECT_THAT(bucket.peek(), RetryAfter(minutes(1)));
  clock.step_utc(hours(2));
  EXPECT_THAT(window.try_acquire(), IsAllowed());
  EXPECT_THAT(bucket.peek(), RetryAfter(minutes(1)));  // steady has stood still
  clock.advance(minutes(1));
  EXPECT_THAT(bucket.peek(), IsAllowed());
}

class Counter final : public ClockListener {
 public:
  void clock_moved() noexcept override { ++moves; }
  std::atomic<int> moves{0};
};

TEST(SimulatedClock, TellsThoseWhoWait) {
  SimulatedClock clock;
  Counter first;
  Counter second;
  EXPECT_TRUE(clock.listen(first));
  EXPECT_TRUE(clock.listen(second));
  clock.advance(seconds(1));
  clock.unlisten(first);
  clock.step_utc(seconds(-1));
  clock.set({});
  clock.unlisten(second);
  clock.advance(seconds(1));
  EXPECT_EQ(first.moves, 1);
  EXPECT_EQ(second.moves, 3);
}

TEST(SimulatedClock, ManyThreadsMayMoveAndReadIt) {
  SimulatedClock clock({.steady = 0, .utc = 0});
  std::atomic<bool> backward{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      Counter counter;
      static_cast<void>(clock.listen(counter));
      for (int i = 0; i < 1'000; ++i) {
        const std::int64_t before = clock.now().steady;
        clock.advance(nanoseconds(3));
        if (clock.now().steady < before + 3) backward = true;
      }
      clock.unlisten(counter);
      if (counter.moves < 1'000) ADD_FAILURE() << counter.moves;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(backward);
  EXPECT_EQ(clock.now().steady, 4 * 1'000 * 3);
}

}  // namespace
}  // namespace sluice
