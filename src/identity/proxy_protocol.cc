#include "identity/proxy_protocol.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <system_error>

namespace sluice::identity {
namespace {

using State = ProxyHeader::State;

constexpr std::string_view kSignature1 = "PROXY ";
constexpr std::string_view kSignature2{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t kLongest1 = 107;  ///< with its line end
constexpr std::size_t kHead2 = 16;      ///< signature, version, family, length

constexpr ProxyHeader kMalformed{.state = State::malformed, .client = {}};

bool is_port(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port <= 65'535;
}

std::optional<IpAddress> read_address(std::string_view text, bool is_v6) {
  const bool is_written_v6 = text.find(':') != std::string_view::npos;
  if (is_written_v6 != is_v6 || text.find('%') != std::string_view::npos) return std::nullopt;
  return IpAddress::parse(text);
}

/// "TCP4 192.0.2.1 192.0.2.2 56324 443": all five of it.
std::optional<IpAddress> read_line(std::string_view line) {
  std::array<std::string_view, 5> parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t space = line.find(' ');
    const bool is_last = i + 1 == parts.size();
    if ((space == std::string_view::npos) != is_last) return std::nullopt;
    parts[i] = line.substr(0, space);
    if (!is_last) line.remove_prefix(space + 1);
  }
  if (parts[0] != "TCP4" && parts[0] != "TCP6") return std::nullopt;
  const bool is_v6 = parts[0] == "TCP6";
  if (!read_address(parts[2], is_v6) || !is_port(parts[3]) || !is_port(parts[4])) return std::nullopt;
  return read_address(parts[1], is_v6);
}

ProxyHeader read_version_1(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kLongest1).find("\r\n");
  if (end == std::string_view::npos) return bytes.size() < kLongest1 ? ProxyHeader{} : kMalformed;
  const std::string_view line = bytes.substr(kSignature1.size(), end - kSignature1.size());
  ProxyHeader header{.state = State::complete, .size = end + 2, .client = {}};
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return header;
  header.client = read_line(line);
  return header.client ? header : kMalformed;
}

template <std::size_t kSize>
std::span<const std::uint8_t, kSize> bytes_of(std::string_view text) {
  return std::span<const std::uint8_t, kSize>(reinterpret_cast<const std::uint8_t*>(text.data()), kSize);
}

ProxyHeader read_version_2(std::string_view bytes) {
  constexpr unsigned version = 2;
  enum Command : unsigned { local = 0, proxy = 1 };
  enum Family : unsigned { inet = 1, inet6 = 2 };
  if (bytes.size() < kHead2) return {};
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[at])); };
  const unsigned command = byte(12) & 0x0fU;
  const std::size_t length = byte(14) << 8U | byte(15);
  if (byte(12) >> 4U != version || command > proxy) return kMalformed;
  if (kHead2 + length > kMaxProxyHeader) return {.state = State::malformed, .is_too_long = true, .client = {}};
  if (bytes.size() < kHead2 + length) return {};
  ProxyHeader header{.state = State::complete, .size = kHead2 + length, .client = {}};
  if (command == local) return header;
  const std::string_view addresses = bytes.substr(kHead2, length);
  constexpr std::size_t size_4 = 12;  // two addresses, two ports
  constexpr std::size_t size_6 = 36;
  switch (byte(13) >> 4U) {
    case inet:
      if (addresses.size() < size_4) return kMalformed;
      header.client = IpAddress::from_v4(bytes_of<4>(addresses));
      break;
    case inet6:
      if (addresses.size() < size_6) return kMalformed;
      header.client = IpAddress::from_v6(bytes_of<16>(addresses));
      break;
    default:  // a local socket, or nothing
      break;
  }
  return header;
}

}  // namespace

ProxyHeader read_proxy_header(std::string_view bytes) {
  const auto may_begin_with = [&](std::string_view signature) {
    return bytes.substr(0, signature.size()) == signature.substr(0, bytes.size());
  };
  if (may_begin_with(kSignature1)) return bytes.size() < kSignature1.size() ? ProxyHeader{} : read_version_1(bytes);
  if (may_begin_with(kSignature2)) return bytes.size() < kSignature2.size() ? ProxyHeader{} : read_version_2(bytes);
  return kMalformed;
}

}  // namespace sluice::identity
