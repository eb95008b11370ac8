// Internet addresses in one form each, however they were written.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::identity {

/// An IPv4 or IPv6 address. An IPv4 address that came as IPv6 (::ffff:a.b.c.d, or 64:ff9b::/96 from a NAT64) is the
/// IPv4 one. A value; cheap to copy.
class IpAddress {
 public:
  /// 0.0.0.0
  constexpr IpAddress() = default;
  [[nodiscard]] static IpAddress from_v4(std::span<const std::uint8_t, 4> bytes);
  [[nodiscard]] static IpAddress from_v6(std::span<const std::uint8_t, 16> bytes);
  /// An address alone, as "192.0.2.1" (no leading zeros) or "2001:db8::1"; an IPv6 zone ("%eth0") is dropped.
  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);
  /// The same with a port or brackets: "192.0.2.1:80", "[2001:db8::1]:443", "[2001:db8::1]", or an address alone.
  [[nodiscard]] static std::optional<IpAddress> parse_node(std::string_view text);

  [[nodiscard]] constexpr bool is_v4() const { return is_v4_; }
  /// 32 or 128.
  [[nodiscard]] constexpr unsigned bits() const { return is_v4_ ? 32 : 128; }
  /// With all bits after the first `bits` cleared.
  [[nodiscard]] IpAddress masked(unsigned bits) const;
  /// As RFC 5952 has it: lower case, the longest run of zeros cut.
  void append_to(std::string& out) const;

  friend constexpr bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};  ///< IPv4: the first four
  bool is_v4_ = true;
};

/// The addresses that share their first bits: "10.0.0.0/8", "2001:db8::/32", or one alone.
class Network {
 public:
  Network(IpAddress address, unsigned bits) : address_(address), bits_(bits) {}
  /// The error is a sentence without a place. Bits set beyond the prefix are an error: somebody meant something else.
  [[nodiscard]] static Result<Network> parse(std::string_view text);
  /// Of the prefix; 0: everybody of IPv4, or of IPv6, is in it.
  [[nodiscard]] unsigned bits() const { return bits_; }
  [[nodiscard]] bool contains(const IpAddress& address) const {
    return address.is_v4() == address_.is_v4() && address.masked(bits_) == address_;
  }

 private:
  IpAddress address_;
  unsigned bits_;
};

/// Is `address` in any of them?
[[nodiscard]] bool contains(std::span<const Network> networks, const IpAddress& address);

}  // namespace sluice::identity
