// Answers the operations of a trace by the script on a real server, at the trace's own times.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/charge.h"
#include "store/redis/check_call.h"
#include "store/redis/redis_limit.h"
#include "store/redis/script.h"
#include "store/store.h"
#include "tests/integration/redis_server.h"
#include "tests/model/trace.h"

namespace sluice::testing {

/// A clock for scripts that takes the time from the last argument, lets no key expire within a test, and trusts any
/// stored time, as the reference model does.
inline constexpr std::string_view kTracedClock = R"lua(
local now = tonumber(ARGV[#ARGV])
local shortest_expiry = 3162240000000
local trusted_lead = 9007199254740992
)lua";

class RedisEngine {
 public:
  explicit RedisEngine(RedisServer& server, store::redis::ScriptStyle style = store::redis::ScriptStyle::fast);
  /// The answer as the reference model writes it; empty for `limit`. Throws std::exception on a malformed operation
  /// and on an answer that is a failure.
  [[nodiscard]] boost::json::object apply(const model::Operation& operation);

 private:
  struct Held {
    store::CountedLimit counted;
    std::shared_ptr<const store::redis::RedisLimit> limit;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> leases;  ///< id and cost; the model calls the first 1
  };
  using Name = std::pair<std::string, std::string>;

  [[nodiscard]] Held& held(const std::string& limit, const std::string& key);
  [[nodiscard]] boost::json::object check(const std::vector<model::TracedCharge>& traced, std::int64_t now,
                                          store::redis::CallKind kind);
  [[nodiscard]] boost::json::object verb(const model::Operation& operation);
  /// Throws when the answer is a failure.
  void ask(store::Check& check, store::redis::Limits limits, std::int64_t now, store::redis::CallKind kind);

  RedisServer& server_;
  const store::redis::Script script_;
  std::map<std::string, Limit> limits_;
  std::map<Name, Held> held_;
  std::int64_t latest_ = 0;  ///< the caller's clock, which does not step back where the trace's does
};

}  // namespace sluice::testing
