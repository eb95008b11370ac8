#include "identity/proxy_protocol.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice::identity {
namespace {

using State = ProxyHeader::State;
using namespace std::string_literals;

std::string client_of(const ProxyHeader& header) {
  std::string text;
  if (header.client) header.client->append_to(text);
  return text;
}

std::string version_2(unsigned char command, unsigned char family, std::string_view addresses) {
  std::string bytes = "\r\n\r\n\0\r\nQUIT\n"s;
  bytes += {static_cast<char>(command), static_cast<char>(family), static_cast<char>(addresses.size() >> 8U),
            static_cast<char>(addresses.size() & 0xffU)};
  bytes += addresses;
  return bytes;
}

const std::string kV4 = "\xc6\x33\x64\x09\x0a\x00\x00\x01\x30\x39\x01\xbb"s;
const std::string kV6 =
    "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x09"
    "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x30\x39\x01\xbb"s;

/// Whole, cut anywhere, and with more behind it: always the same.
void expect_header(const std::string& bytes, std::string_view client) {
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_EQ(read_proxy_header(std::string_view(bytes).substr(0, cut)).state, State::incomplete) << cut;
  }
  for (const std::string_view rest : {"", "GET / HTTP/1.1\r\n", "\r\n"}) {
    const ProxyHeader header = read_proxy_header(bytes + std::string(rest));
    EXPECT_EQ(header.state, State::complete);
    EXPECT_EQ(header.size, bytes.size());
    EXPECT_EQ(client_of(header), client);
  }
}

TEST(ProxyProtocol, reads_version_1) {
  expect_header("PROXY TCP4 198.51.100.9 10.0.0.1 56324 443\r\n", "198.51.100.9");
  expect_header("PROXY TCP6 2001:db8::9 2001:db8::1 56324 443\r\n", "2001:db8::9");
  expect_header("PROXY TCP6 ::ffff:198.51.100.9 2001:db8::1 1 2\r\n", "198.51.100.9");
  expect_header("PROXY UNKNOWN\r\n", "");
  expect_header("PROXY UNKNOWN ffff:f...f:ffff 65535 65535\r\n", "");
}

TEST(ProxyProtocol, reads_version_2) {
  expect_header(version_2(0x21, 0x11, kV4), "198.51.100.9");
  expect_header(version_2(0x21, 0x21, kV6), "2001:db8::9");
  expect_header(version_2(0x21, 0x11, kV4 + "\x04\x00\x03xyz"s), "198.51.100.9");
  expect_header(version_2(0x20, 0x11, kV4), "");  // LOCAL
  expect_header(version_2(0x20, 0x00, ""), "");
  expect_header(version_2(0x21, 0x00, ""), "");                     // not told
  expect_header(version_2(0x21, 0x31, std::string(216, 'a')), "");  // a local socket
}

TEST(ProxyProtocol, refuses_all_else) {
  for (const std::string& bytes : {"GET / HTTP/1.1\r\n"s,
                                   "PROXX"s,
                                   "proxy TCP4 1.1.1.1 2.2.2.2 1 2\r\n"s,
                                   "\r\n\r\nX"s,
                                   "PRI * HTTP/2.0\r\n"s,
                                   "PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n"s,
                                   "PROXY TCP4 1.1.1.1 2.2.2.2 1 2 3\r\n"s,
                                   "PROXY TCP4  1.1.1.1 2.2.2.2 1 2\r\n"s,
                                   "PROXY TCP4 1.1.1.1 2.2.2.2 1 65536\r\n"s,
                                   "PROXY TCP4 1.1.1.1 x 1 2\r\n"s,
                                   "PROXY TCP4 ::1 ::1 1 2\r\n"s,
                                   "PROXY TCP6 1.1.1.1 ::1 1 2\r\n"s,
                                   "PROXY TCP5 1.1.1.1 2.2.2.2 1 2\r\n"s,
                                   "PROXY \r\n"s,
                                   "PROXY UNKNOWNX\r\n"s,
                                   "PROXY TCP6 fe80::1%a ::1 1 2\r\n"s,
                                   "PROXY TCP4 " + std::string(100, '1'),
                                   version_2(0x11, 0x11, kV4),
                                   version_2(0x22, 0x11, kV4),
                                   version_2(0x21, 0x11, kV4.substr(1)),
                                   version_2(0x21, 0x21, kV4),
                                   version_2(0x21, 0x11, std::string(5'000, 'x'))}) {
    EXPECT_EQ(read_proxy_header(bytes).state, State::malformed) << bytes;
  }
}

TEST(ProxyProtocol, HasRoomForWhatVersionTwoCarriesUpToABound) {
  constexpr std::size_t head = 16;
  const std::string longest = version_2(0x21, 0x11, kV4 + std::string(kMaxProxyHeader - head - kV4.size(), 'x'));
  EXPECT_EQ(read_proxy_header(longest).state, State::complete);
  EXPECT_EQ(read_proxy_header(longest).size, kMaxProxyHeader);
  const ProxyHeader longer =
      read_proxy_header(version_2(0x21, 0x11, kV4 + std::string(kMaxProxyHeader + 1 - head - kV4.size(), 'x')));
  EXPECT_EQ(longer.state, State::malformed);
  EXPECT_TRUE(longer.is_too_long);
  EXPECT_FALSE(read_proxy_header("GET / HTTP/1.1").is_too_long);
}

}  // namespace
}  // namespace sluice::identity
