// Pieces of JSON text, appended to a string.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::http {

/// `text` (UTF-8) in double quotes, escaped.
void append_json_string(std::string& out, std::string_view text);

void append_unsigned(std::string& out, std::uint64_t value);

/// Seconds as an exact decimal number without an exponent and without needless zeros: 3, 0.1, 0.000000001. `time` ≥ 0.
void append_seconds(std::string& out, std::chrono::nanoseconds time);

}  // namespace sluice::http
