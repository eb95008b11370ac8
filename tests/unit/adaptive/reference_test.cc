// A million random calls and verdicts, against the same rules as a slow program. The seed is SLUICE_SEED (default 1).
#include "tests/unit/adaptive/reference.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/adaptive/random.h"

namespace sluice::adaptive {
namespace {

constexpr std::int64_t kStart = 1'767'225'600'000'000'000;

AdaptiveConcurrency::Numbers random_numbers(Random& random) {
  AdaptiveConcurrency::Numbers numbers;
  numbers.min = random.between(1, 4);
  numbers.max = numbers.min + random.below(60);
  numbers.initial = random.between(numbers.min, numbers.max);
  numbers.window = std::chrono::microseconds(random.between(1, 30));
  numbers.samples = static_cast<std::uint32_t>(random.between(1, 6));
  numbers.tolerated_drops_permille = static_cast<std::uint32_t>(random.between(0, 300));
  numbers.backoff_permille = static_cast<std::uint32_t>(random.between(1, 999));
  if (random.one_in(3)) {
    numbers.method = Aimd{.timeout = std::chrono::microseconds(random.between(1, 200)),
                          .increase = static_cast<std::uint32_t>(random.between(1, 3))};
  } else {
    numbers.method = Gradient{.tolerance_permille = static_cast<std::uint32_t>(random.between(1'000, 3'000)),
                              .smoothing_permille = static_cast<std::uint32_t>(random.between(1, 1'000)),
                              .queue = static_cast<std::uint32_t>(random.below(6)),
                              .probe_every = static_cast<std::uint32_t>(random.between(1, 40)),
                              .seed = random.below(1'000)};
  }
  return numbers;
}

// Both side by side.
class Pair {
 public:
  Pair(const AdaptiveConcurrency::Numbers& numbers, Random& random)
      : numbers_(numbers), random_(random), limiter_(numbers), reference_(numbers) {}

  // One random operation; false when the two differ.
  bool step() {
    const auto step = static_cast<std::int64_t>(random_.size(random_.one_in(50) ? 2'000 : 8'000));
    if (now_ < INT64_MAX - step) now_ += random_.one_in(50) ? -step : step;
    if (random_.one_in(500)) now_ = random_.one_in(3) ? INT64_MAX : kStart;  // a clock gone mad, and put right
    const Time now{.steady = now_, .utc = 0};
    const std::uint64_t what = random_.below(1'000);
    if (what < 480 || calls_.empty()) {
      const Decision foretold = limiter_.peek();
      const bool probing = limiter_.figures().probing;
      auto permit = limiter_.try_acquire(now);
      const auto call = reference_.acquire(now_);
      if (static_cast<bool>(permit) != call.has_value()) return false;
      if (!probing && foretold.allowed != permit.decision().allowed) return false;
      if (permit) calls_.emplace_back(std::move(permit), *call);
    } else if (what < 997) {
      std::swap(calls_[random_.below(calls_.size())], calls_.back());
      auto [permit, call] = std::move(calls_.back());
      calls_.pop_back();
      if (random_.one_in(20)) {
        reference_.ignore(call);
      } else if (random_.one_in(troubled_ ? 3 : 200)) {
        permit.drop(now);
        reference_.end(call, now_, true);
      } else {
        permit.success(now);
        reference_.end(call, now_, false);
      }
    } else if (what == 997) {
      troubled_ = !troubled_;
    } else if (what == 998 && random_.one_in(20)) {
      limiter_.reset();
      reference_.reset();
    } else if (what == 999) {
      if (random_.one_in(5)) numbers_ = random_numbers(random_);
      limiter_.set_limit(numbers_, now);
      reference_.set_limit(numbers_, now_);
    }
    return same();
  }

  [[nodiscard]] std::string difference() const {
    const auto figures = limiter_.figures();
    return "limit " + std::to_string(figures.limit) + " ≠ " + std::to_string(reference_.limit()) + ", in flight " +
           std::to_string(figures.in_flight) + " ≠ " + std::to_string(reference_.in_flight()) + ", short " +
           std::to_string(figures.short_rtt.count()) + " ≠ " + std::to_string(reference_.short_rtt()) + ", long " +
           std::to_string(figures.long_rtt.count()) + " ≠ " + std::to_string(reference_.long_rtt()) + ", probing " +
           std::to_string(figures.probing) + " ≠ " + std::to_string(reference_.probing());
  }
  [[nodiscard]] bool within_bounds() const {
    const std::uint64_t limit = limiter_.figures().limit;
    return limit >= numbers_.min && limit <= numbers_.max;
  }
  [[nodiscard]] AdaptiveConcurrency::Figures figures() const { return limiter_.figures(); }

 private:
  [[nodiscard]] bool same() const {
    const auto figures = limiter_.figures();
    return figures.limit == reference_.limit() && figures.in_flight == reference_.in_flight() &&
           figures.short_rtt.count() == reference_.short_rtt() && figures.long_rtt.count() == reference_.long_rtt() &&
           figures.probing == reference_.probing();
  }

  AdaptiveConcurrency::Numbers numbers_;
  Random& random_;
  AdaptiveConcurrency limiter_;
  Reference reference_;
  std::vector<std::pair<AdaptiveConcurrency::Permit, int>> calls_;
  std::int64_t now_ = kStart;
  bool troubled_ = false;
};

TEST(Reference, AMillionOperationsAreTheSame) {
  Random random(seed_of_the_run());
  constexpr int kCases = 250;
  constexpr int kOperations = 4'000;
  std::uint64_t probes = 0;
  std::uint64_t moves = 0;
  for (int one = 0; one < kCases; ++one) {
    Pair pair(random_numbers(random), random);
    AdaptiveConcurrency::Figures before = pair.figures();
    for (int operation = 0; operation < kOperations; ++operation) {
      ASSERT_TRUE(pair.step()) << "case " << one << ", operation " << operation << ": " << pair.difference();
      ASSERT_TRUE(pair.within_bounds()) << "case " << one << ", operation " << operation;
      const AdaptiveConcurrency::Figures after = pair.figures();
      probes += after.probing && !before.probing ? 1 : 0;
      moves += after.limit != before.limit ? 1 : 0;
      // Never more than the limit, but for those that were let in by a higher one.
      ASSERT_TRUE(after.in_flight <= after.limit || after.in_flight <= before.in_flight);
      before = after;
    }
  }
  // So much was tried, indeed.
  EXPECT_GT(probes, 500U);
  EXPECT_GT(moves, 5'000U);
}

}  // namespace
}  // namespace sluice::adaptive
