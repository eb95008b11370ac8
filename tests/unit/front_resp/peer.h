// A peer of a connection: what it sends, what it gets, and the store behind that.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "front/resp/connection.h"
#include "policy/policy.h"
#include "tests/unit/front/slow_store.h"

namespace sluice::resp {

inline constexpr std::string_view kPolicy = R"(
domain: shop
leases: true
descriptors:
  - key: export
    rate_limit: { name: Exports, algorithm: concurrency, requests_per_unit: 1, ttl: 1h }
  - key: user
    rate_limit: { name: Daily, algorithm: token_bucket, period: 1d, requests_per_unit: 2 }
  - key: api
    rate_limit: { algorithm: token_bucket, period: 1d, requests_per_unit: 10 }
)";

/// As a client library sends it.
inline std::string command(const std::vector<std::string>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return out;
}

inline std::string five(int a, int b, int c, int d, int e) {
  std::string out = "*5\r\n";
  for (const int number : {a, b, c, d, e}) out += ":" + std::to_string(number) + "\r\n";
  return out;
}

class Peer final : private Connection::Host {
 public:
  Peer() { load(kPolicy); }
  void load(std::string_view policy) {
    const std::array<policy::SourceText, 1> texts = {{{"policy.yaml", std::string(policy)}}};
    policy::Loaded loaded = policy::load_texts(texts);
    EXPECT_TRUE(loaded.policy);
    policies.set(std::move(loaded.policy));
  }
  /// Made at first use, so that a test can set options before.
  Connection& connection() {
    if (!connection_) {
      Connection::Host& host = *this;
      const Environment environment{options, reader, store, shard, limits, is_certified};
      connection_ = std::make_unique<Connection>(environment, host, 7, clock.now());
    }
    return *connection_;
  }
  std::string talk(std::string_view bytes) {
    connection().feed(bytes, clock.now());
    return take();
  }
  /// Takes all output, as a peer that reads at once does.
  std::string take() {
    std::string all;
    while (!connection().output().empty()) {
      all += connection().output();
      connection().sent(connection().output().size(), clock.now());
    }
    return all;
  }
  /// Is it beyond waiting for?
  bool expires() {
    connection().expire(clock.now());
    return connection().aborted();
  }
  void disconnect() { connection_.reset(); }
  /// Answers what the store was asked longest ago, or last.
  std::string answer(bool newest = false) {
    store.answer(newest);
    return take();
  }

  front::ManualClock clock;
  policy::SnapshotHolder policies;
  policy::SnapshotReader reader{policies};
  front::SlowStore store;
  metrics::Registry registry;
  metrics::Shard& shard = registry.add_shard();
  ThrottleLimits limits;
  RespOptions options;
  bool is_certified = false;  ///< before the first use
  int resumed_count = 0;

 private:
  void resumed() override { ++resumed_count; }

  std::unique_ptr<Connection> connection_;
};

}  // namespace sluice::resp
