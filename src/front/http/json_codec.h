// proto3 JSON of Envoy's RateLimitRequest and RateLimitResponse: POST /json.
#pragma once

#include <string>
#include <string_view>

#include "front/headers.h"
#include "front/http/request_batch.h"
#include "limiter/call.h"

namespace sluice::http {

/// Decodes a RateLimitRequest into `batch` (one request). As proto3 JSON: lowerCamelCase and original names, integers
/// as numbers or strings, enumerations by name or number, null for the default; unknown or repeated fields are faults.
/// hitsAddend 0 counts as 1 for the request and looks without taking for a descriptor.
[[nodiscard]] bool decode_rate_limit_request(std::string_view text, RequestBatch& batch, DecodeFault& fault);

/// Appends a RateLimitResponse; fields at their default are left out. `headers`: what goes into responseHeadersToAdd.
/// Precondition: answer.problem is none.
void encode_rate_limit_response(const limiter::Answer& answer, const front::HeaderList& headers, std::string& out);

}  // namespace sluice::http
