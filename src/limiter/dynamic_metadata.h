// What answers tell about their request beside the verdict, as envoyproxy/ratelimit does (RESPONSE_DYNAMIC_METADATA).
#pragma once

#include <span>
#include <string>

#include "limiter/call.h"
#include "policy/request.h"

namespace sluice::limiter {

/// The request as a JSON object: its `domain`, `descriptors` and `hitsAddend`. Allocates. Cost: some µs.
[[nodiscard]] std::string described(const Request& request);

/// Puts the `metadata` of the limits that are not over into the object, as its `metadata`: objects with the same name
/// are merged, of other values the last stays.
void add_metadata(std::span<const Status> statuses, std::string& object);

}  // namespace sluice::limiter
