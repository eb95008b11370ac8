// Answers the operations of a trace by the script on a real server, at the trace's own times.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "store/redis/redis_limit.h"
#include "store/redis/script.h"
#include "tests/integration/redis_server.h"
#include "tests/integration/store_engine.h"

namespace sluice::testing {

/// A clock for scripts that takes the time from the last argument, lets no key expire within a test, and trusts any
/// stored time, as the reference model does.
inline constexpr std::string_view kTracedClock = R"lua(
local now = tonumber(ARGV[#ARGV])
local shortest_expiry = 3162240000000
local trusted_lead = 9007199254740992
)lua";

/// Times in µs.
class RedisEngine final : public StoreEngine {
 public:
  explicit RedisEngine(RedisServer& server, store::redis::ScriptStyle style = store::redis::ScriptStyle::fast);

 private:
  void ask(store::Check& check, std::int64_t now) override;
  void begin() override {
    latest_ = 0;
    compiled_.clear();
  }

  RedisServer& server_;
  const store::redis::Script script_;
  std::vector<std::shared_ptr<const store::redis::RedisLimit>> compiled_;  ///< of the limits since begin()
  std::int64_t latest_ = 0;  ///< the caller's clock, which does not step back where the trace's does
};

}  // namespace sluice::testing
