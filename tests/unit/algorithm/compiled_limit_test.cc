#include "algorithm/compiled_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "algorithm/calendar.h"
#include "tests/unit/algorithm/instants.h"

namespace sluice::algorithm {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;

CompiledLimit compiled(const Limit& limit, Tick tick = Tick::nanosecond) {
  auto result = CompiledLimit::compile(limit, tick, &open_calendar);
  EXPECT_TRUE(result) << result.error().message;
  return *std::move(result);
}

TEST(CompiledLimit, TokenBucketByDecision) {
  const CompiledLimit limit = compiled({.rate = 10, .burst = 30});
  CompiledLimit::State state;
  const Time now{.steady = kNewYear, .utc = 5};
  EXPECT_EQ(limit.instant(now), kNewYear);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(limit.decide(state, limit.instant(now), 1).verdict.fits);
  const Decision denied = limit.decision(limit.decide(state, limit.instant(now), 1));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.limit, 30U);
  EXPECT_EQ(denied.retry_after.value(), nanoseconds(100 * kMillisecond));
  EXPECT_EQ(denied.reset_after.value(), nanoseconds(3 * kSecond));
  const Decision never = limit.decision(limit.peek(state, limit.instant(now), 31));
  EXPECT_TRUE(never.retry_after.is_never());
}

TEST(CompiledLimit, MicrosecondsBecomeNanosecondsInADecision) {
  const CompiledLimit limit = compiled({.rate = 10, .burst = 1}, Tick::microsecond);
  CompiledLimit::State state;
  const std::int64_t now = limit.instant({.steady = kNewYear + 1'999, .utc = 0});
  EXPECT_EQ(now, kNewYear / 1'000 + 1);
  EXPECT_EQ(limit.instant({.steady = -1, .utc = 0}), -1);
  EXPECT_EQ(limit.decision(limit.decide(state, now, 1)).reset_after.value(), nanoseconds(100 * kMillisecond));
}

TEST(CompiledLimit, FixedWindowsGoByUtcButFirstHitByTheSteadyClock) {
  Limit limit{.algorithm = Algorithm::fixed_window, .rate = 5};
  EXPECT_TRUE(compiled(limit).uses_utc());
  limit.align = Align::first_hit;
  EXPECT_FALSE(compiled(limit).uses_utc());
  limit.align = Align::calendar;
  EXPECT_TRUE(compiled(limit).uses_utc());
  EXPECT_EQ(compiled(limit).instant({.steady = 1, .utc = 2}), 2);
}

TEST(CompiledLimit, JudgeTakeAndViewAreDecideInParts) {
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::fixed_window}) {
    const CompiledLimit limit =
        compiled({.algorithm = algorithm, .rate = 4, .burst = 4, .queue = 3, .count_denied = true});
    CompiledLimit::State whole;
    CompiledLimit::State parts;
    for (int i = 0; i < 6; ++i) {
      const std::int64_t now = kNewYear + i;
      const Decision peeked = limit.decision(limit.peek(whole, now, 1));
      const Decision decided = limit.decision(limit.decide(whole, now, 1));
      const Verdict verdict = limit.judge(parts, now, 1);
      if (verdict.fits) {
        limit.take(parts, now, 1);
      } else {
        limit.count_denied(parts, now, 1);
      }
      const Decision joined = limit.decision(verdict, limit.view(parts, now));
      EXPECT_EQ(whole, parts);
      for (const Decision& other : {peeked, joined}) {
        EXPECT_EQ(decided.allowed, other.allowed);
        EXPECT_EQ(decided.mark, other.mark);
        EXPECT_EQ(decided.remaining, other.remaining);
        EXPECT_EQ(decided.retry_after, other.retry_after);
        EXPECT_EQ(decided.reset_after, other.reset_after);
        EXPECT_EQ(decided.delay, other.delay);
      }
    }
  }
}

TEST(CompiledLimit, AnotherAlgorithmStartsAnew) {
  const CompiledLimit bucket = compiled({.rate = 1, .burst = 4});
  const CompiledLimit window = compiled({.algorithm = Algorithm::fixed_window, .rate = 4});
  CompiledLimit::State state;
  bucket.take(state, kNewYear, 3);
  window.convert(state, bucket, kNewYear);
  EXPECT_EQ(state, CompiledLimit::State{});
}

TEST(CompiledLimit, RefusesWhatIsOutOfRange) {
  const auto message = [](const Limit& limit) {
    const auto result = CompiledLimit::compile(limit, Tick::nanosecond);
    return result ? std::string() : result.error().message;
  };
  EXPECT_THAT(message({.rate = kMaxRate + 1, .burst = 0}),
              testing::AllOf(HasSubstr("rate: must be 0 … 1000000000000, is 1000000000001"), HasSubstr("burst: ")));
  EXPECT_THAT(message({.algorithm = Algorithm::fixed_window, .rate = 1, .align = Align::calendar}),
              HasSubstr("calendar"));
  EXPECT_THAT(message({.algorithm = Algorithm::sliding_log, .rate = kMaxRate + 1}), HasSubstr("rate: "));
}

TEST(CompiledLimit, UnknownTimeZoneIsRefused) {
  const auto result = CompiledLimit::compile({.algorithm = Algorithm::fixed_window,
                                              .rate = 1,
                                              .align = Align::calendar,
                                              .calendar = {.timezone = "Mars/Base"}},
                                             Tick::nanosecond, &open_calendar);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("Mars/Base"));
}

}  // namespace
}  // namespace sluice::algorithm
