// What users' tests say with the matchers, and how they say what is wrong.
#include "sluice/testing/matchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "sluice/adaptive_concurrency.h"
#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::DescribeMatcher;
using testing::EndsWith;
using testing::Ge;
using testing::Gt;
using testing::Lt;
using testing::Not;
using testing::PrintToString;
using testing::StringMatchResultListener;

// What is said of a value that doesn't match, as EXPECT_THAT says it.
template <typename T, typename M>
std::string complaint(const T& value, const M& matcher) {
  StringMatchResultListener listener;
  const testing::Matcher<const T&> of_type = matcher;
  if (of_type.MatchAndExplain(value, &listener)) return "matches";
  const std::string because = listener.str();
  return "expected: " + DescribeMatcher<const T&>(matcher) + ", actual: " + PrintToString(value) +
         (because.empty() ? "" : ", " + because);
}

class Matchers : public testing::Test {
 protected:
  SimulatedClock clock_;
  TokenBucket bucket_{{.rate = 10, .period = seconds(1), .burst = 2}, &clock_};
};

TEST_F(Matchers, ReadLikeSentences) {
  EXPECT_THAT(bucket_.try_acquire(), AllOf(IsAllowed(), Remaining(1), ResetAfter(milliseconds(100)), LimitIs(2)));
  EXPECT_THAT(bucket_.try_acquire(), Remaining(Lt(1U)));
  EXPECT_THAT(bucket_.try_acquire(), AllOf(IsDenied(), RetryAfter(milliseconds(100)), Not(NeverFits())));
  EXPECT_THAT(bucket_.try_acquire(3), AllOf(IsDenied(), NeverFits(), RetryAfter(Wait::never())));
  EXPECT_THAT(bucket_.peek(2), RetryAfter(AllOf(Gt(Wait(milliseconds(199))), Lt(Wait::never()))));
  clock_.advance(milliseconds(100));
  EXPECT_THAT(bucket_.try_acquire(), AllOf(Not(IsDenied()), Not(NeverFits()), RetryAfter(seconds(0))));
}

TEST_F(Matchers, OfDelaysAndMarks) {
  LeakyBucket queue{{.rate = 10, .queue = 1}, &clock_};
  EXPECT_THAT(queue.try_acquire(), Delay(seconds(0)));
  EXPECT_THAT(queue.try_acquire(), Delay(milliseconds(100)));
  FixedWindow quota{{.rate = 1}, &clock_};
  EXPECT_THAT(quota.try_acquire(), Marked(Mark::quota_hit));
  EXPECT_THAT(quota.try_acquire(), Marked(Mark::over_quota));
}

TEST_F(Matchers, OfWhatHoldsADecision) {
  EXPECT_THAT(bucket_.acquire_up_to(9), AllOf(IsAllowed(), Remaining(0)));
  Concurrency leases{{.rate = 1}, &clock_};
  const auto lease = leases.try_acquire();
  EXPECT_THAT(lease, IsAllowed());
  EXPECT_THAT(leases.try_acquire(), IsDenied());
  AdaptiveConcurrency calls{{.initial = 1}, &clock_};
  const auto permit = calls.try_acquire();
  EXPECT_THAT(permit, IsAllowed());
  EXPECT_THAT(calls.try_acquire(), AllOf(IsDenied(), RetryAfter(Ge(Wait(nanoseconds(1))))));
  EXPECT_THAT(complaint(permit, IsDenied()), EndsWith(", which is allowed, remaining 0 of 1, reset_after 0"));
}

TEST_F(Matchers, SayWhatIsWrong) {
  const Decision allowed = bucket_.try_acquire();
  EXPECT_EQ(complaint(allowed, IsDenied()),
            "expected: is denied, actual: allowed, remaining 1 of 2, reset_after 100 ms");
  EXPECT_EQ(
      complaint(allowed, Remaining(2)),
      "expected: has a remaining that is equal to 2, actual: allowed, remaining 1 of 2, reset_after 100 ms, whose "
      "remaining is 1");
  bucket_.try_acquire();
  const Decision denied = bucket_.try_acquire();
  EXPECT_EQ(complaint(denied, IsAllowed()),
            "expected: is allowed, actual: denied, retry_after 100 ms, remaining 0 of 2, reset_after 200 ms");
  EXPECT_EQ(complaint(denied, RetryAfter(microseconds(99'999))),
            "expected: has a retry_after that is equal to 99999 µs, actual: denied, retry_after 100 ms, remaining 0 of "
            "2, reset_after 200 ms, whose retry_after is 100 ms");
  EXPECT_EQ(complaint(denied, NeverFits()),
            "expected: is denied for ever (retry_after never), actual: denied, retry_after 100 ms, remaining 0 of 2, "
            "reset_after 200 ms");
  EXPECT_EQ(complaint(denied, RetryAfter(Lt(Wait(nanoseconds(1))))),
            "expected: has a retry_after that is < 1 ns, actual: denied, retry_after 100 ms, remaining 0 of 2, "
            "reset_after 200 ms, whose retry_after is 100 ms");
  EXPECT_EQ(DescribeMatcher<Decision>(Not(IsAllowed())), "isn't allowed");
  EXPECT_EQ(DescribeMatcher<Decision>(Not(Remaining(1))), "has a remaining that isn't equal to 1");
}

TEST_F(Matchers, ShowEveryField) {
  EXPECT_EQ(PrintToString(Decision{.allowed = false,
                                   .mark = Mark::over_quota,
                                   .limit = 5,
                                   .retry_after = Wait::never(),
                                   .reset_after = Wait(seconds(90)),
                                   .delay = Wait(nanoseconds(1'500))}),
            "denied, retry_after never, remaining 0 of 5, reset_after 90 s, delay 1500 ns, mark over_quota");
  EXPECT_EQ(PrintToString(Mark::quota_hit), "quota_hit");
  EXPECT_EQ(PrintToString(Mark::none), "none");
}

}  // namespace
}  // namespace sluice
