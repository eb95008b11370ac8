// Keys and identities that broke other rate limiters, in the library: each test has the number of its row in the
// collection of reports.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "limiter/call.h"
#include "store/memory/memory_store.h"
#include "tests/unit/request/mapping.h"

namespace sluice::request {
namespace {

/// Requests against a policy, on the memory store.
class Shop final : private limiter::Call::Owner {
 public:
  explicit Shop(const std::string& text) {
    const std::vector<policy::SourceText> texts{{folder_.file("p.yaml"), text}};
    policy::Loaded loaded = policy::load_texts(texts);
    for (const policy::Finding& finding : loaded.findings) ADD_FAILURE() << finding.to_string();
    policy_ = loaded.policy;
    mapper_ = std::make_unique<Mapper>(policy_->requests().front());
  }
  /// Allowed?
  bool ask(std::vector<HeaderField> headers, std::string_view peer = "10.0.0.5") {
    const HttpRequest request{
        .method = "GET", .target = "/", .host = {}, .scheme = {}, .peer = peer, .route = {}, .headers = headers};
    if (!mapper_->map(request, kNow)) return false;
    if (mapper_->request().descriptors.empty()) return true;
    EXPECT_EQ(call_.start(mapper_->request(), policy_, store_, kNow), store::Progress::answered);
    return call_.answer().allowed;
  }
  int allowed(int times, const std::vector<HeaderField>& headers, std::string_view peer = "10.0.0.5") {
    int count = 0;
    for (int i = 0; i < times; ++i) count += ask(headers, peer) ? 1 : 0;
    return count;
  }
  [[nodiscard]] const limiter::Answer& answer() const { return call_.answer(); }

 private:
  void answered(limiter::Call& /*call*/) override {}

  KeyFolder folder_;
  std::shared_ptr<const policy::Policy> policy_;
  std::unique_ptr<Mapper> mapper_;
  store::MemoryStore store_{10'000};
  metrics::Registry registry_;
  limiter::Call call_{*this, registry_.add_shard()};
};

constexpr std::string_view kPerAddress = R"(
domain: shop
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 3 }
requests:
  trusted_proxies: [10.0.0.0/8]
  rate_limits: [ { actions: [ remote_address ] } ]
)";

TEST(PublicReports, public_report_42_keys_of_any_bytes_are_counters_of_their_own) {
  Shop shop(R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 1 }
requests:
  rate_limits: [ { actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ] } ]
)");
  const std::vector<std::string> keys{"a b",
                                      std::string("a\0b", 3),
                                      "a\r\nb",
                                      "日本語",
                                      "a",
                                      "b",
                                      "\xff\xfe",
                                      std::string(65'536, 'x'),
                                      std::string(65'535, 'x'),
                                      "{}",
                                      "a}b",
                                      "%",
                                      ""};
  for (const std::string& key : keys) EXPECT_TRUE(shop.ask({{"x-user", key}})) << key.substr(0, 10);
  for (const std::string& key : keys) EXPECT_FALSE(shop.ask({{"x-user", key}})) << key.substr(0, 10);
}

TEST(PublicReports, public_report_43_one_bucket_for_one_client) {
  Shop shop{std::string(kPerAddress)};
  EXPECT_EQ(shop.allowed(2, {{"X-Forwarded-For", "203.0.113.7, 10.0.0.1"}}), 2);
  EXPECT_EQ(shop.allowed(5, {{"X-Forwarded-For", "203.0.113.7"}}), 1);
}

TEST(PublicReports, public_report_44_no_fresh_bucket_by_forging) {
  Shop shop{std::string(kPerAddress)};
  int allowed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string forged = "1.1.1." + std::to_string(i) + ", 198.51.100.9";
    allowed += shop.ask({{"X-Forwarded-For", forged}}) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
  allowed = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string forged = "1.1.1." + std::to_string(i);
    allowed += shop.ask({{"X-Forwarded-For", forged}}, "203.0.113.5") ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
}

TEST(PublicReports, public_report_45_no_fresh_bucket_by_another_port) {
  Shop shop{std::string(kPerAddress)};
  int allowed = 0;
  for (int port = 51'000; port < 51'020; ++port) {
    allowed += shop.ask({{"X-Forwarded-For", "198.51.100.7:" + std::to_string(port)}}) ? 1 : 0;
  }
  EXPECT_EQ(allowed, 3);
}

TEST(PublicReports, public_report_46_an_ipv6_network_is_one_client) {
  Shop shop{std::string(kPerAddress)};
  EXPECT_EQ(shop.allowed(2, {}, "2001:db8:1:2::1"), 2);
  EXPECT_EQ(shop.allowed(5, {}, "2001:db8:1:2:ffff::9"), 1);
  EXPECT_EQ(shop.allowed(5, {}, "2001:db8:1:3::1"), 3);
}

TEST(PublicReports, public_report_47_one_bucket_in_every_notation) {
  Shop shop{std::string(kPerAddress)};
  EXPECT_EQ(shop.allowed(1, {}, "::ffff:1.2.3.4"), 1);
  EXPECT_EQ(shop.allowed(1, {}, "::ffff:102:304"), 1);
  EXPECT_EQ(shop.allowed(1, {}, "64:ff9b::1.2.3.4"), 1);
  EXPECT_EQ(shop.allowed(5, {}, "1.2.3.4"), 0);
  EXPECT_EQ(shop.allowed(5, {}, "::ffff:1.2.3.5"), 3);
}

TEST(PublicReports, public_report_48_a_key_counts_as_a_whole) {
  Shop shop(R"(
domain: shop
descriptors:
  - key: api_key
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: raw
    rate_limit: { unit: day, requests_per_unit: 2 }
requests:
  api_keys: { file: keys }
  rate_limits:
    - actions: [ { api_key: { header_name: x-key, on_missing: skip } } ]
    - actions: [ { request_headers: { header_name: x-raw, descriptor_key: raw } } ]
)");
  EXPECT_EQ(shop.allowed(5, {{"x-key", "live_AAAA1"}}), 2);
  EXPECT_EQ(shop.allowed(5, {{"x-key", "live_AAAA2"}}), 2);
  EXPECT_EQ(shop.allowed(5, {{"x-raw", "live_AAAA1"}}), 2);
  EXPECT_EQ(shop.allowed(5, {{"x-raw", "live_AAAA2"}}), 2);
}

TEST(PublicReports, public_report_49_forged_tokens_count_on_their_sender) {
  Shop shop(R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 10 }
requests:
  trusted_proxies: []
  jwt: { algorithms: [HS256], secret_file: secret }
  rate_limits: [ { actions: [ { jwt_claim: { claim: sub, descriptor_key: user, on_missing: remote_address } } ] } ]
)");
  using identity::JwtAlgorithm;
  const identity::Signer attacker("another secret altogether, of some length");
  std::mt19937_64 random(1);
  int allowed = 0;
  for (int i = 0; i < 100; ++i) {
    std::string token = attacker.token(JwtAlgorithm::hs256, R"({"sub":"victim"})");
    if (i % 4 == 1) token = identity::base64url(std::to_string(random()));
    if (i % 4 == 2)
      token = identity::base64url(R"({"alg":"none"})") + "." + identity::base64url(R"({"sub":"victim"})") + ".";
    if (i % 4 == 3) token = bearer(R"({"sub":"victim"})").substr(7) + "x";
    allowed += shop.ask({{"Authorization", "Bearer " + token}}, "203.0.113.5") ? 1 : 0;
  }
  EXPECT_EQ(allowed, 10);
  EXPECT_EQ(shop.allowed(10, {{"Authorization", bearer(R"({"sub":"victim"})")}}, "203.0.113.5"), 5);
}

