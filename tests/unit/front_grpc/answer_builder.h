// Answers built by hand, for tests of what is made of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "limiter/call.h"

namespace sluice::front::testing_support {

/// An answer built by hand, with the rules it points at.
class AnswerBuilder {
 public:
  policy::Rule& bucket(std::string name, std::uint64_t rate, std::chrono::nanoseconds period, std::uint64_t burst) {
    policy::Rule& rule = add_rule(std::move(name), Algorithm::token_bucket, rate, period);
    rule.counted.numbers.burst = burst;
    return rule;
  }
  policy::Rule& window(std::string name, std::uint64_t rate, std::chrono::nanoseconds period) {
    return add_rule(std::move(name), Algorithm::fixed_window, rate, period);
  }
  AnswerBuilder& status(const policy::Rule& rule, const Decision& decision) {
    answer_.statuses.push_back({.over_limit = !decision.allowed, .rule = &rule, .decision = decision, .key = {}});
    return *this;
  }
  AnswerBuilder& decided_by(const policy::Rule& rule, const Decision& decision) {
    answer_.deciding = &rule;
    answer_.decision = decision;
    answer_.allowed = decision.allowed;
    return *this;
  }
  /// One limit decided alone.
  AnswerBuilder& only(const policy::Rule& rule, const Decision& decision) {
    return status(rule, decision).decided_by(rule, decision);
  }
  limiter::Answer& answer() { return answer_; }

 private:
  policy::Rule& add_rule(std::string name, Algorithm algorithm, std::uint64_t rate, std::chrono::nanoseconds period) {
    policy::Rule& rule = rules_.emplace_back();
    rule.counted.numbers.algorithm = algorithm;
    rule.counted.numbers.rate = rate;
    rule.counted.numbers.period = period;
    rule.name = std::move(name);
    rule.counted.identity = rule.name;
    rule.counted.id = static_cast<std::uint32_t>(rules_.size());
    return rule;
  }

  std::deque<policy::Rule> rules_;
  limiter::Answer answer_;
};

inline Decision allowed(std::uint64_t limit, std::uint64_t remaining, std::chrono::nanoseconds reset_after) {
  Decision decision;
  decision.limit = limit;
  decision.remaining = remaining;
  decision.reset_after = Wait(reset_after);
  return decision;
}

inline Decision denied(std::uint64_t limit, std::uint64_t remaining, Wait retry_after,
                       std::chrono::nanoseconds reset_after) {
  Decision decision = allowed(limit, remaining, reset_after);
  decision.allowed = false;
  decision.retry_after = retry_after;
  return decision;
}

}  // namespace sluice::front::testing_support
