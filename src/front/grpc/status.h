// gRPC status codes and how a status message is put on the wire.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::front::grpc {

/// The codes this server answers, with gRPC's numbers.
enum class StatusCode : std::uint8_t {
  ok = 0,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  resource_exhausted = 8,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  unauthenticated = 16,
};

/// The code in decimal, as the value of grpc-status. Static storage.
[[nodiscard]] std::string_view code_text(StatusCode code);

/// Appends `message` as the value of grpc-message: printable ASCII as it is, anything else and '%' percent-encoded.
void append_percent_encoded(std::string_view message, std::string& out);

}  // namespace sluice::front::grpc
