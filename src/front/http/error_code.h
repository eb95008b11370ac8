// The codes of errors: all that "error" can say. docs/http-api.md has each in its table.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::http {

inline constexpr auto kErrorCodes = std::to_array<std::string_view>(
    {"bad_request",     "invalid_json",      "invalid_request", "length_required", "method_not_allowed",
     "needs_lease",     "no_policy",         "no_requests",     "no_such_ticket",  "not_enforced",
     "not_found",       "queue_down",        "queue_full",      "queue_too_old",   "queue_too_slow",
     "request_timeout", "store_unavailable", "tickets_down",    "too_late",        "unauthorized"});

/// One of them; another does not compile. A value.
class ErrorCode {
 public:
  consteval ErrorCode(const char* text) : text_(text) {  // NOLINT(google-explicit-constructor): a literal is one
    if (std::ranges::find(kErrorCodes, text_) == kErrorCodes.end()) throw "not in the table of codes";
  }
  [[nodiscard]] constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace sluice::http
