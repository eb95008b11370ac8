// The answers to POST /v1/refund, /v1/settle, /v1/penalize and /v1/reset: see docs/http-api.md.
#pragma once

#include <string>

#include "limiter/verb_call.h"

namespace sluice::http {

/// Appends the answer to one request. Precondition: answer.problem is none.
void encode_verb(const limiter::VerbAnswer& answer, std::string& out);

}  // namespace sluice::http
