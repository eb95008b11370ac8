#include "front/grpc/status.h"

namespace sluice::front::grpc {

std::string_view code_text(StatusCode code) {
  switch (code) {
    case StatusCode::ok:
      return "0";
    case StatusCode::invalid_argument:
      return "3";
    case StatusCode::deadline_exceeded:
      return "4";
    case StatusCode::not_found:
      return "5";
    case StatusCode::resource_exhausted:
      return "8";
    case StatusCode::unimplemented:
      return "12";
    case StatusCode::internal:
      return "13";
    case StatusCode::unavailable:
      return "14";
    case StatusCode::unauthenticated:
      return "16";
  }
  return "2";
}

void append_percent_encoded(std::string_view message, std::string& out) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7E && c != '%') {
      out += c;
    } else {
      out += '%';
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    }
  }
}

}  // namespace sluice::front::grpc
