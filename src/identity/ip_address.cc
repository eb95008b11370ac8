#include "identity/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

namespace sluice::identity {
namespace {

constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<std::uint8_t, 12> kNat64{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0};
constexpr unsigned kPrefixOfV4 = 96;  ///< bits before the IPv4 address in both

/// As inet_pton reads it: strict, no leading zeros in IPv4.
bool read(int family, std::string_view text, void* bytes) {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  if (text.size() >= buffer.size() || text.find('\0') != std::string_view::npos) return false;
  std::ranges::copy(text, buffer.begin());
  return ::inet_pton(family, buffer.data(), bytes) == 1;
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port <= 65'535;
}

/// How many bits a prefix has, or nothing: one to three digits.
std::optional<unsigned> read_bits(std::string_view text) {
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc{} || end != text.data() + text.size() || bits > 128) return std::nullopt;
  return bits;
}

/// "::ffff:10.0.0.0/104" is written of the IPv4 network that it stands for.
bool is_written_v6(std::string_view text) { return text.find(':') != std::string_view::npos; }

}  // namespace

IpAddress IpAddress::from_v4(std::span<const std::uint8_t, 4> bytes) {
  IpAddress address;
  std::ranges::copy(bytes, address.bytes_.begin());
  return address;
}

IpAddress IpAddress::from_v6(std::span<const std::uint8_t, 16> bytes) {
  const auto begins_with = [&](const std::array<std::uint8_t, 12>& prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  if (begins_with(kMapped) || begins_with(kNat64)) return from_v4(bytes.last<4>());
  IpAddress address;
  std::ranges::copy(bytes, address.bytes_.begin());
  address.is_v4_ = false;
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (!is_written_v6(text)) {
    std::array<std::uint8_t, 4> bytes{};
    if (!read(AF_INET, text, bytes.data())) return std::nullopt;
    return from_v4(bytes);
  }
  if (const std::size_t zone = text.find('%'); zone != std::string_view::npos) {
    if (zone + 1 == text.size()) return std::nullopt;
    text = text.substr(0, zone);
  }
  std::array<std::uint8_t, 16> bytes{};
  if (!read(AF_INET6, text, bytes.data())) return std::nullopt;
  return from_v6(bytes);
}

std::optional<IpAddress> IpAddress::parse_node(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (!rest.starts_with(':') || !is_port(rest.substr(1)))) return std::nullopt;
    const std::string_view inner = text.substr(1, end - 1);
    return is_written_v6(inner) ? parse(inner) : std::nullopt;
  }
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos) {
    if (!is_port(text.substr(colon + 1))) return std::nullopt;
    text = text.substr(0, colon);
  }
  return parse(text);
}

IpAddress IpAddress::masked(unsigned bits) const {
  IpAddress masked = *this;
  const std::size_t size = is_v4_ ? 4 : 16;
  for (std::size_t i = bits / 8; i < size; ++i) {
    const unsigned kept = i == bits / 8 ? bits % 8 : 0;
    masked.bytes_[i] = static_cast<std::uint8_t>(masked.bytes_[i] & (0xff00U >> kept));
  }
  return masked;
}

void IpAddress::append_to(std::string& out) const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(is_v4_ ? AF_INET : AF_INET6, bytes_.data(), buffer.data(), buffer.size());
  out += buffer.data();
}

Result<Network> Network::parse(std::string_view text) {
  const Error shape{"expected a network such as 10.0.0.0/8, 2001:db8::/32 or one address, found '" + std::string(text) +
                    "'"};
  const std::size_t slash = text.find('/');
  const std::string_view written = text.substr(0, slash);
  const std::optional<IpAddress> address = IpAddress::parse(written);
  if (!address || written.find('%') != std::string_view::npos) return shape;
  if (slash == std::string_view::npos) return Network(*address, address->bits());
  std::optional<unsigned> bits = read_bits(text.substr(slash + 1));
  if (!bits) return shape;
  if (address->is_v4() && is_written_v6(written)) {
    if (*bits < kPrefixOfV4) return shape;
    *bits -= kPrefixOfV4;
  }
  if (*bits > address->bits()) return shape;
  if (address->masked(*bits) != *address) {
    std::string meant;
    address->masked(*bits).append_to(meant);
    return Error{"'" + std::string(text) + "' has bits beyond its prefix; did you mean " + meant + "/" +
                 std::to_string(*bits) + "?"};
  }
  return Network(*address, *bits);
}

bool contains(std::span<const Network> networks, const IpAddress& address) {
  return std::ranges::any_of(networks, [&](const Network& network) { return network.contains(address); });
}

}  // namespace sluice::identity
