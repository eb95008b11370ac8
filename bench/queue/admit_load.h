// POST /v1/admit over keep-alive connections, one request in flight on each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "queue/bare.h"

namespace sluice::bench {

/// Sends requests until `count` were answered by 202, and tells of these alone. Throws std::runtime_error when an
/// answer is neither 202 nor 200.
[[nodiscard]] Loop admit_over_http(std::uint16_t port, std::size_t count, std::size_t connections);

}  // namespace sluice::bench
