// The commands whose limit's numbers come with them: CL.THROTTLE, THROTTLE, GCRA, PEEK.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "front/resp/reply_writer.h"
#include "front/resp/throttle_limits.h"
#include "sluice/decision.h"

namespace sluice::resp {

/// Whose words, bounds and order of reply. The reply's five integers, in this order:
///   cell (CL.THROTTLE, PEEK), gcra – limited 0/1, limit, remaining, retry_after (-1: allowed, or never), reset_after;
///   throttlecrab (THROTTLE)         – allowed 1/0, limit, remaining, reset_after, retry_after (0: allowed, -1: never).
/// Times are whole seconds, rounded up: never 0 for a denial.
enum class Dialect : std::uint8_t { cell, throttlecrab, gcra };

/// What such a command asks.
struct Throttle {
  Dialect dialect = Dialect::cell;
  Bucket bucket;
  std::uint64_t cost = 1;   ///< 0 … store::kNeverFits; of a refund 0 … kMaxTokens
  bool gives_back = false;  ///< a negative quantity: `cost` tokens are given back, up to a full bucket
  std::string_view key;     ///< any bytes
};

/// Reads one of the four commands; `arguments` begins with its name, in any case of letters. The error is an error
/// reply without "ERR". Pure. Cost: that of reading five numbers.
///   CL.THROTTLE key max_burst count period [quantity]     burst max_burst + 1
///   PEEK key max_burst count period                       the same with quantity 0
///   THROTTLE key max_burst count period [quantity]        burst max_burst
///   GCRA key max_burst tokens period [TOKENS n]           burst max_burst + 1; seconds with a fraction
/// Bounds: docs/resp.md. A max_burst or quantity above 10^15 counts as that, or as more than can ever fit.
[[nodiscard]] Result<Throttle> read_throttle(std::span<const std::string_view> arguments);
/// Is it one of the four?
[[nodiscard]] bool is_throttle(std::string_view name);

/// The reply to one.
void write_decision(Dialect dialect, const Decision& decision, ReplyWriter& reply);

/// A piece of what somebody sent, quoted for a message: at most 32 bytes, printable.
[[nodiscard]] std::string quoted(std::string_view text);
/// A whole number of 64 bits with its sign, in decimal digits.
[[nodiscard]] Result<std::int64_t> read_integer(std::string_view text, std::string_view what);

}  // namespace sluice::resp
