#include "store/redis/exactness.h"

#include "algorithm/limit_check.h"

namespace sluice::store::redis {

std::optional<std::string> inexact_in_redis(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
    case Algorithm::fixed_window:
      break;
    case Algorithm::leaky_bucket:
    case Algorithm::sliding_window:
    case Algorithm::sliding_log:
    case Algorithm::concurrency:
      return "algorithm: must be token_bucket or fixed_window in a policy that is kept in Redis";
  }
  // The proof in lua/arithmetic.lua rests on the general ranges.
  const auto problems = algorithm::validate(limit);
  if (problems.empty()) return std::nullopt;
  return std::string(problems.front().field) + ": " + problems.front().message;
}

}  // namespace sluice::store::redis
