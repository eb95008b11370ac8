// Reads HTTP/1.x requests out of bytes, one after the other. Knows no socket, no route and no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "front/http/http_context.h"
#include "front/http/kept_head.h"
#include "tracing/trace_context.h"

namespace sluice::http {

enum class Method : std::uint8_t { get, head, post, del, other };

/// What counts of a request's head.
struct RequestHead {
  Method method = Method::other;
  std::string path;  ///< without scheme, authority and query; as it was sent
  bool http_1_1 = true;
  bool keep_alive = true;
  bool has_body = false;    ///< Content-Length above 0 or chunked
  bool has_length = false;  ///< Content-Length or chunked was given
  bool expects_continue = false;
  bool wants_problem = false;  ///< prefers application/problem+json to application/json
  std::string bearer;          ///< the token of Authorization: Bearer; empty: none
};

/// Why a request cannot be read on; the connection cannot go on, either.
struct RequestFault {
  unsigned status = 400;
  std::string_view message;
};

/// Strict where laxness lets requests be smuggled: one Content-Length, no Transfer-Encoding but `chunked` alone and
/// never both, no white space before a colon, one Host in HTTP/1.1. The same bytes give the same events however they
/// are cut into pieces. Allocates once per connection. Not thread-safe.
class RequestReader {
 public:
  enum class Event : std::uint8_t {
    need_more,  ///< keep what is left and call again with more after it
    head,       ///< head() is complete; read() goes on with the body
    request,    ///< body() is complete; next() must be called before read()
    fault,      ///< fault() tells; nothing more can be read
  };
  /// What of the present request has arrived.
  enum class Phase : std::uint8_t { idle, head, body, done };

  explicit RequestReader(const HttpOptions& options);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  /// Removes from `bytes` what was read.
  [[nodiscard]] Event read(std::string_view& bytes);
  /// Makes ready for the request that follows.
  void next();

  [[nodiscard]] const RequestHead& head() const;
  /// The whole head, where its path decides about the request of somebody else (see auth_form).
  [[nodiscard]] KeptHead& kept_head();
  /// What it tells of its trace; nothing without a tracer in the options.
  [[nodiscard]] const tracing::TraceFields& trace() const;
  /// A view into the bytes last given to read(), or into the reader.
  [[nodiscard]] std::string_view body() const;
  [[nodiscard]] const RequestFault& fault() const;
  [[nodiscard]] Phase phase() const;

 private:
  class Parser;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::http
