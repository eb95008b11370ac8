// AdaptiveConcurrency as a program uses it: permits, verdicts, numbers.
#include "sluice/adaptive_concurrency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

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
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

Time at(std::int64_t ns) { return {.steady = kStart + ns, .utc = 0}; }

// `rounds` times: fills the limit, then ends all after `latency`.
void rounds(AdaptiveConcurrency& limit, SimulatedClock& clock, int count, nanoseconds latency, bool dropped = false) {
  for (int round = 0; round < count; ++round) {
    std::vector<AdaptiveConcurrency::Permit> permits;
    while (true) {
      auto permit = limit.try_acquire();
      if (!permit) break;
      permits.push_back(std::move(permit));
    }
    clock.advance(latency);
    for (auto& permit : permits) {
      if (dropped) {
        permit.drop();
      } else {
        permit.success();
      }
    }
  }
}

TEST(AdaptiveConcurrency, LetsInAsManyAsTheLimit) {
  AdaptiveConcurrency limit{{.initial = 2}};
  auto first = limit.try_acquire(at(0));
  EXPECT_TRUE(first);
  EXPECT_EQ(first.decision().limit, 2U);
  EXPECT_EQ(first.decision().remaining, 1U);
  auto second = limit.try_acquire(at(0));
  EXPECT_TRUE(second);
  EXPECT_FALSE(limit.peek().allowed);
  auto third = limit.try_acquire(at(0));
  EXPECT_FALSE(third);
  EXPECT_GT(third.decision().retry_after, Wait());
  EXPECT_FALSE(third.decision().retry_after.is_never());
  third.success(at(1));  // a denied permit's verdict is nothing
  EXPECT_EQ(limit.figures().in_flight, 2U);
  first.success(at(1));
  EXPECT_TRUE(limit.peek().allowed);
  EXPECT_EQ(limit.figures().in_flight, 1U);
}

TEST(AdaptiveConcurrency, EveryWayToEndGivesThePermitBackOnce) {
  AdaptiveConcurrency limit{{.initial = 3}};
  {
    auto forgotten = limit.try_acquire(at(0));
    auto moved = std::move(forgotten);
    EXPECT_EQ(limit.figures().in_flight, 1U);
    moved = limit.try_acquire(at(0));  // the one before is over
    EXPECT_EQ(limit.figures().in_flight, 1U);
  }
  EXPECT_EQ(limit.figures().in_flight, 0U);
  auto permit = limit.try_acquire(at(0));
  permit.drop(at(1));
  permit.success(at(2));
  permit.ignore();
  EXPECT_EQ(limit.figures().in_flight, 0U);
  std::optional<AdaptiveConcurrency::Permit> last(limit.try_acquire(at(0)));
  last->ignore();
  last.reset();
  EXPECT_EQ(limit.figures().in_flight, 0U);
}

// NOLINTBEGIN(bugprone-use-after-move): that is what this is about
TEST(AdaptiveConcurrency, AMovedFromPermitReadsAsDenied) {
  AdaptiveConcurrency limit{{.initial = 3}};
  auto permit = limit.try_acquire(at(0));
  auto moved = std::move(permit);
  EXPECT_TRUE(moved);
  EXPECT_FALSE(permit);
  permit = std::move(moved);
  EXPECT_TRUE(permit);
  EXPECT_FALSE(moved);
  moved.success(at(1));
  EXPECT_EQ(limit.figures().in_flight, 1U);
}
// NOLINTEND(bugprone-use-after-move)

TEST(AdaptiveConcurrency, GoesByTheClockThatWasGiven) {
  SimulatedClock clock;
  AdaptiveConcurrency limit{{.initial = 4, .samples = 8, .method = Gradient{}}, &clock};
  rounds(limit, clock, 2, milliseconds(7));
  EXPECT_EQ(limit.figures().short_rtt, milliseconds(7));
  EXPECT_EQ(limit.figures().long_rtt, milliseconds(7));
  EXPECT_EQ(limit.peek().reset_after, Wait());
  const auto permit = limit.try_acquire();
  EXPECT_EQ(permit.decision().reset_after, Wait(milliseconds(7)));
}

