// The script that judges checks inside the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::store::redis {

/// A script's text and its name at the server: the SHA-1 of the text, 40 hexadecimal digits.
struct Script {
  std::string text;
  std::string sha1;
};

/// A text with its name.
[[nodiscard]] Script script_of(std::string text);

/// Two texts that do the same. `fast`: keys are named KEYS[i] in loops. `literal`: each key argument of each command is
/// literally KEYS[1], KEYS[2], …, for servers that check scripts by their text; some µs slower a call, and a call has
/// at most kMostLiteralKeys keys.
enum class ScriptStyle : std::uint8_t { fast, literal };

inline constexpr std::size_t kMostLiteralKeys = 64;

/// lua/main.lua with the algorithms in their places, after a clock. Tests give another clock than the server's.
[[nodiscard]] Script make_check_script(std::string_view clock, ScriptStyle style = ScriptStyle::fast);
/// The same on the server's clock; made once.
[[nodiscard]] const Script& check_script(ScriptStyle style = ScriptStyle::fast);

}  // namespace sluice::store::redis
