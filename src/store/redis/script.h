// The script that judges checks inside the server.
#pragma once

#include <string>
#include <string_view>

namespace sluice::store::redis {

/// A script's text and its name at the server: the SHA-1 of the text, 40 hexadecimal digits.
struct Script {
  std::string text;
  std::string sha1;
};

/// lua/check.lua with the algorithms and a clock before it. Tests give another clock than the server's.
[[nodiscard]] Script make_check_script(std::string_view clock);
/// The same on the server's clock; made once.
[[nodiscard]] const Script& check_script();

}  // namespace sluice::store::redis
