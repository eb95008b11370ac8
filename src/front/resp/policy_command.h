// Commands on the limits of the policy: SLUICE CHECK, PEEK, REFUND, SETTLE, PENALIZE, RESET.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "limiter/counter_verb.h"
#include "policy/request.h"

namespace sluice::resp {

/// One such command. Views into its arguments.
struct PolicyCommand {
  /// Empty: a check, or a peek (Request::peek).
  std::optional<limiter::CounterVerb> verb;
  Request request;  ///< its descriptors are `descriptors`
  std::vector<Descriptor> descriptors;
  std::vector<Entry> entries;  ///< of all descriptors, one after the other
};

/// Reads
///   SLUICE CHECK|PEEK|REFUND|PENALIZE domain cost key value [key value …] [| key value …] …
///   SLUICE SETTLE domain reserved actual key value …
///   SLUICE RESET domain key value …
/// The error is an error reply without "ERR". `command` may be used again; it must not be moved while it is in use.
[[nodiscard]] std::optional<Error> read_policy_command(std::span<const std::string_view> arguments,
                                                       PolicyCommand& command);

}  // namespace sluice::resp
