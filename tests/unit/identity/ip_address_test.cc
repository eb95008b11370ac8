#include "identity/ip_address.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::identity {
namespace {

std::string text_of(const std::optional<IpAddress>& address) {
  if (!address) return "-";
  std::string text;
  address->append_to(text);
  return text;
}

std::string parsed(std::string_view text) { return text_of(IpAddress::parse(text)); }
std::string node(std::string_view text) { return text_of(IpAddress::parse_node(text)); }

TEST(IpAddress, has_one_form_however_it_is_written) {
  EXPECT_EQ(parsed("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(parsed("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(parsed("2001:0db8::0001"), "2001:db8::1");
  EXPECT_EQ(parsed("::"), "::");
  EXPECT_EQ(parsed("fe80::1%eth0"), "fe80::1");
}

TEST(IpAddress, refuses_what_is_none) {
  for (const std::string_view text :
       {"", " ", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "0x7f.0.0.1", "1.2.3.4 ", "localhost",
        ":::", "2001:db8:::1", "12345::", "fe80::1%", "1.2.3.4%eth0", "unknown", "_hidden", "::1::2"}) {
    EXPECT_EQ(parsed(text), "-") << text;
  }
  EXPECT_EQ(parsed(std::string_view("1.2.3.4\0x", 9)), "-");
  EXPECT_EQ(parsed(std::string(65'536, '1')), "-");
}

TEST(IpAddress, public_report_45_port_and_brackets_make_no_difference) {
  EXPECT_EQ(node("198.51.100.7:51234"), "198.51.100.7");
  EXPECT_EQ(node("198.51.100.7:51999"), "198.51.100.7");
  EXPECT_EQ(node("198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(node("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(node("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(node("2001:db8::1"), "2001:db8::1");
}

TEST(IpAddress, refuses_odd_ports_and_brackets) {
  for (const std::string_view text : {"1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "1.2.3.4:-1", "[1.2.3.4]", "[::1",
                                      "::1]", "[::1]x", "[::1]:", "[::1]:99999", "[]", "[", ":80", "[[::1]]"}) {
    EXPECT_EQ(node(text), "-") << text;
  }
}

TEST(IpAddress, public_report_47_mapped_and_nat64_addresses_are_those_of_ipv4) {
  EXPECT_EQ(parsed("::ffff:1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(parsed("::ffff:102:304"), "1.2.3.4");
  EXPECT_EQ(parsed("64:ff9b::1.2.3.4"), "1.2.3.4");
  EXPECT_EQ(parsed("64:ff9b::102:304"), "1.2.3.4");
  EXPECT_EQ(parsed("64:ff9b:1::102:304"), "64:ff9b:1::102:304");
  const auto other = IpAddress::parse("2001:db8:1234:5678::1.2.3.4");
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_v4());
  EXPECT_EQ(text_of(other->masked(64)), "2001:db8:1234:5678::");
}

TEST(IpAddress, public_report_46_a_prefix_is_one_network) {
  const auto a = IpAddress::parse("2001:db8:1:2::1");
  const auto b = IpAddress::parse("2001:db8:1:2:ffff::9");
  const auto c = IpAddress::parse("2001:db8:1:3::1");
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->masked(64), b->masked(64));
  EXPECT_NE(a->masked(64), c->masked(64));
}

TEST(IpAddress, masks_any_number_of_bits) {
  const auto address = IpAddress::parse("255.255.255.255");
  ASSERT_TRUE(address);
  EXPECT_EQ(text_of(address->masked(0)), "0.0.0.0");
  EXPECT_EQ(text_of(address->masked(1)), "128.0.0.0");
  EXPECT_EQ(text_of(address->masked(17)), "255.255.128.0");
  EXPECT_EQ(text_of(address->masked(32)), "255.255.255.255");
  const auto wide = IpAddress::parse("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
  ASSERT_TRUE(wide);
  EXPECT_EQ(text_of(wide->masked(0)), "::");
  EXPECT_EQ(text_of(wide->masked(49)), "ffff:ffff:ffff:8000::");
  EXPECT_EQ(wide->masked(128), *wide);
}

bool is_in(std::string_view network, std::string_view address) {
  const Result<Network> parsed_network = Network::parse(network);
  const auto parsed_address = IpAddress::parse(address);
  EXPECT_TRUE(parsed_network && parsed_address) << network << " " << address;
  return parsed_network && parsed_address && parsed_network->contains(*parsed_address);
}

TEST(Network, contains_its_own_family_alone) {
  EXPECT_TRUE(is_in("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(is_in("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(is_in("10.0.0.7", "10.0.0.7"));
  EXPECT_FALSE(is_in("10.0.0.7", "10.0.0.8"));
  EXPECT_TRUE(is_in("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(is_in("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(is_in("fd00::/8", "fd12::1"));
  EXPECT_FALSE(is_in("::/0", "10.0.0.1"));
  EXPECT_TRUE(is_in("::ffff:10.0.0.0/104", "10.1.2.3"));
}

TEST(Network, tells_what_is_wrong) {
  const auto error = [](std::string_view text) {
    const Result<Network> network = Network::parse(text);
    return network ? std::string() : network.error().message;
  };
  EXPECT_EQ(error("10.0.0.1/8"), "'10.0.0.1/8' has bits beyond its prefix; did you mean 10.0.0.0/8?");
  for (const std::string_view text :
       {"10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "/8", "", "all", "fe80::1%eth0/64", "::ffff:10.0.0.0/90"}) {
    EXPECT_TRUE(error(text).starts_with("expected a network such as 10.0.0.0/8")) << text << ": " << error(text);
  }
}

}  // namespace
}  // namespace sluice::identity
