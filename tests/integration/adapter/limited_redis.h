// A limiter on the memory store, or on a Redis of its own.
#pragma once

#include <memory>
#include <string>

#include "sluice/http_limits.h"
#include "sluice/limiter.h"
#include "tests/integration/redis_server.h"

namespace sluice::testing {

/// Limits by a policy that is given as text.
class LimitedRedis {
 public:
  /// `on_redis`: waits until Redis serves it. `answers`: what clients are told.
  LimitedRedis(const std::string& policy, bool on_redis, const HttpAnswerOptions& answers = {});

  [[nodiscard]] Limiter& limiter() { return *limiter_; }
  [[nodiscard]] HttpLimits& limits() { return *limits_; }
  [[nodiscard]] RedisServer& redis() { return *redis_; }

 private:
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Limiter> limiter_;
  std::unique_ptr<HttpLimits> limits_;
};

}  // namespace sluice::testing
