// A program's options of Redis as the store takes them.
#pragma once

#include "sluice/limiter.h"
#include "store/redis/redis_store.h"

namespace sluice::limiter {

/// Precondition: options.redis_url is not empty. What contradicts is told by the store.
[[nodiscard]] store::redis::RedisOptions redis_options(const LimiterOptions& options);

}  // namespace sluice::limiter
