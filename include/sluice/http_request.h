// An HTTP request as far as limits may depend on it: views, so that any framework can show its own.
#pragma once

#include <span>
#include <string_view>

namespace sluice {

/// One header field, as it came: names in any case, values without space at their ends.
struct HeaderField {
  std::string_view name;   ///< in any case
  std::string_view value;  ///< any bytes
};

/// HttpRequest::peer of who is connected by a Unix socket, where there are no addresses: `unix` in the policy's
/// `trusted_proxies` makes it a trusted proxy.
inline constexpr std::string_view kUnixPeer = "unix:";

/// What a framework knows of a request. All are views, which must live as long as the call that they are given to. What
/// is not known stays empty: then what depends on it finds nothing.
struct HttpRequest {
  std::string_view method;  ///< "GET"
  std::string_view target;  ///< path and query as they were sent, "/articles/7?page=2"
  std::string_view host;    ///< the Host field's value, or HTTP/2's :authority
  std::string_view scheme;  ///< "https"
  std::string_view peer;    ///< address of who is connected, in any notation, with or without a port; or kUnixPeer
  std::string_view route;   ///< the pattern that the framework has found, "/articles/{id}"; empty: it has none
  // NOLINTNEXTLINE(readability-redundant-member-init): without it, gcc warns of designated initializers without it
  std::span<const HeaderField> headers{};  ///< all of them, in their order
};

}  // namespace sluice
