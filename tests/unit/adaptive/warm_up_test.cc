// WarmUp as a program uses it, with figures reckoned by hand. That all others are right is shown by the model.
#include "sluice/warm_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sluice/limit.h"
#include "sluice/testing/matchers.h"
#include "sluice/testing/simulated_clock.h"

namespace sluice {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using testing::ThrowsMessage;

class WarmUpTest : public testing::Test {
 protected:
  // Takes each token as early as it can be had; how many in `time`.
  int greedy(WarmUp& limit, nanoseconds time) {
    const std::int64_t end = clock_.now().steady + time.count();
    for (int admitted = 0;;) {
      const Decision decision = limit.try_acquire();
      if (decision.allowed) {
        ++admitted;
      } else if (clock_.now().steady + decision.retry_after.value().count() > end) {
        clock_.advance(nanoseconds(end - clock_.now().steady));
        return admitted;
      } else {
        clock_.advance(decision.retry_after.value());
      }
    }
  }

  SimulatedClock clock_;
};

constexpr nanoseconds kToken(33'333'334);  // 1/30 s
// 30 a second from 10 a second on, in 4 s: 10 + 5·t, so 10·t + 2.5·t² tokens after t seconds.
constexpr WarmUp::Numbers kTen{.rate = 30, .burst = 1, .warm_up = seconds(4), .cool_down = seconds(60)};

TEST_F(WarmUpTest, TheRateRisesLinearlyWhileItWarmsUp) {
  WarmUp limit{kTen, &clock_};
  EXPECT_EQ(greedy(limit, seconds(1)), 1 + 12);  // 10 + 2.5
  EXPECT_EQ(greedy(limit, seconds(1)), 17);      // 30 after 2 s
  EXPECT_EQ(greedy(limit, seconds(2)), 50);      // 80 after 4 s
  EXPECT_EQ(greedy(limit, seconds(10)), 300);
}

TEST_F(WarmUpTest, TellsWhenTheNextTokenIsThere) {
  WarmUp limit{{.rate = 30, .burst = 40, .warm_up = seconds(4), .cool_down = seconds(60)}, &clock_};
  EXPECT_THAT(limit.try_acquire(40),
              AllOf(IsAllowed(), Remaining(0), ResetAfter(seconds(60) + nanoseconds(2'472'135'955))));
  // 10·t + 2.5·t² = 30 at t = 2 s
  EXPECT_THAT(limit.peek(30), RetryAfter(seconds(2)));
  EXPECT_THAT(limit.peek(12), RetryAfter(nanoseconds(966'479'395)));
  clock_.advance(seconds(2));
  EXPECT_THAT(limit.peek(30), AllOf(IsAllowed(), Remaining(0)));
  EXPECT_THAT(limit.peek(0), Remaining(30));
  EXPECT_THAT(limit.peek(41), NeverFits());
}

TEST_F(WarmUpTest, IsColdAgainAfterItHasBeenFullForSoLong) {
  WarmUp limit{kTen, &clock_};
  greedy(limit, seconds(4));
  const Wait until_cold = limit.peek(0).reset_after;
  EXPECT_THAT(until_cold, AllOf(Ge(Wait(seconds(60))), Le(Wait(seconds(60) + kToken))));
  clock_.advance(until_cold.value() - nanoseconds(1));
  EXPECT_THAT(limit.peek(0), ResetAfter(nanoseconds(1)));
  EXPECT_THAT(limit.try_acquire(), ResetAfter(seconds(60) + kToken));  // still warm
  clock_.advance(seconds(60) + kToken);
  EXPECT_THAT(limit.peek(0), ResetAfter(seconds(0)));
  EXPECT_EQ(greedy(limit, seconds(1)), 1 + 12);
}

// Where stored permits are what tells cold from warm, such traffic refills the store faster than it uses it, and stays
// at half the rate for ever.
TEST_F(WarmUpTest, SparseTrafficWarmsItUp) {
  WarmUp limit{{.rate = 10, .burst = 1, .warm_up = milliseconds(500), .cool_down = seconds(1)}, &clock_};
  int denied = 0;
  for (int i = 0; i < 1'000; ++i) {
    denied += limit.try_acquire().allowed ? 0 : 1;
    clock_.advance(milliseconds(120));
  }
  EXPECT_LE(denied, 4);
  WarmUp slow{{.rate = 1, .burst = 1, .warm_up = milliseconds(500), .cool_down = milliseconds(1)}, &clock_};
  greedy(slow, seconds(2));  // fewer than one call in a warm-up
  EXPECT_EQ(greedy(slow, seconds(100)), 100);
}

TEST_F(WarmUpTest, AFactorOfOneIsATokenBucket) {
  WarmUp limit{{.rate = 10, .burst = 3, .cold_factor = 1}, &clock_};
  EXPECT_EQ(greedy(limit, seconds(10)), 103);
}

TEST_F(WarmUpTest, ARateOfZeroNeverRefills) {
  WarmUp limit{{.rate = 0, .burst = 2}, &clock_};
  EXPECT_THAT(limit.try_acquire(2), AllOf(IsAllowed(), ResetAfter(Wait::never())));
  clock_.advance(hours(24 * 365));
  EXPECT_THAT(limit.try_acquire(), NeverFits());
  EXPECT_THAT(limit.refund(2), AllOf(Remaining(2), ResetAfter(seconds(60))));
}

TEST_F(WarmUpTest, DebtsAndRefunds) {
  WarmUp limit{{.rate = 30, .burst = 10, .warm_up = seconds(4)}, &clock_};
  EXPECT_THAT(limit.penalize(15), Remaining(0));
  EXPECT_THAT(limit.peek(1), AllOf(IsDenied(), RetryAfter(nanoseconds(529'822'129))));  // until 6 are there
  EXPECT_THAT(limit.penalize(UINT64_MAX), Remaining(0));
  EXPECT_THAT(limit.refund(13), Remaining(3));
  EXPECT_THAT(limit.settle(5, 2), Remaining(6));
  EXPECT_THAT(limit.settle(2, 5), Remaining(3));
  EXPECT_EQ(limit.acquire_up_to(9).tokens, 3U);
  EXPECT_THAT(limit.settle(0, UINT64_MAX), Remaining(0));
  EXPECT_THAT(limit.refund(UINT64_MAX), Remaining(10));
  EXPECT_THAT(limit.reset(), AllOf(Remaining(10), ResetAfter(seconds(0))));
}

TEST_F(WarmUpTest, NewNumbersWhileRunning) {
  WarmUp limit{kTen, &clock_};
  greedy(limit, seconds(2));
  const Decision before = limit.peek();
  EXPECT_THAT(limit.set_limit(kTen), ResetAfter(before.reset_after));
  // Half of the warm-up is done, and stays so: 40 a second now, of 60, and 5 a second more each second.
  limit.set_limit({.rate = 60, .burst = 1, .warm_up = seconds(8)});
  EXPECT_EQ(greedy(limit, seconds(4)), 200);
  EXPECT_EQ(greedy(limit, seconds(1)), 60);
  // Warm stays warm.
  limit.set_limit({.rate = 10, .burst = 1, .warm_up = hours(1)});
  EXPECT_EQ(greedy(limit, seconds(10)), 100);
}

TEST_F(WarmUpTest, HugeNumbersAreExactToo) {
  WarmUp limit{{.rate = 999'999'999'989,
                .period = hours(24 * 366),
                .burst = kMaxTokens,
                .warm_up = hours(24 * 366),
                .cool_down = hours(24 * 366),
                .cold_factor = 1'000},
               &clock_};
  EXPECT_THAT(limit.try_acquire(kMaxTokens), IsAllowed());
  const Wait wait = limit.peek(1).retry_after;
  clock_.advance(wait.value() - nanoseconds(1));
  EXPECT_THAT(limit.peek(1), RetryAfter(nanoseconds(1)));
  clock_.advance(nanoseconds(1));
  EXPECT_THAT(limit.try_acquire(1), IsAllowed());
}

TEST_F(WarmUpTest, SaysWhatIsOutOfRange) {
  EXPECT_THAT(([] {
                WarmUp({.rate = kMaxRate + 1,
                        .burst = 0,
                        .warm_up = nanoseconds(999),
                        .cool_down = hours(24 * 367),
                        .cold_factor = 0});
              }),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("rate: "), HasSubstr("burst: "),
                        HasSubstr("warm_up: must be 1 µs … 366 days in whole µs, is 999 ns"), HasSubstr("cool_down: "),
                        HasSubstr("cold_factor: must be 1 … 1000, is 0"))));
  WarmUp limit{kTen, &clock_};
  EXPECT_THROW(limit.set_limit({.rate = 1, .burst = 1, .warm_up = microseconds(0)}), std::invalid_argument);
  EXPECT_THAT(limit.peek(), LimitIs(1));
}

TEST_F(WarmUpTest, ClocksThatStepBackGiveNothing) {
  WarmUp limit{kTen, &clock_};
  EXPECT_THAT(limit.try_acquire(), IsAllowed());
  clock_.advance(-hours(1));
  EXPECT_THAT(limit.try_acquire(), AllOf(IsDenied(), RetryAfter(nanoseconds(97'617'697))));
  clock_.set({.steady = INT64_MIN, .utc = 0});
  EXPECT_THAT(limit.try_acquire(), IsDenied());
  clock_.set({.steady = INT64_MAX, .utc = 0});
  EXPECT_THAT(limit.try_acquire(), IsAllowed());
}

TEST_F(WarmUpTest, ThreadsGetExactlyWhatThereIs) {
  WarmUp limit{{.rate = 30, .burst = 5'000, .warm_up = seconds(4)}, &clock_};
  std::atomic<int> admitted{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) admitted += limit.try_acquire().allowed ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(admitted, 5'000);
}

}  // namespace
}  // namespace sluice
