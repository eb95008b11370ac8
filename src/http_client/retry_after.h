// How long a server asks to be left alone.
#pragma once

#include <chrono>
#include <string_view>

namespace sluice::http_client {

/// The value of a Retry-After (RFC 9110, 10.2.3): whole seconds, or a date in one of HTTP's three forms, against `now`.
/// 0 to `most`; 0: that time has come, or the value cannot be read.
[[nodiscard]] std::chrono::seconds read_retry_after(std::string_view field, std::chrono::system_clock::time_point now,
                                                    std::chrono::seconds most);

}  // namespace sluice::http_client
