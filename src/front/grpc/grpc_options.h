// What can be chosen about the gRPC front. The defaults are what `sluice serve` runs with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "front/headers.h"
#include "identity/guard.h"
#include "tracing/tracer.h"

namespace sluice::policy {
class Policy;
}

namespace sluice::front {

struct GrpcOptions {
  /// Fields sent as response_headers_to_add. Envoy makes X-RateLimit-* itself (enable_x_ratelimit_headers) but has no
  /// way to make Retry-After.
  HeaderOptions headers{.retry_after = true, .rate_limit = false, .x_rate_limit = false};

  /// What a health check needs beside a store that has answered once. Any thread; null: that a policy is loaded.
  std::function<bool(const policy::Policy* policy)> is_healthy;

  identity::Guard guard;  ///< of the methods that change counters otherwise than by a check

  tracing::Tracer* tracer = nullptr;  ///< where spans of decisions go; null: nowhere

  std::size_t max_message = std::size_t{64} * 1024;               ///< bytes of one request; larger: RESOURCE_EXHAUSTED
  std::uint32_t max_streams = 1000;                               ///< calls open at once on a connection
  std::size_t max_header_list = std::size_t{64} * 1024;           ///< of one request (RFC 9113 count); larger: 431
  std::size_t max_connection_headers = std::size_t{1024} * 1024;  ///< of one header block; larger: connection closed
  std::size_t max_buffered = std::size_t{1024} * 1024;            ///< request bytes a connection holds at once
  std::size_t max_waiting = std::size_t{256} * 1024;  ///< answer bytes the client's windows hold up; more: no new calls

  std::chrono::nanoseconds handshake_timeout = std::chrono::seconds(10);  ///< until the client's SETTINGS
  std::chrono::nanoseconds stream_timeout = std::chrono::seconds(30);     ///< from a call's start to its end
  std::chrono::nanoseconds write_timeout = std::chrono::seconds(30);      ///< output that does not move
  std::chrono::nanoseconds idle_timeout = std::chrono::minutes(10);       ///< without a call; then GOAWAY
  std::chrono::nanoseconds max_age = std::chrono::hours(24);              ///< of a connection; then GOAWAY
};

}  // namespace sluice::front
