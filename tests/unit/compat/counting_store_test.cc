// Charges by themselves, judged by what was counted.
#include "compat/counting_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "policy/envoy_rules.h"
#include "store/limit_ids.h"
#include "store/memory/memory_store.h"
#include "tests/unit/store/plain_check.h"

namespace sluice::compat {
namespace {

using namespace std::chrono_literals;
using store::Charge;
using store::CountedLimit;
using store::Enforcement;
using store::PlainCheck;
using store::Progress;

Time at(std::chrono::nanoseconds since) { return {.steady = since.count(), .utc = since.count()}; }

CountedLimit limit_of(const std::string& name, std::uint64_t rate, const policy::EnvoyRules& rules,
                      std::chrono::nanoseconds period = 1min) {
  CountedLimit limit;
  limit.numbers.algorithm = Algorithm::fixed_window;
  limit.numbers.rate = rate;
  limit.numbers.period = period;
  policy::count_as_envoy(limit, rules);
  limit.identity = name;
  limit.id = store::limit_id(name);
  return limit;
}

class CountingStoreTest : public testing::Test {
 protected:
  Decision ask(const CountedLimit& limit, std::uint64_t cost) {
    PlainCheck check({{.limit = &limit, .key = "k", .cost = cost}});
    EXPECT_EQ(store_.check(check, now_), Progress::answered);
    EXPECT_EQ(check.admitted, check.decisions[0].allowed);
    return check.decisions[0];
  }

  policy::EnvoyRules rules_;
  std::shared_ptr<store::MemoryStore> memory_ = std::make_shared<store::MemoryStore>(1000);
  CountingStore store_{{.main = memory_, .per_second = nullptr}, true};
  Time now_ = at(90s);
};

TEST_F(CountingStoreTest, CountsUpToTheLimitAndBeyond) {
  const CountedLimit limit = limit_of("counts", 3, rules_);
  for (std::uint64_t left = 3; left-- > 0;) {
    const Decision decision = ask(limit, 1);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.limit, 3U);
    EXPECT_EQ(decision.remaining, left);
    EXPECT_EQ(decision.reset_after, Wait(30s));
    EXPECT_EQ(decision.mark, left == 0 ? Mark::quota_hit : Mark::none);
  }
  EXPECT_TRUE(ask(limit, 0).allowed) << "exactly full";
  const Decision denied = ask(limit, 1);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.remaining, 0U);
  EXPECT_EQ(denied.retry_after, Wait(30s));
  EXPECT_FALSE(ask(limit, 0).allowed) << "over";
}

TEST_F(CountingStoreTest, ADeniedChargeIsCounted) {
  const CountedLimit limit = limit_of("denied counts", 5, rules_);
  EXPECT_FALSE(ask(limit, 6).allowed);
  EXPECT_FALSE(ask(limit, 1).allowed);
  now_ = at(120s);
  EXPECT_TRUE(ask(limit, 1).allowed) << "another window";
}

TEST_F(CountingStoreTest, ALimitOfNothingDeniesAlways) {
  const CountedLimit limit = limit_of("nothing", 0, rules_);
  const Decision denied = ask(limit, 1);
  EXPECT_FALSE(denied.allowed);
  EXPECT_TRUE(denied.retry_after.is_never());
}

TEST_F(CountingStoreTest, ACostBeyondAllRangesDenies) {
  const CountedLimit limit = limit_of("huge", 5, rules_);
  EXPECT_FALSE(ask(limit, kMaxTokens).allowed);
  EXPECT_FALSE(ask(limit, 1).allowed);
}

// compatibility: two descriptors, one with requests_per_unit 0: overall denied, and the other was charged.
TEST_F(CountingStoreTest, ADeniedRequestHasChargedItsOthers) {
  const CountedLimit closed = limit_of("closed", 0, rules_);
  const CountedLimit open = limit_of("open", 5, rules_);
  PlainCheck check({{.limit = &closed, .key = "k"}, {.limit = &open, .key = "k"}});
  std::vector<std::uint64_t> counts(2);
  check.counts = counts;
  EXPECT_EQ(store_.check(check, now_), Progress::answered);
  EXPECT_FALSE(check.admitted);
  EXPECT_FALSE(check.decisions[0].allowed);
  EXPECT_TRUE(check.decisions[1].allowed);
  EXPECT_EQ(check.decisions[1].remaining, 4U);
  EXPECT_THAT(counts, testing::ElementsAre(1, 1));
  EXPECT_EQ(ask(open, 1).remaining, 3U);
}

// The known flaw of windows: twice the limit across an edge.
TEST_F(CountingStoreTest, AcrossAnEdgeTwiceTheLimitPasses) {
  const CountedLimit limit = limit_of("edge", 10, rules_, 1s);
  int allowed = 0;
  for (int i = 0; i < 40; ++i) {
    now_ = at(90s + 770ms + i * 11500us);
    if (ask(limit, 1).allowed) ++allowed;
  }
  EXPECT_EQ(allowed, 20);
}