TEST(AdaptiveConcurrency, WithoutAClockGoesByTheMachines) {
  AdaptiveConcurrency limit{{.initial = 1, .samples = 1, .method = Aimd{}}};
  for (int i = 0; i < 2; ++i) limit.try_acquire().success();
  EXPECT_LT(limit.figures().short_rtt, hours(1));
  limit.try_acquire().drop();
  EXPECT_EQ(limit.figures().in_flight, 0U);
}

TEST(Aimd, GrowsWhileCallsEndInTimeAndFallsWhenTheyDont) {
  SimulatedClock clock;
  AdaptiveConcurrency limit{
      {.initial = 10, .max = 14, .window = milliseconds(10), .samples = 1, .method = Aimd{.timeout = milliseconds(50)}},
      &clock};
  rounds(limit, clock, 6, milliseconds(50));  // a window takes two rounds: twice as many calls as in flight
  EXPECT_EQ(limit.figures().limit, 13U);
  rounds(limit, clock, 6, milliseconds(50));
  EXPECT_EQ(limit.figures().limit, 14U);
  rounds(limit, clock, 2, milliseconds(50) + nanoseconds(1));
  EXPECT_EQ(limit.figures().limit, 12U);  // 14 · 0.9
  rounds(limit, clock, 100, milliseconds(10), true);
  EXPECT_EQ(limit.figures().limit, 1U);  // never below min, and so never stuck
  rounds(limit, clock, 200, milliseconds(20));
  EXPECT_EQ(limit.figures().limit, 14U);
}

