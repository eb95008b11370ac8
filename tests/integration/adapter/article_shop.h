// What the tests of all adapters limit: a shop of articles, on the memory store or on a Redis of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/http_limits.h"
#include "sluice/limiter.h"
#include "tests/integration/redis_server.h"

namespace sluice::testing {

/// POST /articles is counted by X-User (without one: 401) and denied when the store fails; GET /articles by address,
/// and in this process then; GET /open by address, and let in then; GET /worded is always denied, in words of its own;
/// all else is free. Limits are 3, and don't refill within a test.
class ArticleShop {
 public:
  /// `on_redis`: waits until Redis serves it. `answers`: what clients are told.
  explicit ArticleShop(bool on_redis, const HttpAnswerOptions& answers = {});

  [[nodiscard]] Limiter& limiter() { return *limiter_; }
  [[nodiscard]] HttpLimits& limits() { return *limits_; }
  [[nodiscard]] RedisServer& redis() { return *redis_; }

  /// What POST /articles is counted by, as a program would say it; without a user: nothing.
  [[nodiscard]] static std::optional<LimiterRequest> by_user(std::string_view user);

 private:
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Limiter> limiter_;
  std::unique_ptr<HttpLimits> limits_;
};

}  // namespace sluice::testing
