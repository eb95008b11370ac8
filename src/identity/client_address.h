// Who sent a request that has come through proxies: counted from the right, where our own proxies have written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "identity/ip_address.h"

namespace sluice::identity {

/// How a proxy tells the address that it was asked from.
enum class AddressSyntax : std::uint8_t {
  list,       ///< X-Forwarded-For: addresses, separated by commas, each perhaps with a port
  forwarded,  ///< Forwarded: RFC 7239's for=…
  single      ///< X-Real-IP: one address
};

/// The client's address: the nearest that is none of our proxies'.
///
/// `peer` is who is connected; nothing: somebody trusted who has no address (by a Unix socket). While that is trusted,
/// it is believed who asked it: the rightmost of what the field has, and so on to the left. What somebody untrusted has
/// written is never looked at, so nobody can choose an address by it. The walk ends at what is no address, too
/// ("unknown", garbage): then it is the trusted one that has told so; nothing, if that one has none.
///
/// `lines` are the field's values in the order of the request; several lines are one list. Pure; allocates nothing; the
/// cost is that of the part looked at.
[[nodiscard]] std::optional<IpAddress> client_address(const std::optional<IpAddress>& peer,
                                                      std::span<const std::string_view> lines, AddressSyntax syntax,
                                                      std::span<const Network> trusted);

}  // namespace sluice::identity