TEST(Aimd, ALimitThatIsNotUsedDoesNotGrow) {
  AdaptiveConcurrency limit{{.initial = 10, .samples = 4, .method = Aimd{}}};
  for (int i = 0; i < 1'000; ++i) limit.try_acquire(at(i * kMillisecond)).success(at((i + 1) * kMillisecond));
  EXPECT_EQ(limit.figures().limit, 10U);
}

TEST(Aimd, AFewDropsAreTolerated) {
  AdaptiveConcurrency limit{
      {.initial = 2, .window = microseconds(1), .samples = 100, .tolerated_drops_permille = 10, .method = Aimd{}}};
  const auto hundred = [&](int drops) {
    static std::int64_t now = 0;
    for (int i = 0; i < 100; ++i) {
      auto permit = limit.try_acquire(at(++now * kMillisecond));
      if (i < drops) {
        permit.drop(at(now * kMillisecond));
      } else {
        permit.success(at(now * kMillisecond));
      }
    }
    return limit.figures().limit;
  };
  EXPECT_EQ(hundred(1), 3U);
  EXPECT_EQ(hundred(2), 2U);
}

TEST(Gradient, CallsShorterThanTheClocksStepChangeNoReference) {
  SimulatedClock clock;
  AdaptiveConcurrency limit{{.initial = 10, .max = 50, .window = milliseconds(1), .samples = 10}, &clock};
  rounds(limit, clock, 50, nanoseconds(0));
  EXPECT_EQ(limit.figures().long_rtt, nanoseconds(0));
  EXPECT_EQ(limit.figures().limit, 10U);  // no time has passed
  clock.advance(seconds(1));
  rounds(limit, clock, 4, milliseconds(2));
  const auto known = limit.figures().long_rtt;
  EXPECT_GT(known, nanoseconds(0));
  for (int i = 0; i < 200; ++i) {
    rounds(limit, clock, 2, nanoseconds(0));
    clock.advance(milliseconds(1));
  }
  EXPECT_EQ(limit.figures().long_rtt, known);
  EXPECT_EQ(limit.figures().limit, 50U);
}

TEST(Gradient, CallsThatHangDontMakeAProbeLast) {
  SimulatedClock clock;
  AdaptiveConcurrency limit{{.initial = 30, .max = 30, .samples = 10}, &clock};
  std::vector<AdaptiveConcurrency::Permit> hanging;
  while (hanging.size() < 20) hanging.push_back(limit.try_acquire());
  rounds(limit, clock, 6, milliseconds(10));
  ASSERT_TRUE(limit.figures().probing);  // 20 hang, and the probe would let 10 in
  EXPECT_FALSE(limit.peek().allowed);
  clock.advance(milliseconds(100));
  EXPECT_TRUE(limit.try_acquire());
  EXPECT_FALSE(limit.figures().probing);
  EXPECT_EQ(limit.figures().limit, 30U);
}

TEST(AdaptiveConcurrency, NewNumbersWhileRunning) {
  SimulatedClock clock;
  const AdaptiveConcurrency::Numbers numbers{.initial = 20, .samples = 10};
  AdaptiveConcurrency limit{numbers, &clock};
  rounds(limit, clock, 1, milliseconds(3));
  const auto before = limit.figures();
  EXPECT_EQ(limit.set_limit(numbers).limit, before.limit);
  EXPECT_EQ(limit.figures().long_rtt, before.long_rtt);
  std::vector<AdaptiveConcurrency::Permit> permits;
  for (int i = 0; i < 15; ++i) permits.push_back(limit.try_acquire());
  EXPECT_EQ(limit.set_limit({.initial = 5, .max = 8}).limit, 8U);
  EXPECT_EQ(limit.figures().in_flight, 15U);  // let in before
  EXPECT_FALSE(limit.peek().allowed);
  EXPECT_EQ(limit.peek().remaining, 0U);
  permits.erase(permits.begin() + 7, permits.end());
  EXPECT_TRUE(limit.peek().allowed);
  EXPECT_EQ(limit.set_limit({.initial = 40, .min = 30, .max = 50, .method = Aimd{}}).limit, 30U);
  EXPECT_EQ(limit.reset().limit, 40U);
  EXPECT_EQ(limit.figures().in_flight, 7U);
  permits.clear();
  EXPECT_EQ(limit.figures().in_flight, 0U);
}

TEST(AdaptiveConcurrency, ClocksThatStepBackAndForthLoseNoPermit) {
  AdaptiveConcurrency limit{{.initial = 20, .samples = 1, .method = Aimd{.timeout = seconds(5)}}};
  auto backward = limit.try_acquire(at(0));
  backward.success(at(-3'600 * 1'000 * kMillisecond));
  EXPECT_EQ(limit.figures().short_rtt, nanoseconds(0));
  auto from_the_past = limit.try_acquire({.steady = INT64_MIN, .utc = 0});
  from_the_past.success({.steady = INT64_MAX, .utc = 0});
  auto from_the_future = limit.try_acquire({.steady = INT64_MAX, .utc = 0});
  from_the_future.success({.steady = INT64_MIN, .utc = 0});
  EXPECT_EQ(limit.figures().in_flight, 0U);
  EXPECT_GE(limit.figures().limit, 1U);
}

TEST(AdaptiveConcurrency, ATimeFarAheadHoldsNothingUpForLong) {
  for (const bool gradient : {false, true}) {
    AdaptiveConcurrency::Numbers numbers{.initial = 10, .window = milliseconds(1), .samples = 1};
    if (!gradient) numbers.method = Aimd{};
    AdaptiveConcurrency limit(numbers);
    std::int64_t now = INT64_MAX;
    std::uint64_t highest = 0;
    const auto some_rounds = [&](int count) {
      for (int round = 0; round < count; ++round) {
        std::vector<AdaptiveConcurrency::Permit> permits;
        for (int i = 0; i < 100; ++i) permits.push_back(limit.try_acquire({.steady = now, .utc = 0}));
        if (now != INT64_MAX) now += kMillisecond;
        for (auto& permit : permits) permit.success({.steady = now, .utc = 0});
        highest = std::max(highest, limit.figures().limit);
      }
    };
    some_rounds(20);
    EXPECT_LE(highest, 11U);
    now = kStart;
    some_rounds(1'000);
    EXPECT_GT(highest, 20U) << gradient;
  }
}

TEST(AdaptiveConcurrency, BeginsAsNearToTwentyAsItMay) {
  EXPECT_EQ(AdaptiveConcurrency({}).figures().limit, 20U);
  EXPECT_EQ(AdaptiveConcurrency({.max = 10}).figures().limit, 10U);
  EXPECT_EQ(AdaptiveConcurrency({.min = 30}).figures().limit, 30U);
  AdaptiveConcurrency limit({.initial = 40, .max = 50});
  limit.set_limit({.max = 50});
  EXPECT_EQ(limit.figures().limit, 40U);
  EXPECT_EQ(limit.reset().limit, 20U);
}

TEST(AdaptiveConcurrency, SaysWhatIsOutOfRange) {
  EXPECT_THAT(([] { AdaptiveConcurrency({.initial = 0, .min = 0, .max = 1'000'001}); }),
              ThrowsMessage<std::invalid_argument>("sluice: min: must be 1 … 1000000, is 0; max: must be 1 … 1000000, "
                                                   "is 1000001"));
  EXPECT_THAT(([] { AdaptiveConcurrency({.initial = 9, .min = 10}); }),
              ThrowsMessage<std::invalid_argument>(HasSubstr("initial: must be 10 … 1000, is 9")));
  EXPECT_THAT(([] { AdaptiveConcurrency({.min = 10, .max = 5}); }),
              ThrowsMessage<std::invalid_argument>("sluice: max: must be at least min, which is 10, is 5"));
  EXPECT_THAT(([] {
                AdaptiveConcurrency({.window = nanoseconds(1'500),
                                     .samples = 0,
                                     .tolerated_drops_permille = 1'001,
                                     .backoff_permille = 1'000,
                                     .method = Aimd{.timeout = minutes(16), .increase = 0}});
              }),
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("window: must be 1 µs … 60 s in whole µs, is 1500 ns"), HasSubstr("samples: "),
                        HasSubstr("tolerated_drops_permille: "), HasSubstr("backoff_permille: must be 1 … 999"),
                        HasSubstr("aimd.timeout: must be 1 µs … 15 min"), HasSubstr("aimd.increase: "))));
  AdaptiveConcurrency limit{{.initial = 7}};
  EXPECT_THAT(
      ([&] {
        limit.set_limit({.initial = 9,
                         .method = Gradient{
                             .tolerance_permille = 999, .smoothing_permille = 0, .queue = 10'001, .probe_every = 0}});
      }),
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("gradient.tolerance_permille: must be 1000 … 10000, is 999"),
                                                 HasSubstr("gradient.smoothing_permille: "),
                                                 HasSubstr("gradient.queue: "), HasSubstr("gradient.probe_every: "))));
  EXPECT_EQ(limit.peek().limit, 7U);
}

// What cannot be seen by one thread: that the count and the limit are one.
TEST(AdaptiveConcurrency, ThreadsNeverExceedTheLimitAndLoseNoPermit) {
  constexpr int kThreads = 4;
  constexpr int kCalls = 20'000;
  AdaptiveConcurrency limit{{.initial = 3, .max = 3, .window = microseconds(1), .samples = 5}};
  std::atomic<std::int64_t> clock{0};
  std::atomic<int> inside{0};
  std::atomic<bool> too_many{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kCalls; ++i) {
        auto permit = limit.try_acquire(at(clock += 700));
        if (!permit) continue;
        if (inside.fetch_add(1) >= 3) too_many = true;
        inside.fetch_sub(1);
        if (i % 7 == thread) continue;  // forgotten
        if (i % 97 == 0) {
          permit.drop(at(clock += 500));
        } else {
          permit.success(at(clock += 500));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_many);
  EXPECT_EQ(limit.figures().in_flight, 0U);
  EXPECT_GT(limit.figures().short_rtt, nanoseconds(0));
}

TEST(AdaptiveConcurrency, ThreadsWhileTheNumbersChange) {
  AdaptiveConcurrency limit{{.initial = 8, .window = microseconds(1), .samples = 5}};
  std::atomic<std::int64_t> clock{0};
  std::atomic<bool> done{false};
  std::thread changer([&] {
    for (std::uint64_t i = 0; !done; ++i) {
      limit.set_limit({.initial = 1 + i % 9, .max = 9 + i % 3, .window = microseconds(1), .samples = 5},
                      at(clock += 100));
      if (i % 11 == 0) limit.reset();
    }
  });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        auto permit = limit.try_acquire(at(clock += 300));
        if (permit) permit.success(at(clock += 400));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  changer.join();
  const auto figures = limit.figures();
  EXPECT_EQ(figures.in_flight, 0U);
  EXPECT_GE(figures.limit, 1U);
  EXPECT_LE(figures.limit, 11U);
}

}  // namespace
}  // namespace sluice
