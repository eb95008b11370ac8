// Sluice's own JSON, POST /v1/check: see docs/http-api.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "front/http/json_reader.h"
#include "front/http/request_batch.h"
#include "limiter/call.h"

namespace sluice::http {

/// What is asked for, and so which members a request has: see docs/http-api.md.
enum class Form : std::uint8_t { check, reserve, refund, settle, penalize, reset, ban, release, commit, cancel };

/// Decodes one request or an array of them (`is_array`) into `batch`; those that are no checks into batch.verbs(), too.
/// False: `fault` tells what and where. Nothing is
/// guessed: a wrong type, an unknown or repeated name, a number out of range are all faults.
[[nodiscard]] bool decode_form(std::string_view text, Form form, RequestBatch& batch, bool& is_array,
                               DecodeFault& fault);
[[nodiscard]] inline bool decode_check(std::string_view text, RequestBatch& batch, bool& is_array, DecodeFault& fault) {
  return decode_form(text, Form::check, batch, is_array, fault);
}

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

/// Appends the answer to one request. Precondition: answer.problem is none.
void encode_check(const limiter::Answer& answer, std::string& out);

/// Appends a denial as a problem document (RFC 9457) that holds all of the usual answer, too.
void encode_check_problem(const limiter::Answer& answer, unsigned status, std::string& out);

}  // namespace sluice::http
