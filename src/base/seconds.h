// Seconds as a decimal number: 2.5.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

/// Reads digits, perhaps with a point and more of them, exactly: 0 … `most` seconds, at most some 292 years. No sign,
/// no exponent, and behind the first `decimals` (0 … 9) after the point nothing but zeros: what is finer is not cut off
/// but nothing. Thread-safe.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text, std::size_t decimals,
                                                                    std::int64_t most);

}  // namespace sluice
