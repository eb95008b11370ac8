// The commands of a RESP listener, as COMMAND tells them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::resp {

struct CommandInfo {
  std::string_view name;
  int arity;  ///< with the name; below 0: at least that many
  bool has_key;
};

inline constexpr std::array<CommandInfo, 15> kCommandTable = {{
    {"cl.throttle", -5, true},
    {"throttle", -5, true},
    {"gcra", -5, true},
    {"peek", 5, true},
    {"reset", -1, false},
    {"sluice", -5, false},
    {"ping", -1, false},
    {"echo", 2, false},
    {"quit", -1, false},
    {"hello", -1, false},
    {"auth", -2, false},
    {"select", 2, false},
    {"client", -2, false},
    {"command", -1, false},
    {"info", -1, false},
}};

}  // namespace sluice::resp
