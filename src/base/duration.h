// Durations as text: 20ms, 1.5s, 1m30s.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

/// Reads one or more numbers with a unit each: ns, us (µs), ms, s, m, h, d (24 h). Fractions are allowed as long as the
/// whole is exact in nanoseconds. Range: 0 … 292 years. No sign, no spaces, no bare number. The error is a sentence
/// without a place. Thread-safe.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back as the same: one number with the largest unit that divides it.
[[nodiscard]] std::string to_text(std::chrono::nanoseconds duration);

/// For people: three significant digits below a minute, else at most two units ("33.4ms", "45m 3s", "2d 1h"). Rounded
/// up, so that who waits for so long has waited long enough. Precondition: not negative.
[[nodiscard]] std::string to_rounded_text(std::chrono::nanoseconds duration);

}  // namespace sluice
