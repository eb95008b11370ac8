// The value of the grpc-timeout header.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace sluice::front::grpc {

/// One to eight digits and a unit (H M S m u n), as gRPC over HTTP/2 has it; nothing when malformed. A time that does
/// not fit is cut to the largest that does (292 years).
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_timeout(std::string_view text);

}  // namespace sluice::front::grpc
