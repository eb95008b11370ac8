#include "store/redis/exactness.h"

#include "algorithm/limit_check.h"

namespace sluice::store::redis {

std::optional<std::string> inexact_in_redis(const Limit& limit) {
  // The proof in lua/main.lua rests on the general ranges.
  const auto problems = algorithm::validate(limit);
  if (problems.empty()) return std::nullopt;
  return std::string(problems.front().field) + ": " + problems.front().message;
}

}  // namespace sluice::store::redis