TEST_F(CountingStoreTest, TheSameKeyTwiceIsCountedTwice) {
  const CountedLimit limit = limit_of("twice", 1, rules_);
  PlainCheck check({{.limit = &limit, .key = "k"}, {.limit = &limit, .key = "k"}});
  EXPECT_EQ(store_.check(check, now_), Progress::answered);
  EXPECT_TRUE(check.decisions[0].allowed);
  EXPECT_FALSE(check.decisions[1].allowed);
  EXPECT_FALSE(check.admitted);
}

TEST_F(CountingStoreTest, AShadowDeniesNobodyAndAQuotaOnlyWithAllOfThem) {
  const CountedLimit closed = limit_of("closed2", 0, rules_);
  const CountedLimit open = limit_of("open2", 5, rules_);
  const auto admitted = [&](Enforcement of_closed, Enforcement of_open) {
    PlainCheck check({{.limit = &closed, .key = "k", .enforcement = of_closed},
                      {.limit = &open, .key = "k", .enforcement = of_open}});
    EXPECT_EQ(store_.check(check, now_), Progress::answered);
    return check.admitted;
  };
  EXPECT_TRUE(admitted(Enforcement::shadow, Enforcement::enforce));
  EXPECT_TRUE(admitted(Enforcement::quota, Enforcement::quota));
  EXPECT_FALSE(admitted(Enforcement::quota, Enforcement::enforce));
}

TEST_F(CountingStoreTest, LimitsPerSecondHaveAStoreOfTheirOwn) {
  const auto seconds = std::make_shared<store::MemoryStore>(1000);
  CountingStore store({.main = memory_, .per_second = seconds}, true);
  const CountedLimit second = limit_of("second", 1, rules_, 1s);
  const CountedLimit minute = limit_of("minute", 1, rules_);
  PlainCheck check({{.limit = &second, .key = "k"}, {.limit = &minute, .key = "k"}});
  EXPECT_EQ(store.check(check, now_), Progress::answered);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(seconds->figures().keys, 1U);
  EXPECT_EQ(memory_->figures().keys, 1U);
}

TEST_F(CountingStoreTest, StopsWhenOver) {
  rules_.stops_when_over = true;
  CountingStore store({.main = memory_, .per_second = nullptr}, false);
  const CountedLimit closed = limit_of("closed3", 0, rules_);
  const CountedLimit open = limit_of("open3", 5, rules_);
  PlainCheck check({{.limit = &closed, .key = "k"}, {.limit = &open, .key = "k"}});
  EXPECT_EQ(store.check(check, now_), Progress::answered);
  EXPECT_FALSE(check.admitted);
  EXPECT_EQ(check.decisions[1].remaining, 5U) << "not charged";
}

/// Answers when it is told to.
class LateStore final : public store::Store {
 public:
  Progress check(store::Check& check, Time /*now*/) override {
    waiting.push_back(&check);
    return Progress::pending;
  }
  void cancel(store::Check& check) override { std::erase(waiting, &check); }
  void answer() {
    store::Check* check = waiting.front();
    waiting.erase(waiting.begin());
    check->decisions[0] = {.allowed = true, .limit = kMaxRate, .remaining = kMaxRate - 1};
    check->admitted = true;
    check->complete();
  }
  std::vector<store::Check*> waiting;
};

TEST_F(CountingStoreTest, WaitsForAllParts) {
  const auto late = std::make_shared<LateStore>();
  CountingStore store({.main = late, .per_second = nullptr}, true);
  const CountedLimit limit = limit_of("late", 1, rules_);
  PlainCheck check({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "b"}});
  EXPECT_EQ(store.check(check, now_), Progress::pending);
  late->answer();
  EXPECT_EQ(check.completed, 0);
  late->answer();
  EXPECT_EQ(check.completed, 1);
  EXPECT_TRUE(check.admitted);
  EXPECT_EQ(check.decisions[1].limit, 1U);
}

TEST_F(CountingStoreTest, AWithdrawnCheckHearsNothing) {
  const auto late = std::make_shared<LateStore>();
  CountingStore store({.main = late, .per_second = nullptr}, true);
  const CountedLimit limit = limit_of("withdrawn", 1, rules_);
  PlainCheck check({{.limit = &limit, .key = "a"}, {.limit = &limit, .key = "b"}});
  EXPECT_EQ(store.check(check, now_), Progress::pending);
  late->answer();
  store.cancel(check);
  EXPECT_TRUE(late->waiting.empty());
  EXPECT_EQ(check.completed, 0);
  PlainCheck again({{.limit = &limit, .key = "a"}});
  EXPECT_EQ(store.check(again, now_), Progress::pending);
  late->answer();
  EXPECT_EQ(again.completed, 1);
}

}  // namespace
}  // namespace sluice::compat
