#include "front/grpc/health_codec.h"

#include <protozero/pbf_reader.hpp>

namespace sluice::front::grpc {

std::optional<std::string_view> decode_health_request(std::string_view message) {
  std::string_view service;
  try {
    protozero::pbf_reader reader(message.data(), message.size());
    while (reader.next(1, protozero::pbf_wire_type::length_delimited)) {
      const auto view = reader.get_view();
      service = {view.data(), view.size()};
    }
  } catch (const protozero::exception&) {
    return std::nullopt;
  }
  return service;
}

bool is_health_service(std::string_view service) {
  return service.empty() || service == "ratelimit" || service == "envoy.service.ratelimit.v3.RateLimitService" ||
         service == "sluice.v1.Limiter";
}

void encode_unknown_service(std::string& out) {
  constexpr char status_field = 1 << 3;
  out += status_field;
  out += '\3';
}

void encode_health_response(bool serving, std::string& out) {
  constexpr char status_field = 1 << 3;
  out += status_field;
  out += static_cast<char>(serving ? 1 : 2);
}

}  // namespace sluice::front::grpc