TEST(PublicReports, public_report_50_an_unknown_source_is_refused_at_load) {
  const KeyFolder folder;
  EXPECT_EQ(
      folder.findings("  rate_limits: [ { actions: [ user ] } ]\n"),
      "p.yaml:3:31: error: unknown action \"user\"; there are generic_key, remote_address, masked_remote_address, "
      "request_headers, header_value_match, query_parameters, query_parameter_value_match, jwt_claim, api_key, "
      "cookie, method, path, route, cost\n");
}

TEST(Dimensions, a_request_over_its_address_takes_nothing_from_all) {
  Shop shop(R"(
domain: shop
descriptors:
  - key: generic_key
    value: global
    rate_limit: { name: Global, unit: second, requests_per_unit: 10000, algorithm: token_bucket, burst: 15000 }
  - key: remote_address
    rate_limit: { name: PerAddress, unit: second, requests_per_unit: 50, algorithm: token_bucket, burst: 100 }
  - key: user
    rate_limit: { name: PerUser, unit: second, requests_per_unit: 100, algorithm: token_bucket, burst: 200 }
requests:
  trusted_proxies: []
  rate_limits:
    - actions: [ { generic_key: { descriptor_value: global } } ]
    - actions: [ remote_address ]
    - actions: [ { request_headers: { header_name: x-user, descriptor_key: user } } ]
)");
  const auto remaining = [&](std::size_t which) { return shop.answer().statuses[which].decision.remaining; };
  EXPECT_EQ(shop.allowed(150, {{"x-user", "u"}}, "203.0.113.1"), 100);
  EXPECT_EQ(shop.answer().deciding->name, "PerAddress");
  EXPECT_EQ(remaining(0), 14'900U);
  EXPECT_EQ(remaining(2), 100U);
  EXPECT_EQ(shop.allowed(150, {{"x-user", "u"}}, "203.0.113.2"), 100);
  EXPECT_EQ(remaining(0), 14'800U);
  // The user's 200 are gone: another address does not help, and pays nothing.
  EXPECT_EQ(shop.allowed(50, {{"x-user", "u"}}, "203.0.113.3"), 0);
  EXPECT_EQ(shop.answer().deciding->name, "PerUser");
  EXPECT_EQ(remaining(0), 14'800U);
  EXPECT_EQ(remaining(1), 100U);
}

}  // namespace
}  // namespace sluice::request
