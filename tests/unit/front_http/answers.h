// Answers made by hand, for tests of what is said about them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "limiter/call.h"

namespace sluice::http {

inline Wait wait_of(std::int64_t milliseconds) { return Wait(std::chrono::milliseconds(milliseconds)); }

inline policy::Rule make_rule(std::string name, std::string path, Algorithm algorithm = Algorithm::token_bucket) {
  policy::Rule rule;
  rule.counted.numbers.algorithm = algorithm;
  rule.counted.numbers.rate = 10;
  rule.counted.numbers.burst = 30;
  rule.name = std::move(name);
  rule.metric_path = std::move(path);
  rule.requests_per_unit = 10;
  rule.unit = Unit::second;
  return rule;
}

/// An answer with one descriptor, limited by `rule`.
inline limiter::Answer make_answer(const policy::Rule& rule, const Decision& decision) {
  limiter::Answer answer;
  answer.allowed = decision.allowed;
  answer.decision = decision;
  answer.deciding = &rule;
  answer.statuses.push_back({.over_limit = !decision.allowed, .rule = &rule, .decision = decision, .key = {}});
  return answer;
}

}  // namespace sluice::http
