// The PROXY protocol, versions 1 and 2: how a balancer that passes connections on tells where one came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "identity/ip_address.h"

namespace sluice::identity {

/// Longest header taken. Version 1 has at most 107 bytes; version 2 may carry extras (TLVs), of which this leaves room
/// for more than any balancer sends.
inline constexpr std::size_t kMaxProxyHeader = 4096;

/// What stands at the beginning of a connection.
struct ProxyHeader {
  enum class State : std::uint8_t {
    incomplete,  ///< all bytes so far belong to the header, and more of it follow
    complete,    ///< the header is the first `size` bytes
    malformed    ///< no such header: the connection cannot be served
  };
  State state = State::incomplete;
  bool is_too_long = false;  ///< malformed: it announces more than kMaxProxyHeader
  std::size_t size = 0;
  /// Nothing where the balancer itself asks (LOCAL, as its health checks do) or does not know (UNKNOWN): then the
  /// connection's own address holds.
  std::optional<IpAddress> client;
};

/// Reads the header at the front of `bytes`, in either version. Pure; allocates nothing.
[[nodiscard]] ProxyHeader read_proxy_header(std::string_view bytes);

}  // namespace sluice::identity
