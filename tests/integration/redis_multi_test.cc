// Requests of several charges through the script, against the algorithms in C++: all or nothing, and the decision of
// many. (The reference model judges the algorithms one by one: redis_model_replay.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/integration/redis_engine.h"
#include "tests/integration/redis_server.h"
#include "tests/model/engine.h"
#include "tests/model/subject.h"

namespace sluice::testing {
namespace {

constexpr int kOperations = 30'000;
constexpr int kPerSegment = 150;

class Traces {
 public:
  explicit Traces(std::uint64_t seed) : random_(seed) {}

  // One limit in the trace's words.
  boost::json::object limit() {
    if (pick(2) == 0) {
      const std::int64_t rates[][3] = {{10, 1'000'000, 30},
                                       {3, 1'000'000, 4},
                                       {7, 60'000'000, 7},
                                       {1'000'003, 1'000'000, 5},
                                       {0, 1'000'000, 5},
                                       {999, 7, 12},
                                       {1, 2'592'000'000'000, 2},
                                       {7, 31'622'400'000'000, 90},
                                       {999'999'999'989, 31'622'399'999'999, 1'000'000'000'000'000}};
      const auto& [rate, period, burst] = rates[pick(std::size(rates))];
      return {{"algorithm", "token_bucket"}, {"rate", rate}, {"period", period}, {"burst", burst}};
    }
    const std::int64_t rates[] = {0, 1, 2, 5, 37, 1'000'000'000'000};
    const std::int64_t periods[] = {7, 500'000, 1'000'000, 60'000'000, 31'622'400'000'000};
    return {{"algorithm", "fixed_window"},
            {"rate", rates[pick(std::size(rates))]},
            {"period", periods[pick(std::size(periods))]},
            {"align", pick(2) == 0 ? "epoch" : "first_hit"},
            {"count_denied", pick(4) == 0}};
  }
  std::uint64_t cost() {
    constexpr std::uint64_t costs[] = {0, 1, 1, 1, 1, 2, 3, 5, 30, 1'000'000'000'000'000};
    return costs[pick(std::size(costs))];
  }
  std::int64_t step() {
    constexpr std::int64_t steps[] = {0, 0, 0, 1, 3, 99'999, 100'000, 1'000'000, 61'000'000, 86'400'000'000};
    return steps[pick(std::size(steps))];
  }
  std::size_t pick(std::size_t below) { return static_cast<std::size_t>(random_() % below); }

 private:
  std::mt19937_64 random_;
};

TEST(RedisMulti, SameAnswersAsInProcess) {
  const char* given = std::getenv("SLUICE_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  SCOPED_TRACE("SLUICE_SEED=" + std::to_string(seed));
  RedisServer server;
  RedisEngine redis(server);
  model::Engine twin(algorithm::Tick::microsecond, &model::make_subject);
  Traces traces(seed);
  std::int64_t now = 1'767'225'600'000'000;
  std::vector<std::string> limits;
  int admitted = 0;
  for (int i = 0; i < kOperations; ++i) {
    if (i % kPerSegment == 0) {
      limits.clear();
      for (int n = 0; n < 4; ++n) {
        model::Operation define;
        define.verb = "limit";
        define.limit = "L" + std::to_string(i) + "." + std::to_string(n);
        define.numbers = traces.limit();
        (void)redis.apply(define);
        twin.define(define.limit, model::with_numbers({}, define.numbers, algorithm::Tick::microsecond));
        limits.push_back(define.limit);
      }
    }
    model::Operation operation;
    operation.verb = traces.pick(10) == 0 ? "peek" : "check";
    now += traces.step();
    operation.now = now;
    const std::size_t charges = 1 + traces.pick(5);
    for (std::size_t c = 0; c < charges; ++c) {
      operation.charges.push_back(
          {limits[traces.pick(limits.size())], traces.pick(4) == 0 ? "a" : "b|x", traces.cost()});
      // Sums above the largest cost are the limiter's to refuse.
      if (operation.charges.back().cost > 1'000 && charges > 1) operation.charges.back().cost = 1'000;
    }
    const boost::json::object expected = to_json(twin.apply(operation));
    const boost::json::object got = redis.apply(operation);
    ASSERT_EQ(got, expected) << "operation " << i;
    admitted += got.at("allowed").as_bool() ? 1 : 0;
  }
  // The traces ask both kinds of questions.
  EXPECT_GT(admitted, kOperations / 10);
  EXPECT_LT(admitted, kOperations * 9 / 10);
}

}  // namespace
}  // namespace sluice::testing
