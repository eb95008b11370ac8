// Random traces that look for trouble: boundaries, exact retries, older clocks, long idles, tiny and huge rates. The
// same kinds as reference/traces.py, at a speed for millions.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithm/ticks.h"
#include "sluice/limit.h"
#include "tests/model/engine.h"
#include "tests/model/trace.h"

namespace sluice::model {

/// Operations on some limits in turn. `next` looks at the answer to the operation before, so that it can aim at
/// remaining tokens and at exact times.
class RandomTrace {
 public:
  /// No algorithm: two to four limits of any, and requests with several charges.
  RandomTrace(std::uint64_t seed, std::optional<Algorithm> algorithm, algorithm::Tick tick, bool monotone);

  /// The limits of a segment, which is kSegment operations long. Start one before the first `next` and after each.
  [[nodiscard]] std::vector<std::pair<std::string, Limit>> start_segment();
  [[nodiscard]] Operation next();
  void answered(const Operation& operation, const Answer& answer);

  static constexpr int kSegment = 120;

 private:
  struct Named {
    std::string id;
    Limit limit;    // as defined
    Limit present;  // after set_limit on the key that is used most
  };

  [[nodiscard]] std::int64_t below(std::int64_t end);  // 0 … end - 1; 0 for end <= 0
  [[nodiscard]] std::int64_t between(std::int64_t low, std::int64_t high);
  [[nodiscard]] bool chance(double probability);
  template <typename T, typename... Rest>
  [[nodiscard]] T one_of(T first, Rest... rest);
  [[nodiscard]] std::uint64_t up_to_power(int most_digits);
  [[nodiscard]] Limit random_limit(Algorithm algorithm);
  [[nodiscard]] boost::json::object changed(const Limit& limit);
  [[nodiscard]] std::int64_t step(std::int64_t gap, std::int64_t period);
  [[nodiscard]] std::uint64_t random_cost(const Limit& limit);
  [[nodiscard]] std::vector<TracedCharge> random_charges(Named& named, const std::string& key, bool older);
  void make_verb(Operation& operation, Named& named, const std::string& key, double pick);

  std::mt19937_64 random_;
  std::optional<Algorithm> algorithm_;
  algorithm::Tick tick_;
  std::int64_t second_;
  bool monotone_;
  int segment_ = 0;
  std::vector<Named> limits_;
  std::int64_t now_ = 0;
  std::deque<Operation> todo_;  // the rest of an exact retry
  Answer last_;
  bool last_took_alone_ = false;
  Operation last_operation_;
  std::vector<std::int64_t> charged_;
  std::vector<std::pair<std::pair<std::string, std::string>, std::uint64_t>> leases_;
};

}  // namespace sluice::model
