// What the tests of all adapters limit: a shop of articles, on the memory store or on a Redis of its own.
#pragma once

#include <optional>
#include <string_view>

#include "sluice/limiter.h"
#include "tests/integration/adapter/limited_redis.h"

namespace sluice::testing {

/// POST /articles is counted by X-User (without one: 401) and denied when the store fails; GET /articles by address,
/// and in this process then; GET /open by address, and let in then; GET /worded is always denied, in words of its own;
/// all else is free. Limits are 3, and don't refill within a test.
class ArticleShop : public LimitedRedis {
 public:
  explicit ArticleShop(bool on_redis);

  /// What POST /articles is counted by, as a program would say it; without a user: nothing.
  [[nodiscard]] static std::optional<LimiterRequest> by_user(std::string_view user);
};

}  // namespace sluice::testing
