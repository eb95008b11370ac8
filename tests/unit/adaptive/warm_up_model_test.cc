// A million random operations on WarmUp, against the same rules on rational numbers. The seed is SLUICE_SEED (default
// 1).
#include "tests/unit/adaptive/warm_up_model.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

#include "sluice/token_bucket.h"
#include "tests/unit/adaptive/random.h"

namespace sluice::adaptive {
namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;
constexpr std::int64_t kYear = 366LL * 86'400 * 1'000'000'000;

Time at(std::int64_t ns) { return {.steady = ns, .utc = 0}; }

// Numbers of all orders of magnitude that don't take a lifetime to refill, or (huge) any.
WarmUp::Numbers random_numbers(Random& random, bool huge) {
  WarmUp::Numbers numbers;
  const auto duration = [&](std::uint64_t most) { return std::chrono::microseconds(random.size(most)); };
  numbers.rate = huge ? random.size(kMaxRate) : random.size(1'000);
  if (random.one_in(30)) numbers.rate = 0;
  numbers.period = duration(huge ? 366ULL * 86'400 * 1'000'000 : 10'000'000);
  numbers.burst = huge ? random.size(kMaxTokens) : random.size(100);
  numbers.warm_up = duration(huge ? 366ULL * 86'400 * 1'000'000 : 10'000'000);
  numbers.cool_down = duration(huge ? 366ULL * 86'400 * 1'000'000 : 10'000'000);
  numbers.cold_factor = static_cast<std::uint32_t>(random.one_in(10) ? 1 : random.size(huge ? 1'000 : 10));
  return numbers;
}

class Pair {
 public:
  Pair(const WarmUp::Numbers& numbers, Random& random, bool huge)
      : huge_(huge), numbers_(numbers), random_(random), limit_(numbers), model_(numbers) {}

  void step() {
    move_time();
    const std::uint64_t cost = random_.one_in(30) ? random_.size(2'000'000'000'000'000)
                               : random_.one_in(10)
                                   ? numbers_.burst
                                   : random_.size(std::min<std::uint64_t>(numbers_.burst, 1 + numbers_.burst / 2));
    const std::uint64_t what = random_.below(200);
    Decision decision;
    if (what < 170) {
      const Decision peeked = limit_.peek(cost, at(now_));
      decision = limit_.try_acquire(cost, at(now_));
      compare("peek", peeked.allowed == decision.allowed && peeked.remaining == decision.remaining &&
                          peeked.retry_after == decision.retry_after && peeked.reset_after == decision.reset_after);
      compare("allowed", decision.allowed == model_.allows(cost, now_));
      if (decision.allowed) {
        model_.take(cost, 0, now_);
      } else {
        check_retry(cost, decision);
      }
    } else if (what < 178) {
      decision = limit_.refund(cost, at(now_));
      model_.refund(cost, now_);
    } else if (what < 184) {
      const std::uint64_t reserved = random_.size(numbers_.burst);
      decision = limit_.settle(reserved, cost, at(now_));
      if (cost > reserved) {
        model_.take(cost - reserved, kMaxTokens, now_);
      } else {
        model_.refund(reserved - cost, now_);
      }
    } else if (what < 190) {
      decision = limit_.penalize(cost, at(now_));
      model_.take(cost, numbers_.burst, now_);
    } else if (what < 196) {
      const Granted granted = limit_.acquire_up_to(cost, at(now_));
      compare("acquire_up_to", granted.tokens == std::min(cost, model_.remaining(now_)));
      model_.take(granted.tokens, 0, now_);
      decision = granted.decision;
    } else if (what < 199) {
      if (!random_.one_in(4)) numbers_ = random_numbers(random_, huge_);
      decision = limit_.set_limit(numbers_, at(now_));
      model_.set_limit(numbers_, now_);
    } else {
      decision = limit_.reset(at(now_));
      model_.reset();
    }
    compare("limit", decision.limit == numbers_.burst);
    compare("remaining", decision.remaining == model_.remaining(now_));
    check_reset(decision);
    next_ = decision.retry_after;
  }

 private:
  void move_time() {
    const std::int64_t most = huge_ ? kYear / 4 : 30'000'000'000;
    if (random_.one_in(3) && !next_.is_never() && next_.value().count() < most) {
      now_ += next_.value().count() - static_cast<std::int64_t>(random_.below(2));
    } else if (random_.one_in(20)) {
      now_ -= static_cast<std::int64_t>(random_.size(1'000'000'000));
    } else if (random_.one_in(2)) {
      now_ += static_cast<std::int64_t>(random_.size(static_cast<std::uint64_t>(most)));
    }
    // A hundred years are enough.
    if (now_ > kStart + 100 * kYear) now_ = kStart;
  }

  static void compare(const char* what, bool equal) { ASSERT_TRUE(equal) << what; }

  // Exactly then it fits, and one tick earlier not.
  void check_retry(std::uint64_t cost, const Decision& denied) {
    const Wait wait = denied.retry_after;
    const std::int64_t now = model_.answered_as(now_);
    if (wait.is_never()) {
      compare("never", cost > numbers_.burst || numbers_.rate == 0);
    } else if (wait == Wait(kLongestWait)) {
      compare("longest", !model_.allows(cost, now + kLongestWait.count() - 1));
    } else {
      compare("retry_after", model_.allows(cost, now + wait.value().count()));
      compare("retry_after − 1", !model_.allows(cost, now + wait.value().count() - 1));
    }
  }
  void check_reset(const Decision& decision) {
    const Wait wait = decision.reset_after;
    const std::int64_t now = model_.answered_as(now_);
    if (wait.is_never()) {
      compare("reset never", numbers_.rate == 0);
    } else if (wait == Wait(kLongestWait)) {
      compare("reset longest", !model_.fresh(now + kLongestWait.count() - 1));
    } else {
      compare("reset_after", model_.fresh(now + wait.value().count()));
      compare("reset_after − 1", wait == Wait() || !model_.fresh(now + wait.value().count() - 1));
    }
  }

  bool huge_;
  WarmUp::Numbers numbers_;
  Random& random_;
  WarmUp limit_;
  WarmUpModel model_;
  std::int64_t now_ = kStart;
  Wait next_;
};

class WarmUpLaw : public testing::TestWithParam<bool> {};

TEST_P(WarmUpLaw, HalfAMillionOperationsAreTheSame) {
  Random random(seed_of_the_run());
  for (int one = 0; one < 2'500; ++one) {
    Pair pair(random_numbers(random, GetParam()), random, GetParam());
    for (int operation = 0; operation < 200; ++operation) {
      pair.step();
      ASSERT_FALSE(HasFatalFailure()) << "case " << one << ", operation " << operation;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WarmUpLaw, testing::Bool(), [](const auto& of) { return of.param ? "Huge" : "Usual"; });

TEST(WarmUpBound, APlainBucketOfTheSameNumbersAdmitsAllThatItAdmits) {
  Random random(seed_of_the_run());
  for (int one = 0; one < 1'000; ++one) {
    const WarmUp::Numbers numbers = random_numbers(random, one % 2 == 0);
    WarmUp limit(numbers);
    TokenBucket plain({.rate = numbers.rate, .period = numbers.period, .burst = numbers.burst});
    std::int64_t now = kStart;
    for (int operation = 0; operation < 100; ++operation) {
      const std::uint64_t cost = random.size(numbers.burst);
      const Decision decision = limit.try_acquire(cost, at(now));
      if (decision.allowed) {
        ASSERT_TRUE(plain.try_acquire(cost, at(now)).allowed) << one;
      }
      now += decision.retry_after < Wait(std::chrono::hours(24)) && random.one_in(2)
                 ? decision.retry_after.value().count()
                 : static_cast<std::int64_t>(random.size(1'000'000'000));
    }
  }
}

}  // namespace
}  // namespace sluice::adaptive
