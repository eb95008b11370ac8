// Sluice's own JSON, POST /v1/check: see docs/http-api.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "front/http/json_reader.h"
#include "front/http/request_batch.h"
#include "limiter/call.h"

namespace sluice::http {

/// Decodes one request or an array of them (`is_array`) into `batch`. False: `fault` tells what and where. Nothing is
/// guessed: a wrong type, an unknown or repeated name, a number out of range are all faults.
[[nodiscard]] bool decode_check(std::string_view text, RequestBatch& batch, bool& is_array, DecodeFault& fault);

/// Reads members of a request that a check does not have.
class MoreMembers {
 public:
  [[nodiscard]] virtual bool has(std::string_view name) const = 0;
  /// All that a request may have, for a message.
  [[nodiscard]] virtual std::string_view told() const = 0;
  /// Reads the value of one. False: the reader has failed, or `what` tells the fault.
  [[nodiscard]] virtual bool read(std::string_view name, JsonReader& reader, std::string& what) = 0;

 protected:
  ~MoreMembers() = default;
};

/// The same of one request that has `more` members.
[[nodiscard]] bool decode_check_with(std::string_view text, MoreMembers& more, RequestBatch& batch, DecodeFault& fault);

/// The same of requests for a verb, into batch.verbs(), too. Each verb has the fields that it needs: see
/// docs/http-api.md.
[[nodiscard]] bool decode_verb(std::string_view text, limiter::CounterVerb::Kind kind, RequestBatch& batch,
                               bool& is_array, DecodeFault& fault);

/// Appends the answer to one request. Precondition: answer.problem is none.
void encode_check(const limiter::Answer& answer, std::string& out);

/// Appends a denial as a problem document (RFC 9457) that holds all of the usual answer, too.
void encode_check_problem(const limiter::Answer& answer, unsigned status, std::string& out);

}  // namespace sluice::http
