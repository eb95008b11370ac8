// What an HTTP client is told about its limits: status, header fields, body. For any framework.
#pragma once

#include <array>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sluice/decision.h"
#include "sluice/internal/export.h"
#include "sluice/limit.h"
#include "sluice/limiter.h"

namespace sluice {

/// A field of an answer.
struct HttpHeader {
  std::string_view name;  ///< a literal
  std::string value;      ///< printable ASCII
};

/// The fields of one answer. Used again, values keep their capacity. Not thread-safe.
class HttpHeaders {
 public:
  /// All of them, in the order in which they were added.
  [[nodiscard]] std::span<const HttpHeader> fields() const { return {fields_.data(), size_}; }
  /// Removes all.
  void clear() { size_ = 0; }
  /// An empty value to append to; `name` must be a literal. Precondition: fewer than six fields.
  std::string& add(std::string_view name) {
    assert(size_ < fields_.size());
    HttpHeader& field = fields_[size_++];
    field.name = name;
    field.value.clear();
    return field.value;
  }

 private:
  std::array<HttpHeader, 6> fields_;
  std::size_t size_ = 0;
};

/// What is told, and by which numbers.
struct HttpAnswerOptions {
  bool retry_after = true;             ///< Retry-After, on denials
  bool rate_limit = true;              ///< RateLimit and RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers-11)
  bool x_rate_limit = true;            ///< X-RateLimit-Limit, -Remaining, -Reset (seconds from now)
  bool headers_on_allowed = true;      ///< allowed answers carry the rate limit fields, too
  unsigned deny_status = 429;          ///< denied by a limit
  unsigned unauthorized_status = 401;  ///< an identity that the keys need is absent or cannot be verified
  unsigned unavailable_status = 503;   ///< denied as the store failed, or without a decision
};

/// What to answer. Used again, its texts keep their capacity.
struct HttpAnswer {
  /// Why a request is denied.
  enum class Reason : std::uint8_t {
    none,          ///< it is not
    over_limit,    ///< by a limit
    unauthorized,  ///< an identity that the keys need is absent or cannot be verified, or the host is malformed (400)
    unavailable,   ///< the store failed and the limit says deny, or there was no decision (answer.problem says why)
    invalid_keys,  ///< the program's keys are none: a mistake of its own
    waiting        ///< not denied, but stored: it is worked off later (sluice/http_queues.h)
  };
  bool allowed = true;           ///< the request may go on, and `headers` belong into its answer
  Reason reason = Reason::none;  ///< of a denial
  unsigned status = 200;         ///< of a denial, or of a request that waits
  /// Let in, but only after so long: the limit is a leaky bucket whose policy says `delay: hold`. 0: at once. Whoever
  /// asked has to wait for it; adapters do.
  std::chrono::nanoseconds hold{0};
  std::string message;       ///< of a denial, in words: "rate limit exceeded", or what the limit's `message` says
  HttpHeaders headers;       ///< of the answer, whichever it is
  std::string content_type;  ///< of `body`
  std::string body;          ///< of a denial: JSON, a problem document (RFC 9457), or what the limit's `body` says
  LimiterAnswer answer;      ///< how it came about
};

/// The same for a decision of one of the library's limiters (TokenBucket, Keyed<…>), made by the numbers `limit`.
/// `name` stands in the RateLimit fields; `accept`: the request's Accept field. Thread-safe; costs about a microsecond.
[[nodiscard]] SLUICE_API HttpAnswer http_answer(const Decision& decision, const Limit& limit, std::string_view name,
                                                std::string_view accept = {}, const HttpAnswerOptions& options = {});

}  // namespace sluice
