// A connection with everything below it real but the clock, for tests that speak HTTP by bytes.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/http/http_connection.h"
#include "policy/policy.h"
#include "policy/snapshot_holder.h"
#include "tests/unit/front/slow_store.h"

namespace sluice::http {

using front::ManualClock;
using front::SlowStore;

inline constexpr std::string_view kShopPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: ArticleCreate, unit: second, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
  - key: minute
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: api
    rate_limit: { name: api, unit: minute, requests_per_unit: 10 }
    descriptors:
      - key: path
        rate_limit: { name: path, unit: hour, requests_per_unit: 1000 }
  - key: shadowed
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: slow
    rate_limit: { unit: minute, requests_per_unit: 1, algorithm: token_bucket, burst: 1 }
  - key: free
    rate_limit: { unlimited: true }
)";

class Wire final : private HttpConnection::Host {
 public:
  explicit Wire(Role role = Role::service) {
    context.role = role;
    context.registry = &registry;
    load(kShopPolicy);
  }

  void load(std::string_view text) {
    const std::array<policy::SourceText, 1> texts = {{{"policy.yaml", std::string(text)}}};
    policy::Loaded loaded = policy::load_texts(texts);
    for (const policy::Finding& finding : loaded.findings) {
      EXPECT_NE(finding.severity, policy::Finding::Severity::error) << finding.to_string();
    }
    policies.set(std::move(loaded.policy));
  }

  /// The connection, made at first use so that a test can set options before.
  HttpConnection& connection() {
    if (!connection_) {
      HttpConnection::Host& host = *this;
      connection_ = std::make_unique<HttpConnection>(environment_, host, clock.now(), peer);
    }
    return *connection_;
  }
  void reconnect() { connection_.reset(); }
  /// Connects anew, with a certificate that is trusted.
  void certify() {
    environment_.is_certified = true;
    reconnect();
  }

  /// Gives bytes, takes what comes back.
  std::string talk(std::string_view bytes) {
    connection().feed(bytes, clock.now());
    return take();
  }
  /// Takes all output, as a peer that reads at once does.
  std::string take() {
    std::string all;
    while (!connection().output().empty()) {
      const std::string_view output = connection().output();
      all += output;
      connection().sent(output.size(), clock.now());
    }
    return all;
  }

  std::string peer;  ///< of connections to come
  ManualClock clock;
  policy::SnapshotHolder policies;
  policy::SnapshotReader reader{policies};
  SlowStore store;
  metrics::Registry registry;
  metrics::Shard& shard = registry.add_shard();
  HttpContext context;
  bool draining = false;
  int resumed_count = 0;

 private:
  void resumed() override { ++resumed_count; }

  Scratch scratch_;
  Environment environment_{context, reader, store, shard, clock, draining, scratch_, false};
  std::unique_ptr<HttpConnection> connection_;
};

inline std::string post(std::string_view path, std::string_view body, std::string_view fields = "") {
  std::string out = "POST ";
  out += path;
  out += " HTTP/1.1\r\nHost: test\r\n";
  out += fields;
  out += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  out += body;
  return out;
}

inline std::string get(std::string_view path, std::string_view method = "GET") {
  return std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n";
}

/// A response taken apart.
struct Response {
  int status = 0;
  std::string head;
  std::string body;

  /// A field's value; "" when it is missing, all of them joined by '|' when it is there several times.
  [[nodiscard]] std::string field(std::string_view name) const {
    std::string value;
    const std::string needle = "\r\n" + std::string(name) + ": ";
    for (std::size_t at = head.find(needle); at != std::string::npos; at = head.find(needle, at + 1)) {
      const std::size_t begin = at + needle.size();
      value += (value.empty() ? "" : "|") + head.substr(begin, head.find("\r\n", begin) - begin);
    }
    return value;
  }
};

/// Splits what a connection has sent into responses, by their Content-Length. `bodiless`: they answer HEAD.
inline std::vector<Response> parse_responses(std::string_view bytes, bool bodiless = false) {
  std::vector<Response> all;
  while (!bytes.empty()) {
    Response one;
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) {
      ADD_FAILURE() << "half a response: " << bytes;
      return all;
    }
    one.head = bytes.substr(0, end + 2);
    bytes.remove_prefix(end + 4);
    one.status = std::stoi(one.head.substr(9, 3));
    if (one.status != 100 && !bodiless) {
      const std::size_t length = std::stoul(one.field("Content-Length"));
      EXPECT_LE(length, bytes.size());
      one.body = bytes.substr(0, length);
      bytes.remove_prefix(length);
    }
    all.push_back(std::move(one));
  }
  return all;
}

inline Response parse_response(std::string_view bytes, bool bodiless = false) {
  const std::vector<Response> all = parse_responses(bytes, bodiless);
  EXPECT_EQ(all.size(), 1U) << bytes;
  return all.empty() ? Response{} : all.front();
}

inline std::string check_body(std::string_view key, std::string_view value, std::string_view rest = "") {
  return R"({"domain":"shop","descriptors":[{")" + std::string(key) + R"(":")" + std::string(value) + R"("}])" +
         std::string(rest) + "}";
}

}  // namespace sluice::http
