// A check as a call of the script, and the script's answer as decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.h"
#include "store/failure.h"
#include "store/redis/redis_limit.h"
#include "store/redis/reply_reader.h"
#include "store/store.h"

namespace sluice::store::redis {

/// The limit of each charge, in order.
using Limits = std::span<const std::shared_ptr<const RedisLimit>>;

/// What follows the script's name in EVALSHA or EVAL: the number of keys, the keys, the arguments.
struct CallText {
  std::string text;  ///< words in the Redis protocol
  std::size_t words = 0;
};

/// Writes the call for `charges` into `out`, whose capacity is kept.
void write_check(CallText& out, std::string_view prefix, std::span<const Charge> charges, Limits limits, Time caller);

/// Reads the script's answer into check.decisions and check.admitted. bad_answer: it is not of the agreed shape, or the
/// verdict is not the one that the same arithmetic gives here; then both are left as they were or meaningless.
[[nodiscard]] Failure read_check(const redisReply& reply, Limits limits, Check& check, std::int64_t trusted_lead = 0);

}  // namespace sluice::store::redis
