// Keys and identities that broke other rate limiters, by bytes over HTTP: each test has the number of its row in the
// collection of reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/front_http/wire.h"
#include "tests/unit/request/mapping.h"

namespace sluice::http {
namespace {

using request::KeyFolder;
using std::chrono::seconds;
using testing::HasSubstr;

/// The daemon's HTTP behind proxies, asked by forward-auth.
class Edge {
 public:
  explicit Edge(std::string_view policy) {
    const std::vector<policy::SourceText> texts{{folder_.file("p.yaml"), std::string(policy)}};
    policy::Loaded loaded = policy::load_texts(texts);
    for (const policy::Finding& finding : loaded.findings) {
      EXPECT_NE(finding.severity, policy::Finding::Severity::error) << finding.to_string();
    }
    wire_.policies.set(std::move(loaded.policy));
  }
  Response ask(std::string_view fields, std::string_view peer = "10.0.0.5") {
    wire_.peer = peer;
    wire_.reconnect();
    return parse_response(wire_.talk("GET /v1/authorize HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n"));
  }
  /// How many of so many were let in; the others were denied by a limit.
  int allowed(int times, std::string_view fields, std::string_view peer = "10.0.0.5") {
    int count = 0;
    for (int i = 0; i < times; ++i) count += is_allowed(fields, peer) ? 1 : 0;
    return count;
  }
  bool is_allowed(std::string_view fields, std::string_view peer = "10.0.0.5") {
    const int status = ask(fields, peer).status;
    EXPECT_TRUE(status == 200 || status == 429) << status;
    return status == 200;
  }
  Wire& wire() { return wire_; }

 private:
  KeyFolder folder_;
  Wire wire_;
};

std::string forwarded_for(const std::string& value) { return "X-Forwarded-For: " + value + "\r\n"; }

constexpr std::string_view kPerAddress = R"(
domain: shop
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 3 }
requests:
  trusted_proxies: [10.0.0.0/8]
  rate_limits: [ { actions: [ remote_address ] } ]
)";

constexpr std::string_view kLogs = R"(
domain: shop
descriptors:
  - key: ten
    rate_limit: { algorithm: sliding_log, unit: minute, requests_per_unit: 10 }
  - key: two
    rate_limit: { algorithm: sliding_log, unit: minute, requests_per_unit: 2 }
requests:
  rate_limits:
    - actions: [ { request_headers: { header_name: x-ten, descriptor_key: ten } } ]
    - actions: [ { request_headers: { header_name: x-two, descriptor_key: two } } ]
)";

TEST(PublicReports, public_report_33_retry_after_is_that_of_this_call) {
  Edge edge(kLogs);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(edge.ask("X-Ten: 1\r\n").status, 200);
    edge.wire().clock.advance(seconds(2));
  }
  const Response denied = edge.ask("X-Ten: 1\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "40");
}

TEST(PublicReports, public_report_34_the_oldest_entry_is_waited_for) {
  Edge edge(kLogs);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(edge.ask("X-Two: 1\r\n").status, 200);
    edge.wire().clock.advance(seconds(10));
  }
  const Response denied = edge.ask("X-Two: 1\r\n");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.field("Retry-After"), "40");
  EXPECT_EQ(denied.body, R"({"msg":"rate limit exceeded","retry_after":40})");
}

TEST(PublicReports, public_report_40_parts_are_not_joined) {
  Edge edge(R"(
domain: shop
descriptors:
  - key: a
    descriptors: [ { key: b, rate_limit: { unit: day, requests_per_unit: 1 } } ]
requests:
  rate_limits:
    - actions:
        - request_headers: { header_name: x-a, descriptor_key: a }
        - request_headers: { header_name: x-b, descriptor_key: b }
)");
  const std::vector<std::string> parts{"X-A: aa\r\nX-B: b\r\n",  "X-A: a\r\nX-B: ab\r\n",  "X-A: a:b\r\nX-B: c\r\n",
                                       "X-A: a\r\nX-B: b:c\r\n", "X-A: a|b\r\nX-B: c\r\n", "X-A: a\r\nX-B: b|c\r\n"};
  for (const std::string& one : parts) EXPECT_TRUE(edge.is_allowed(one)) << one;
  for (const std::string& one : parts) EXPECT_FALSE(edge.is_allowed(one)) << one;
}

TEST(PublicReports, public_report_41_a_key_is_no_key_and_value) {
  Edge edge(R"(
domain: shop
descriptors:
  - key: type_example
    rate_limit: { unit: day, requests_per_unit: 1 }
requests:
  rate_limits: [ { actions: [ { generic_key: { descriptor_key: type, descriptor_value: example } } ] } ]
)");
  EXPECT_EQ(edge.allowed(2, ""), 2);
}

