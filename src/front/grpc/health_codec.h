// grpc.health.v1 on the wire.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::front::grpc {

/// The service named by a HealthCheckRequest, a view into `message`; nothing when it is malformed.
[[nodiscard]] std::optional<std::string_view> decode_health_request(std::string_view message);
/// Does this server speak for `service`? "" (the server as a whole), "ratelimit" (envoyproxy/ratelimit's name) and the
/// full names of the services of limits.
[[nodiscard]] bool is_health_service(std::string_view service);
/// Appends a HealthCheckResponse: SERVING or NOT_SERVING.
void encode_health_response(bool serving, std::string& out);
/// Appends one that says SERVICE_UNKNOWN.
void encode_unknown_service(std::string& out);

}  // namespace sluice::front::grpc
