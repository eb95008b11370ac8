// What an HTTP listener is told by its owner.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "front/headers.h"
#include "identity/guard.h"
#include "metrics/metrics.h"
#include "policy/reload_state.h"
#include "tracing/tracer.h"

namespace sluice::queue {
class Desk;
}

namespace sluice::policy {
class Policy;
}

namespace sluice::http {

/// Pages beside a listener's own, or in their place. Thread-safe.
class ExtraPages {
 public:
  [[nodiscard]] virtual bool has(std::string_view path) const = 0;
  /// Replaces `body` by a page that there is; returns its content type. `policy`: the one in force, or null.
  [[nodiscard]] virtual std::string_view write(std::string_view path, const policy::Policy* policy,
                                               std::string& body) const = 0;

 protected:
  ~ExtraPages() = default;
};

/// How /json and /healthcheck answer in the place of envoyproxy/ratelimit.
struct EnvoyWays {
  /// What /healthcheck needs for its 200 beside a store that has answered once. Any thread; never null.
  std::function<bool(const policy::Policy* policy)> is_healthy;
};

/// `service`: decisions. `admin`: what an operator looks at. Both answer /healthcheck and /metrics.
enum class Role : std::uint8_t { service, admin };

/// Defaults are what the daemon uses. Meanings and bounds: docs/http-api.md.
struct HttpOptions {
  front::HeaderOptions headers;
  bool headers_on_allowed = true;       ///< allowed answers carry the rate limit fields, too
  unsigned deny_status = 429;           ///< 400 … 599; of a denial on /v1/check
  unsigned store_failure_status = 503;  ///< 400 … 599; denied because the store failed, on /v1/check and /json

  tracing::Tracer* tracer = nullptr;  ///< where spans of decisions go; null: nowhere

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
  const metrics::Registry* registry = nullptr;   ///< never null while sessions run
  const policy::ReloadState* reloads = nullptr;  ///< what /healthcheck tells of them; null: nothing
  /// What is wrong with the store, a line each; told to operators alone. Null: nothing can be. Called on any thread.
  // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::function<std::string()> store_trouble{};
  queue::Desk* desk = nullptr;        ///< where requests beyond a limit may wait; null: nowhere
  const ExtraPages* pages = nullptr;  ///< null: none
  // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::optional<EnvoyWays> envoy{};   ///< set: errors and health as envoyproxy/ratelimit tells them
  bool needs_policy = true;           ///< /healthcheck: for 200
  unsigned throttle_deny_status = 0;  ///< of a denial on POST /throttle; 0: there is no such path
  identity::Guard guard{};            ///< of admin pages, figures and verbs that change counters
};

}  // namespace sluice::http
