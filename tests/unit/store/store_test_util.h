// What tests of stores share.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/limit.h"
#include "store/limit_ids.h"
#include "store/store.h"

namespace sluice::store::testing {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kStart = 1'767'225'600 * kSecond;  // 2026-01-01, the start of a day

[[nodiscard]] inline Time at(std::int64_t nanoseconds) { return {nanoseconds, nanoseconds}; }

[[nodiscard]] inline CountedLimit counted(const std::string& identity, const Limit& numbers) {
  CountedLimit limit;
  limit.numbers = numbers;
  limit.identity = identity;
  limit.id = limit_id(identity);
  return limit;
}

[[nodiscard]] inline Limit token_bucket(std::uint64_t rate, std::chrono::nanoseconds period, std::uint64_t burst) {
  Limit limit;
  limit.algorithm = Algorithm::token_bucket;
  limit.rate = rate;
  limit.period = period;
  limit.burst = burst;
  return limit;
}

[[nodiscard]] inline Limit leaky_bucket(std::uint64_t rate, std::chrono::nanoseconds period, std::uint64_t queue) {
  Limit limit;
  limit.algorithm = Algorithm::leaky_bucket;
  limit.rate = rate;
  limit.period = period;
  limit.queue = queue;
  return limit;
}

[[nodiscard]] inline Limit fixed_window(std::uint64_t rate, std::chrono::nanoseconds period,
                                        Align align = Align::epoch) {
  Limit limit;
  limit.algorithm = Algorithm::fixed_window;
  limit.rate = rate;
  limit.period = period;
  limit.align = align;
  return limit;
}

/// A request that is answered within the call.
class AtOnce final : public Check {
 public:
  /// The decisions of `charges_in` at `now`.
  const std::vector<Decision>& ask(Store& store, const std::vector<Charge>& charges_in, Time now) {
    answers.assign(charges_in.size(), Decision());
    charges = charges_in;
    decisions = answers;
    answered = store.check(*this, now) == Progress::answered;
    return answers;
  }
  Decision ask_one(Store& store, const CountedLimit& limit, std::string_view key, std::uint64_t cost, Time now) {
    const Charge charge{.limit = &limit, .key = key, .cost = cost};
    answers.assign(1, Decision());
    charges = {&charge, 1};
    decisions = answers;
    answered = store.check(*this, now) == Progress::answered;
    charges = {};
    return answers.front();
  }
  void complete() override { ++completed; }

  std::vector<Decision> answers;
  bool answered = false;
  int completed = 0;
};

}  // namespace sluice::store::testing
