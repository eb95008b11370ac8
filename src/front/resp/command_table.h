// The commands of a RESP listener, as COMMAND tells them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace sluice::resp {

struct CommandInfo {
  std::string_view name;
  int arity;  ///< with the name; below 0: at least that many
  bool has_key;
  std::string_view arguments;  ///< as COMMAND DOCS tells them; those in brackets may be left out
  std::string_view summary;

  /// May it have that many words, its name among them?
  [[nodiscard]] constexpr bool takes(std::size_t words) const {
    const auto count = static_cast<std::int64_t>(words);
    return arity < 0 ? count >= -arity : count == arity;
  }
};

inline constexpr std::array<CommandInfo, 19> kCommandTable = {{
    {"cl.throttle", -5, true, "key max_burst count period [quantity]", "Takes tokens from a bucket, as redis-cell"},
    {"throttle", -5, true, "key max_burst count period [quantity]", "Takes tokens from a bucket, as throttlecrab"},
    {"gcra", -5, true, "key max_burst tokens period [TOKENS n]", "Takes tokens; the period may have a fraction"},
    {"peek", 5, true, "key max_burst count period", "Looks at a bucket and takes nothing"},
    {"reset", -1, false, "[key]", "Forgets a key; without one, the connection starts anew"},
    {"sluice", -3, false, "verb domain argument", "Asks the limits of the policy, and changes their counters"},
    {"ping", -1, false, "[message]", "Answers PONG, or the message"},
    {"echo", 2, false, "message", "Answers the message"},
    {"quit", -1, false, "", "Ends the connection"},
    {"hello", -1, false, "[protover] [AUTH user password] [SETNAME name]", "Chooses RESP2 or RESP3"},
    {"auth", -2, false, "[user] password", "Gives the password, or a token"},
    {"select", 2, false, "index", "There is database 0 alone"},
    {"client", -2, false, "subcommand [argument]", "Names the connection"},
    {"command", -1, false, "[subcommand] [name]", "Tells which commands there are"},
    {"info", -1, false, "[section]", "Tells about the server"},
    {"multi", 1, false, "", "Keeps the commands that follow for EXEC"},
    {"exec", 1, false, "", "Carries out what was kept since MULTI"},
    {"discard", 1, false, "", "Drops what was kept since MULTI"},
    {"unwatch", 1, false, "", "Answers OK: nothing is ever watched"},
}};

/// Null: there is no such command.
inline const CommandInfo* find_command(std::string_view name) {
  const auto found =
      std::ranges::find_if(kCommandTable, [&](const CommandInfo& one) { return equal_ignoring_case(name, one.name); });
  return found == kCommandTable.end() ? nullptr : &*found;
}

/// An error reply.
inline std::string wrong_arity(std::string_view command) {
  return "ERR wrong number of arguments for '" + std::string(command) + "' command";
}

}  // namespace sluice::resp
