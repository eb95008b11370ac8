#include "identity/client_address.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

const std::vector<Network>& trusted() {
  static const std::vector<Network> networks = [] {
    std::vector<Network> list;
    for (const std::string_view text : {"10.0.0.0/8", "fd00::/8"}) list.push_back(*Network::parse(text));
    return list;
  }();
  return networks;
}

std::string client(std::string_view peer, std::initializer_list<std::string_view> lines,
                   AddressSyntax syntax = AddressSyntax::list) {
  const auto address = IpAddress::parse(peer);
  EXPECT_TRUE(address) << peer;
  std::string text;
  const std::vector<std::string_view> all(lines);
  client_address(address, all, syntax, trusted())->append_to(text);
  return text;
}

TEST(ClientAddress, public_report_43_the_nearest_that_is_no_proxy) {
  EXPECT_EQ(client("10.0.0.9", {"203.0.113.7, 10.0.0.1"}), "203.0.113.7");
}

TEST(ClientAddress, public_report_44_what_strangers_write_is_not_looked_at) {
  EXPECT_EQ(client("10.0.0.5", {"1.1.1.1, 198.51.100.9"}), "198.51.100.9");
  for (const std::string_view forged : {"", "1.1.1.1", "10.0.0.1", "127.0.0.1", "garbage", "1.1.1.1, 10.0.0.1"}) {
    EXPECT_EQ(client("203.0.113.5", {forged}), "203.0.113.5") << forged;
  }
}

TEST(ClientAddress, without_the_field_it_is_who_is_connected) {
  EXPECT_EQ(client("10.0.0.5", {}), "10.0.0.5");
  EXPECT_EQ(client("10.0.0.5", {"", "  ", ",,"}), "10.0.0.5");
  EXPECT_EQ(client("203.0.113.5", {}), "203.0.113.5");
}

TEST(ClientAddress, where_all_are_proxies_it_is_the_farthest) {
  EXPECT_EQ(client("10.0.0.5", {"10.0.0.1, 10.0.0.2"}), "10.0.0.1");
}

TEST(ClientAddress, several_lines_are_one_list) {
  EXPECT_EQ(client("10.0.0.5", {"1.1.1.1", "198.51.100.9, 10.0.0.2", "10.0.0.3"}), "198.51.100.9");
}

TEST(ClientAddress, spaces_tabs_and_empty_elements_change_nothing) {
  EXPECT_EQ(client("10.0.0.5", {"1.1.1.1 ,,\t198.51.100.9:8080 , ,10.0.0.2,"}), "198.51.100.9");
}

TEST(ClientAddress, ends_at_what_is_no_address) {
  // Who is in a trusted network cannot get away from its own address by nonsense.
  for (const std::string_view odd : {"unknown", "1.2.3", "::ffff:1.2.3.4.5", "[::1", "1.1.1.1 2.2.2.2", "\"1.1.1.1\"",
                                     "1.1.1.1;2.2.2.2", "x, y, z", "2001:db8::1]:80", "\xff\xfe"}) {
    EXPECT_EQ(client("10.0.0.5", {odd}), "10.0.0.5") << odd;
    EXPECT_EQ(client("10.0.0.5", {std::string(odd) + ", 10.0.0.2"}), "10.0.0.2") << odd;
  }
}

TEST(ClientAddress, mapped_proxies_are_trusted_as_ipv4) {
  EXPECT_EQ(client("::ffff:10.0.0.5", {"198.51.100.9, ::ffff:10.0.0.2"}), "198.51.100.9");
  EXPECT_EQ(client("fd00::5", {"[2001:db8::9]:443"}), "2001:db8::9");
}

TEST(ClientAddress, a_trusted_peer_may_have_no_address) {
  const auto behind = [](std::string_view line, AddressSyntax syntax = AddressSyntax::list) {
    std::string text = "-";
    const std::vector<std::string_view> lines{line};
    if (const auto found = client_address(std::nullopt, lines, syntax, trusted())) found->append_to(text = {});
    return text;
  };
  EXPECT_EQ(behind("1.1.1.1, 198.51.100.9"), "198.51.100.9");
  EXPECT_EQ(behind("198.51.100.9, 10.0.0.2"), "198.51.100.9");
  EXPECT_EQ(behind("for=198.51.100.9", AddressSyntax::forwarded), "198.51.100.9");
  EXPECT_EQ(behind("198.51.100.9", AddressSyntax::single), "198.51.100.9");
  for (const std::string_view nobody : {"", "unknown", "198.51.100.9, unix:"}) EXPECT_EQ(behind(nobody), "-") << nobody;
  EXPECT_EQ(behind("unknown", AddressSyntax::single), "-");
}

TEST(ClientAddress, a_long_field_costs_its_end_alone) {
  std::string field;
  for (int i = 0; i < 20'000; ++i) field += "1,";
  field += "198.51.100.9";
  EXPECT_EQ(client("10.0.0.5", {field}), "198.51.100.9");
}

std::string forwarded(std::initializer_list<std::string_view> lines, std::string_view peer = "10.0.0.5") {
  return client(peer, lines, AddressSyntax::forwarded);
}

TEST(Forwarded, as_rfc_7239_has_it) {
  EXPECT_EQ(forwarded({"for=192.0.2.43, for=198.51.100.17"}), "198.51.100.17");
  EXPECT_EQ(forwarded({"for=192.0.2.43;proto=https;by=203.0.113.43"}), "192.0.2.43");
  EXPECT_EQ(forwarded({"proto=https; FOR = \"192.0.2.43:47011\""}), "192.0.2.43");
  EXPECT_EQ(forwarded({"For=\"[2001:db8:cafe::17]:4711\""}), "2001:db8:cafe::17");
  EXPECT_EQ(forwarded({"for=198.51.100.9", "for=10.0.0.2;host=\"a,b;c\""}), "198.51.100.9");
}

TEST(Forwarded, ends_at_what_names_nobody) {
  for (const std::string_view odd : {"for=unknown", "for=_hidden", "proto=https", "for=", "for", "=1.2.3.4",
                                     "for=1.2.3.4;for=1.2.3.5", "for=\"1.2.3.4", "for=[::1"}) {
    EXPECT_EQ(forwarded({odd}), "10.0.0.5") << odd;
  }
}

TEST(Forwarded, an_open_quote_of_a_stranger_hides_nothing) {
  EXPECT_EQ(forwarded({"for=\"1.1.1.1, for=198.51.100.9"}), "198.51.100.9");
  EXPECT_EQ(forwarded({"for=\", for=\"[2001:db8::2]\""}), "2001:db8::2");
  EXPECT_EQ(forwarded({"for=1.1.1.1;x=\"\\\", for=198.51.100.9"}), "198.51.100.9");
}

TEST(RealIp, is_one_address_of_a_trusted_peer) {
  EXPECT_EQ(client("10.0.0.5", {"198.51.100.9"}, AddressSyntax::single), "198.51.100.9");
  EXPECT_EQ(client("203.0.113.5", {"198.51.100.9"}, AddressSyntax::single), "203.0.113.5");
  EXPECT_EQ(client("10.0.0.5", {"198.51.100.9", "1.1.1.1"}, AddressSyntax::single), "10.0.0.5");
  EXPECT_EQ(client("10.0.0.5", {"1.1.1.1, 198.51.100.9"}, AddressSyntax::single), "10.0.0.5");
}

}  // namespace
}  // namespace sluice::identity
