// Values that rate limiters got wrong in public: each with its smallest input and the right answer.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/compiled_limit.h"
#include "tests/unit/algorithm/instants.h"
#include "tests/unit/single/any_limiter.h"

namespace sluice::algorithm {
namespace {

// Each value by the algorithms, as a store of the daemon calls them, and by the limiters that a program uses.

// One limit on one key from a point in time on; times are ns since then.
class ByAlgorithm {
 public:
  explicit ByAlgorithm(const Limit& limit, std::int64_t start = kNewYear)
      : limit_(*CompiledLimit::compile(limit, Tick::nanosecond, &open_calendar)), start_(start) {}

  ByAlgorithm(const ByAlgorithm&) = delete;
  ByAlgorithm& operator=(const ByAlgorithm&) = delete;
  ~ByAlgorithm() { limit_.clear(state_); }

  Decision check(std::int64_t at, std::uint64_t cost = 1) {
    return limit_.decision(limit_.decide(state_, start_ + at, cost));
  }
  bool allows(std::int64_t at, std::uint64_t cost = 1) { return check(at, cost).allowed; }

 private:
  CompiledLimit limit_;
  std::int64_t start_;
  Cell state_;
};

class ByLibrary {
 public:
  explicit ByLibrary(const Limit& limit, std::int64_t start = kNewYear) : limiter_(any_limiter(limit)), start_(start) {}

  Decision check(std::int64_t at, std::uint64_t cost = 1) {
    return limiter_->check(cost, {.steady = start_ + at, .utc = start_ + at});
  }
  bool allows(std::int64_t at, std::uint64_t cost = 1) { return check(at, cost).allowed; }

