// The settings of Redis as the store takes them: the one way from there to here, for all that speak to Redis.
#pragma once

#include <chrono>

#include "config/settings.h"
#include "store/redis/redis_store.h"

namespace sluice::config {

/// Precondition: settings.redis_url is not empty. `timeout` is that of a check: the daemon's is settings.redis_timeout,
/// others have more patience. What contradicts is told by store::redis::check_options.
[[nodiscard]] store::redis::RedisOptions redis_options(const Settings& settings, std::chrono::nanoseconds timeout);

}  // namespace sluice::config
