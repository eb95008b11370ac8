#include "config/address.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace sluice::config {
namespace {

Error not_an_address(std::string_view text) {
  return Error{"expected HOST:PORT, [IPV6]:PORT, :PORT, unix:PATH or off, found '" + std::string(text) + "'"};
}

bool is_name(std::string_view host) {
  return std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

bool is_v6(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '.' ||
           c == '%';
  });
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  Address address;
  if (text == "off") {
    address.off = true;
    return address;
  }
  if (constexpr std::string_view unix_scheme = "unix:"; text.starts_with(unix_scheme)) {
    constexpr std::size_t longest = 107;  // of a socket's name
    address.socket = text.substr(unix_scheme.size());
    if (address.socket.empty() || address.socket.size() > longest) {
      return Error{"expected unix: and a path of 1 to 107 bytes, found '" + std::string(text) + "'"};
    }
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return not_an_address(text);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return not_an_address(text);
    host = host.substr(1, host.size() - 2);
    if (!is_v6(host)) return not_an_address(text);
  } else if (!is_name(host)) {
    return not_an_address(text);
  }
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error == std::errc::result_out_of_range) {
    return Error{"expected a port of 0 to 65535, found '" + std::string(port) + "'"};
  }
  if (error != std::errc{} || end != port.data() + port.size()) return not_an_address(text);
  address.host = host;
  return address;
}

std::string to_text(const Address& address) {
  if (address.off) return "off";
  if (!address.socket.empty()) return "unix:" + address.socket;
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace sluice::config
