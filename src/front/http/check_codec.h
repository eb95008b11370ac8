// Sluice's own JSON, POST /v1/check: see docs/http-api.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "front/http/request_batch.h"
#include "limiter/call.h"

namespace sluice::http {

/// Decodes one request or an array of them (`is_array`) into `batch`. False: `fault` tells what and where. Nothing is
/// guessed: a wrong type, an unknown or repeated name, a number out of range are all faults.
[[nodiscard]] bool decode_check(std::string_view text, RequestBatch& batch, bool& is_array, DecodeFault& fault);

/// The same of requests for a verb, into batch.verbs(), too. Each verb has the fields that it needs: see
/// docs/http-api.md.
[[nodiscard]] bool decode_verb(std::string_view text, limiter::CounterVerb::Kind kind, RequestBatch& batch,
                               bool& is_array, DecodeFault& fault);

/// Appends the answer to one request. Precondition: answer.problem is none.
void encode_check(const limiter::Answer& answer, std::string& out);

/// Appends a denial as a problem document (RFC 9457) that holds all of the usual answer, too.
void encode_check_problem(const limiter::Answer& answer, unsigned status, std::string& out);

}  // namespace sluice::http