 private:
  std::unique_ptr<AnyLimiter> limiter_;
  std::int64_t start_;
};

template <typename Limiter>
class PublicReports : public testing::Test {};
using Floors = testing::Types<ByAlgorithm, ByLibrary>;
TYPED_TEST_SUITE(PublicReports, Floors);

Limit bucket(std::uint64_t rate, std::int64_t period, std::uint64_t burst) {
  return {.rate = rate, .period = std::chrono::nanoseconds(period), .burst = burst};
}

Limit window(std::uint64_t rate, std::int64_t period) {
  return {.algorithm = Algorithm::fixed_window, .rate = rate, .period = std::chrono::nanoseconds(period)};
}

Limit counter(std::uint64_t rate, std::int64_t period) {
  return {.algorithm = Algorithm::sliding_window, .rate = rate, .period = std::chrono::nanoseconds(period)};
}

Limit log(std::uint64_t rate, std::int64_t period) {
  return {.algorithm = Algorithm::sliding_log, .rate = rate, .period = std::chrono::nanoseconds(period)};
}

std::int64_t ns(const Wait& wait) { return wait.value().count(); }

TYPED_TEST(PublicReports, public_report_8) {
  TypeParam limit(bucket(2, kMinute, 2));
  EXPECT_EQ(ns(limit.check(0).reset_after), 30 * kSecond);
  EXPECT_EQ(ns(limit.check(0).reset_after), 60 * kSecond);
  const Decision denied = limit.check(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(ns(denied.reset_after), 60 * kSecond);
  EXPECT_EQ(ns(denied.retry_after), 30 * kSecond);
}

TYPED_TEST(PublicReports, public_report_9) {
  TypeParam limit(bucket(6, kMinute, 6));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limit.allows(0));
  EXPECT_EQ(ns(limit.check(0).retry_after), 10 * kSecond);
  const Decision early = limit.check(5'001 * kMillisecond);
  EXPECT_FALSE(early.allowed);
  EXPECT_EQ(ns(early.retry_after), 4'999 * kMillisecond);
  EXPECT_EQ(early.retry_after.ceil_seconds(), 5);
  EXPECT_TRUE(limit.allows(10 * kSecond));
}

TYPED_TEST(PublicReports, public_report_10) {
  TypeParam limit(bucket(1, 10 * kSecond, 1));
  const Decision first = limit.check(0);
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(ns(first.retry_after), 0);
  const Decision second = limit.check(200 * kMillisecond);
  EXPECT_EQ(ns(second.retry_after), 9'800 * kMillisecond);
  EXPECT_EQ(second.retry_after.ceil_seconds(), 10);
  const Decision third = limit.check(9'999'900 * kMicrosecond);
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.retry_after.ceil_seconds(), 1);
  EXPECT_TRUE(limit.allows(10 * kSecond));
}

TYPED_TEST(PublicReports, public_report_11) {
  TypeParam limit(bucket(3, 2 * kSecond, 3));
  const Decision never = limit.check(0, 4);
  EXPECT_FALSE(never.allowed);
  EXPECT_TRUE(never.retry_after.is_never());
  EXPECT_EQ(never.remaining, 3U);
  EXPECT_TRUE(limit.allows(0, 3));
  const Decision denied = limit.check(0);
  EXPECT_EQ(ns(denied.retry_after), 666'666'667);
  EXPECT_EQ(denied.retry_after.ceil_seconds(), 1);
}

TYPED_TEST(PublicReports, public_report_12) {
  TypeParam limit(log(10, kMinute));
  EXPECT_TRUE(limit.check(0, 11).retry_after.is_never());
  EXPECT_TRUE(limit.allows(0, 10));
}

TYPED_TEST(PublicReports, public_report_13) {
  TypeParam limit(log(10, kMinute));
  EXPECT_TRUE(limit.allows(0, 8));
  EXPECT_FALSE(limit.allows(1, 3));
  EXPECT_TRUE(limit.allows(2, 2));
}

TYPED_TEST(PublicReports, public_report_14) {
  TypeParam limit(bucket(1'000'000, kSecond, 1'000'000));
  EXPECT_TRUE(limit.allows(0));
  const Decision after_idle = limit.check(12 * kHour);
  EXPECT_TRUE(after_idle.allowed);
  EXPECT_EQ(after_idle.remaining, 999'999U);
}

TYPED_TEST(PublicReports, public_report_15) {
  TypeParam limit(bucket(0, kSecond, 1));
  EXPECT_TRUE(limit.allows(0));
  for (int i = 1; i < 1'000; ++i) {
    const Decision denied = limit.check(i * kHour);
    ASSERT_FALSE(denied.allowed);
    ASSERT_TRUE(denied.retry_after.is_never());
  }
}

TYPED_TEST(PublicReports, public_report_16) {
  for (std::int64_t rate = 1; rate <= 1'000; ++rate) {
    TypeParam one(bucket(static_cast<std::uint64_t>(rate), kSecond, 1));
    TypeParam two(bucket(static_cast<std::uint64_t>(rate), kSecond, 2));
    for (std::int64_t k = 0; k <= rate; ++k) {
      ASSERT_TRUE(one.allows(k * ((kSecond + rate - 1) / rate))) << rate << ' ' << k;
      ASSERT_TRUE(two.allows((k * kSecond + rate - 1) / rate)) << rate << ' ' << k;
    }
  }
}

TYPED_TEST(PublicReports, public_report_17) {
  TypeParam limit(bucket(0, kSecond, 10));
  EXPECT_TRUE(limit.allows(0, 4));
  EXPECT_FALSE(limit.allows(0, 7));
  const Decision last = limit.check(0, 6);
  EXPECT_TRUE(last.allowed);
  EXPECT_EQ(last.remaining, 0U);
}

TYPED_TEST(PublicReports, public_report_18) {
  TypeParam limit(bucket(10, kSecond, 10));
  EXPECT_TRUE(limit.allows(0, 10));
  std::vector<std::int64_t> allowed;
  for (std::int64_t ms = 1; ms <= 250; ++ms) {
    if (limit.allows(ms * kMillisecond)) allowed.push_back(ms);
  }
  EXPECT_EQ(allowed, (std::vector<std::int64_t>{100, 200}));
}

TYPED_TEST(PublicReports, public_report_19) {
  Limit leaky{.algorithm = Algorithm::leaky_bucket, .rate = 10, .period = std::chrono::minutes(1)};
  leaky.queue = 9;
  TypeParam limit(leaky);
  EXPECT_TRUE(limit.allows(0, 10));
  EXPECT_EQ(limit.check(30 * kSecond, 0).remaining, 5U);
  EXPECT_FALSE(limit.allows(30 * kSecond, 6));
  EXPECT_TRUE(limit.allows(30 * kSecond, 5));
}

TYPED_TEST(PublicReports, public_report_20) {
  TypeParam limit(bucket(5, kDay, 5));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.allows(0));
  EXPECT_EQ(ns(limit.check(0).retry_after), 17'280 * kSecond);
}

TYPED_TEST(PublicReports, public_report_21) {
  TypeParam limit(bucket(2'000, kSecond, 2'000));
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(limit.allows(0)) << i;
  const Decision denied = limit.check(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(ns(denied.retry_after), 500 * kMicrosecond);
  EXPECT_EQ(denied.retry_after.ceil_seconds(), 1);
}

TYPED_TEST(PublicReports, public_report_22) {
  TypeParam limit(bucket(3, kSecond, 3));
  std::vector<int> allowed;
  for (int i = 0; i < 100; ++i) {
    if (limit.allows(i * 100 * kMillisecond)) allowed.push_back(i);
  }
  ASSERT_EQ(allowed.size(), 32U);
  allowed.resize(12);
  EXPECT_EQ(allowed, (std::vector<int>{0, 1, 2, 4, 7, 10, 14, 17, 20, 24, 27, 30}));
}

TYPED_TEST(PublicReports, public_report_23) {
  TypeParam limit(bucket(5, kSecond, 5));
  for (const std::int64_t at : {0 * kSecond, 2 * kSecond}) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.allows(at));
    EXPECT_FALSE(limit.allows(at));
  }
}

TYPED_TEST(PublicReports, public_report_24) {
  for (const std::int64_t uptime : {std::int64_t{0}, std::int64_t{1}, 3'759 * kSecond, 400 * kDay}) {
    TypeParam limit(bucket(1, 10'000 * kSecond, 1), uptime);
    EXPECT_TRUE(limit.allows(0));
  }
}

TYPED_TEST(PublicReports, public_report_25) {
  TypeParam limit(counter(1, 10 * kSecond));
  EXPECT_TRUE(limit.allows(0));
  EXPECT_FALSE(limit.allows(0));
}

TYPED_TEST(PublicReports, public_report_26) {
  TypeParam limit(counter(100, 10 * kSecond));
  EXPECT_TRUE(limit.allows(0, 50));
  EXPECT_TRUE(limit.allows(10 * kSecond, 10));
  EXPECT_EQ(limit.check(11 * kSecond, 0).remaining, 45U);
  EXPECT_TRUE(limit.allows(11 * kSecond, 45));
  EXPECT_EQ(limit.check(11 * kSecond).remaining, 0U);
}

TYPED_TEST(PublicReports, public_report_27_log) {
  TypeParam limit(log(5, kMinute));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.allows(59'900 * kMillisecond));
  EXPECT_EQ(ns(limit.check(60'100 * kMillisecond).retry_after), 59'800 * kMillisecond);
}

TYPED_TEST(PublicReports, public_report_27_window) {
  TypeParam limit(window(5, kMinute));
  for (const std::int64_t at : {59'900 * kMillisecond, 60'100 * kMillisecond}) {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.allows(at));
    EXPECT_FALSE(limit.allows(at));
  }
}

TYPED_TEST(PublicReports, public_report_28) {
  TypeParam limit(bucket(1, kSecond, 1));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limit.allows(i * 100 * kMillisecond), i % 10 == 0) << i;
}

TYPED_TEST(PublicReports, public_report_29) {
  TypeParam limit(window(2, 500 * kMillisecond));
  EXPECT_TRUE(limit.allows(0));
  EXPECT_TRUE(limit.allows(0));
  const Decision denied = limit.check(0);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(ns(denied.retry_after), 500 * kMillisecond);
  EXPECT_TRUE(limit.allows(500 * kMillisecond));
}

TYPED_TEST(PublicReports, public_report_30) {
  TypeParam limit(log(10, kMinute));
  int allowed = 0;
  for (int i = 0; i < 20; ++i) allowed += limit.allows(i / 2) ? 1 : 0;
  EXPECT_EQ(allowed, 10);
}

TYPED_TEST(PublicReports, public_report_31) {
  TypeParam limit(bucket(10'000, 1'057 * kSecond, 1));
  EXPECT_TRUE(limit.allows(0));
  const Decision denied = limit.check(0);
  EXPECT_EQ(ns(denied.retry_after), 105'700 * kMicrosecond);
  EXPECT_EQ(denied.retry_after.ceil_seconds(), 1);
}

TYPED_TEST(PublicReports, public_report_32) {
  TypeParam limit(window(5, kMinute));
  const std::int64_t at = 400 * kMillisecond;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limit.allows(at));
  const std::int64_t header = limit.check(at).retry_after.ceil_seconds();
  EXPECT_EQ(header, 60);
  EXPECT_TRUE(limit.allows(at + header * kSecond));
}

TYPED_TEST(PublicReports, public_report_33) {
  TypeParam limit(log(10, kMinute));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit.allows(2 * i * kSecond));
  EXPECT_EQ(ns(limit.check(20 * kSecond).retry_after), 40 * kSecond);
}

TYPED_TEST(PublicReports, public_report_34) {
  TypeParam limit(log(2, kMinute));
  EXPECT_TRUE(limit.allows(0));
  EXPECT_TRUE(limit.allows(10 * kSecond));
  EXPECT_EQ(ns(limit.check(20 * kSecond).retry_after), 40 * kSecond);
}

TYPED_TEST(PublicReports, public_report_35) {
  TypeParam limit(window(5, kMinute));
  const Decision decision = limit.check(59'999'500 * kMicrosecond);
  EXPECT_EQ(decision.remaining, 4U);
  EXPECT_EQ(decision.reset_after.ceil_seconds(), 1);
}

TYPED_TEST(PublicReports, public_report_73) {
  const auto reset = [](const Limit& limit) { return ns(TypeParam(limit).check(0).reset_after) / kSecond; };
  EXPECT_EQ(reset(window(5, 30 * kDay)), 518'400);
  EXPECT_EQ(reset(window(5, 7 * kDay)), 604'800);
  EXPECT_EQ(reset(window(5, 365 * kDay)), 30'326'400);
  Limit month = window(5, 30 * kDay);
  month.align = Align::calendar;
  month.calendar.unit = Calendar::Unit::month;
  EXPECT_EQ(reset(month), 2'678'400);
}

}  // namespace
}  // namespace sluice::algorithm
