// Where a listener listens, as text and as parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::config {

/// An address to listen on, or off. `host` is an IP address or a name, without brackets; empty: all interfaces. Port 0:
/// any free one.
struct Address {
  bool off = false;
  std::string host;
  std::uint16_t port = 0;
  std::string socket;  ///< not empty: this path, in place of host and port
  friend bool operator==(const Address&, const Address&) = default;
};

/// Reads host:port, [v6]:port, :port, unix:PATH or off. The error is a sentence without a place.
[[nodiscard]] Result<Address> parse_address(std::string_view text);
/// What parse_address reads back as the same.
[[nodiscard]] std::string to_text(const Address& address);

}  // namespace sluice::config
