// One call of the script on its way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "store/redis/check_call.h"
#include "store/redis/redis_limit.h"

namespace sluice::store::redis {

/// Owned and reused by a Client; buffers keep their capacity.
struct Call {
  CallText text;
  std::vector<std::shared_ptr<const RedisLimit>> limits;  ///< of each charge
  Check* check = nullptr;                                 ///< null: withdrawn, timed out, or a probe
  bool is_probe = false;
  bool overdue = false;       ///< its deadline has passed, so its answer proves nothing
  std::int64_t deadline = 0;  ///< steady ns
  std::uint64_t serial = 0;   ///< changes with each use, so that a stale deadline is known
};

}  // namespace sluice::store::redis
