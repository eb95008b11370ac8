// The settings of Redis as the store takes them.
#pragma once

#include "config/settings.h"
#include "store/redis/redis_store.h"

namespace sluice::server {

/// Precondition: settings.redis_url is not empty. What contradicts is told by store::redis::check_options.
[[nodiscard]] store::redis::RedisOptions redis_options(const config::Settings& settings);

}  // namespace sluice::server
