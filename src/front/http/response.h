// HTTP/1.1 response heads as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "front/headers.h"

namespace sluice::http {

/// "Sun, 06 Nov 1994 08:49:37 GMT", formatted once a second. Not thread-safe.
class DateCache {
 public:
  /// `utc`: nanoseconds since 1970. Valid until the next call.
  [[nodiscard]] std::string_view text(std::int64_t utc);

 private:
  std::int64_t second_ = -1;
  std::string text_;
};

/// What to say about the connection: nothing is said where the protocol's default holds.
enum class ConnectionField : std::uint8_t { none, close, keep_alive };

struct ResponseHead {
  unsigned status = 200;
  std::string_view content_type;
  std::size_t content_length = 0;
  std::string_view date;
  std::string_view allow;  ///< of a 405
  ConnectionField connection = ConnectionField::none;
  bool no_store = false;  ///< the answer to a GET that must not be cached
};

[[nodiscard]] std::string_view reason_phrase(unsigned status);

/// Appends the head, the empty line after it included. Field values must hold no line breaks.
void append_head(const ResponseHead& head, std::span<const front::Header> fields, std::string& out);

}  // namespace sluice::http