TEST(PublicReports, public_report_42_a_field_of_odd_bytes_is_a_counter_or_an_error) {
  Edge edge(R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 1 }
requests:
  rate_limits: [ { actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ] } ]
)");
  const std::vector<std::string> keys{"a b", "日本語", "\xff\xfe", "{}", "a}b", "%", std::string(60'000, 'x')};
  for (const std::string& key : keys) EXPECT_TRUE(edge.is_allowed("X-User: " + key + "\r\n")) << key.substr(0, 10);
  for (const std::string& key : keys) EXPECT_FALSE(edge.is_allowed("X-User: " + key + "\r\n")) << key.substr(0, 10);
  // Bytes that HTTP does not have in a field.
  using namespace std::string_literals;
  EXPECT_EQ(edge.ask("X-User: a\0b\r\n"s).status, 400);
  EXPECT_EQ(edge.ask("X-User: a\r\nb\r\n").status, 400);
  EXPECT_EQ(edge.ask("X-User: " + std::string(65'536, 'x') + "\r\n").status, 431);
  std::string many;
  for (int i = 0; i < 1'000; ++i) many += "X-" + std::to_string(i) + ": 1\r\n";
  EXPECT_EQ(edge.ask(many).status, 431);
}

TEST(PublicReports, public_report_43_one_bucket_for_one_client) {
  Edge edge(kPerAddress);
  EXPECT_EQ(edge.allowed(2, forwarded_for("203.0.113.7, 10.0.0.1")), 2);
  EXPECT_EQ(edge.allowed(5, forwarded_for("203.0.113.7")), 1);
}

TEST(PublicReports, public_report_44_no_fresh_bucket_by_forging) {
  Edge edge(kPerAddress);
  int allowed = 0;
  for (int i = 0; i < 100; ++i) {
    allowed += edge.is_allowed(forwarded_for("1.1.1." + std::to_string(i) + ", 198.51.100.9")) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
  EXPECT_FALSE(edge.is_allowed(forwarded_for("198.51.100.9")));
  allowed = 0;
  for (int i = 0; i < 100; ++i) {
    allowed += edge.is_allowed(forwarded_for("1.1.1." + std::to_string(i)), "203.0.113.5") ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
}

TEST(PublicReports, public_report_45_no_fresh_bucket_by_another_port) {
  Edge edge(kPerAddress);
  int allowed = 0;
  for (int port = 51'000; port < 51'020; ++port) {
    allowed += edge.is_allowed(forwarded_for("198.51.100.7:" + std::to_string(port))) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
  EXPECT_EQ(edge.allowed(2, forwarded_for("[2001:db8::1]:443")), 2);
  EXPECT_EQ(edge.allowed(5, forwarded_for("2001:db8::2")), 1);
}

TEST(PublicReports, public_report_46_an_ipv6_network_is_one_client) {
  Edge edge(kPerAddress);
  EXPECT_EQ(edge.allowed(2, forwarded_for("2001:db8:1:2::1")), 2);
  EXPECT_EQ(edge.allowed(5, forwarded_for("2001:db8:1:2:ffff::9")), 1);
  EXPECT_EQ(edge.allowed(5, forwarded_for("2001:db8:1:3::1")), 3);
}

TEST(PublicReports, public_report_47_one_bucket_in_every_notation) {
  Edge edge(kPerAddress);
  EXPECT_EQ(edge.allowed(1, forwarded_for("::ffff:1.2.3.4")), 1);
  EXPECT_EQ(edge.allowed(1, forwarded_for("::ffff:102:304")), 1);
  EXPECT_EQ(edge.allowed(5, forwarded_for("1.2.3.4")), 1);
  EXPECT_EQ(edge.allowed(5, forwarded_for("2001:db8:1234:5678::1.2.3.4")), 3);
  EXPECT_EQ(edge.allowed(5, forwarded_for("2001:db8:1234:5678::1")), 0);
}

constexpr std::string_view kPerOwner = R"(
domain: shop
descriptors:
  - key: api_key
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: user
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 10 }
requests:
  trusted_proxies: []
  jwt: { algorithms: [HS256], secret_file: secret }
  api_keys: { file: keys }
  rate_limits:
    - actions: [ { api_key: { header_name: x-key, on_missing: skip } } ]
    - actions: [ { jwt_claim: { claim: sub, descriptor_key: user, on_missing: remote_address } } ]
)";

TEST(PublicReports, public_report_48_a_key_counts_as_a_whole) {
  Edge edge(kPerOwner);
  EXPECT_EQ(edge.allowed(5, "X-Key: live_AAAA1\r\n", "192.0.2.1"), 2);
  EXPECT_EQ(edge.allowed(5, "X-Key: live_AAAA2\r\n", "192.0.2.2"), 2);
}

TEST(PublicReports, public_report_49_forged_tokens_count_on_their_sender) {
  using identity::JwtAlgorithm;
  Edge edge(kPerOwner);
  const std::string good = identity::signer_for(JwtAlgorithm::hs256).token(JwtAlgorithm::hs256, R"({"sub":"victim"})");
  const identity::Signer attacker("another secret altogether, of some length");
  const std::string forged = attacker.token(JwtAlgorithm::hs256, R"({"sub":"victim"})");
  const std::string none =
      identity::base64url(R"({"alg":"none"})") + "." + identity::base64url(R"({"sub":"victim"})") + ".";
  const std::size_t dot = good.rfind('.');
  std::mt19937_64 random(1);
  int allowed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::vector<std::string> tokens{forged,
                                          none,
                                          identity::base64url(std::to_string(random())),
                                          good + "x",
                                          good.substr(0, dot),
                                          good.substr(0, dot + 1),
                                          good.substr(good.find('.')),
                                          "..",
                                          std::string(40'000, 'a') + "." + std::string(1'000, 'b') + ".c"};
    const std::string& token = tokens[static_cast<std::size_t>(i) % tokens.size()];
    allowed += edge.is_allowed("Authorization: Bearer " + token + "\r\n", "203.0.113.5") ? 1 : 0;
  }
  EXPECT_EQ(allowed, 10);
  EXPECT_EQ(edge.allowed(10, "Authorization: Bearer " + good + "\r\n", "203.0.113.5"), 5);
}

}  // namespace
}  // namespace sluice::http
