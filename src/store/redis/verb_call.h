// A verb on one key as a call of the script, and the script's answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "store/failure.h"
#include "store/redis/redis_limit.h"
#include "store/redis/reply_reader.h"

namespace sluice::store::redis {

/// What is done to a key beside checks (docs/semantics.md section 5). `set_limit` is a check of cost 0 with the new
/// numbers.
struct Verb {
  enum class Kind : std::uint8_t { refund = 2, overdraw = 3, penalize = 4, reset = 5, release = 6 };

  /// Gives tokens back; `at`: the time of their charge in µs, when it is known.
  [[nodiscard]] static Verb refund(std::uint64_t cost, std::optional<std::int64_t> at = std::nullopt) {
    return {.kind = Kind::refund, .amount = cost, .at = at};
  }
  /// Charges or gives back the difference.
  [[nodiscard]] static Verb settle(std::uint64_t reserved, std::uint64_t actual,
                                   std::optional<std::int64_t> at = std::nullopt) {
    if (actual <= reserved) return refund(reserved - actual, at);
    return {.kind = Kind::overdraw, .amount = actual - reserved};
  }
  [[nodiscard]] static Verb penalize(std::uint64_t cost) { return {.kind = Kind::penalize, .amount = cost}; }
  [[nodiscard]] static Verb reset() { return {.kind = Kind::reset}; }
  /// Frees a lease of a concurrency limit: its id, and the cost that it weighs.
  [[nodiscard]] static Verb release(std::uint64_t lease, std::uint64_t cost) {
    return {.kind = Kind::release, .amount = lease, .at = static_cast<std::int64_t>(cost)};
  }

  Kind kind = Kind::refund;
  std::uint64_t amount = 0;  ///< tokens, 0 … kMaxTokens; release: the lease
  std::optional<std::int64_t> at = std::nullopt;
};

struct VerbAnswer {
  Failure failure = Failure::none;  ///< anything else: the other fields mean nothing
  bool done = true;                 ///< release: false, and nothing changed, when the lease was not held
  Decision decision;                ///< what a check of cost 0 says then
};

inline constexpr std::size_t kWordsOfVerb = 4;

/// Appends what follows the script's name in EVALSHA or EVAL, kWordsOfVerb words. Refund, overdraw and penalize have no
/// meaning for concurrency, release for nothing else: then the script would do harm. `caller`: see
/// RedisLimit::append_argument.
void append_verb(std::string& out, std::string_view key_name, const RedisLimit& limit, const Verb& verb, Time caller);

/// Reads the script's answer. `trusted_lead`: as in the clock prelude, µs.
[[nodiscard]] VerbAnswer read_verb(const redisReply& reply, const RedisLimit& limit, std::int64_t trusted_lead = 0);

}  // namespace sluice::store::redis
