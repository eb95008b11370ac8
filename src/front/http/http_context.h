// What an HTTP listener is told by its owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "front/headers.h"
#include "metrics/metrics.h"

namespace sluice::queue {
class Desk;
}

namespace sluice::http {

/// `service`: decisions. `admin`: what an operator looks at. Both answer /healthcheck and /metrics.
enum class Role : std::uint8_t { service, admin };

/// Defaults are what the daemon uses. Meanings and bounds: docs/http-api.md.
struct HttpOptions {
  front::HeaderOptions headers;
  bool headers_on_allowed = true;       ///< allowed answers carry the rate limit fields, too
  unsigned deny_status = 429;           ///< 400 … 599; of a denial on /v1/check
  unsigned store_failure_status = 503;  ///< 400 … 599; denied because the store failed, on /v1/check and /json

  std::chrono::nanoseconds max_hold = std::chrono::seconds(10);  ///< longest that an answer waits for its slot

  std::size_t max_head = std::size_t{64} * 1024;  ///< bytes of request line and header fields
  std::size_t max_fields = 100;                   ///< header fields of one request
  std::size_t max_body = std::size_t{64} * 1024;  ///< bytes of a body, decoded
  std::size_t max_unsent =
      std::size_t{64} * 1024;  ///< bytes of answers waiting for a slow reader before its requests wait, too

  std::chrono::nanoseconds head_timeout = std::chrono::seconds(10);  ///< first byte of a request to the end of its head
  std::chrono::nanoseconds body_timeout = std::chrono::seconds(10);  ///< end of head to end of body
  std::chrono::nanoseconds idle_timeout = std::chrono::seconds(75);  ///< between requests
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(10);  ///< without the peer taking a byte of the answer
  std::chrono::nanoseconds linger_timeout =
      std::chrono::seconds(2);  ///< reading on after an answer that ends the connection
};

/// One listener; outlives its sessions. Read by all workers, changed by none.
struct HttpContext {
  Role role = Role::service;
  HttpOptions options;
  const metrics::Registry* registry = nullptr;  ///< never null while sessions run
  queue::Desk* desk = nullptr;                  ///< where requests beyond a limit may wait; null: nowhere
};

}  // namespace sluice::http
