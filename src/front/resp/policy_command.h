// Commands on the limits of the policy: SLUICE CHECK, PEEK, REFUND and so on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "limiter/counter_verb.h"
#include "limiter/hold_request.h"
#include "policy/request.h"

namespace sluice::resp {

/// One such command. Views into its arguments.
struct PolicyCommand {
  /// Empty: a check, or a peek (Request::peek).
  std::optional<limiter::CounterVerb> verb;
  Request request;  ///< its descriptors are `descriptors`
  std::vector<Descriptor> descriptors;
  std::vector<Entry> entries;  ///< of all descriptors, one after the other
  /// Of a lease or reservation that comes back, in the place of those; null: the command has descriptors.
  std::unique_ptr<limiter::HoldRequest> hold;
};

/// Is there such a verb, and may it have that many words? The error is an error reply without "ERR".
[[nodiscard]] std::optional<Error> refuse_policy_words(std::span<const std::string_view> arguments);

/// Does it change counters otherwise than by a decision? False of what is no subcommand.
[[nodiscard]] bool changes_counters(std::span<const std::string_view> arguments);

/// Reads
///   SLUICE CHECK|PEEK|ACQUIRE|REFUND|PENALIZE domain cost key value [key value …] [| key value …] …
///   SLUICE RESERVE domain cost ttl-milliseconds key value …
///   SLUICE BAN domain milliseconds key value …
///   SLUICE SETTLE domain reserved actual key value …
///   SLUICE RESET domain key value …
///   SLUICE RELEASE lease
///   SLUICE COMMIT reservation actual
///   SLUICE CANCEL reservation
/// The error is an error reply without "ERR". `command` may be used again; it must not be moved while it is in use.
[[nodiscard]] std::optional<Error> read_policy_command(std::span<const std::string_view> arguments,
                                                       PolicyCommand& command);

}  // namespace sluice::resp
