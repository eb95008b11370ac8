// What tests of Redis behind Sentinel and in a cluster share: callers under way, and what must hold at the end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fault/load.h"
#include "tests/integration/redis_secured.h"
#include "tests/integration/redis_sets.h"

namespace sluice::testing {

/// Prints a figure that was measured.
void note(const std::string& what, double value);
[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point begin);

/// Nothing was ever asked of these since they are replicas: no script, no read; and no call had keys of several slots.
void expect_untouched_replicas(SentinelSet& set);
void expect_untouched_replicas(ClusterSet& cluster);
/// This server has become a replica: what it did before is no longer counted.
void forget_calls(RedisServer& server);
/// Waits until it is a replica, and forgets.
void await_replica(RedisServer& server);

/// How often words are in a text.
[[nodiscard]] std::size_t times(const std::string& text, const std::string& words);
/// How often a log says that checks begin to fail, but for time-outs, which a busy machine has at any time.
[[nodiscard]] std::size_t failures_told(const std::string& log);

/// SLUICE_FAULT_ROUNDS: the long form of what has one, by hand.
[[nodiscard]] bool is_long();

/// SLUICE_REDIS_TLS=1 runs all of it over TLS, with the user of the manual; SLUICE_REDIS_SERVER=valkey-server on
/// Valkey.
class RedisTopology : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  void TearDown() override;

  /// From here on servers and callers have TLS and the least rights.
  void secure() { is_secure_ = true; }
  /// For the servers of a set whose user has the rights below a title of the manual.
  [[nodiscard]] SetOptions servers(std::string_view title);
  /// How a store reaches them.
  [[nodiscard]] store::redis::RedisOptions at(const std::string& url) const;

  /// Callers, by whom each key is asked for more than it has.
  void open(const std::string& url, std::size_t keys = 4, std::size_t callers = 8,
            std::chrono::microseconds pause = std::chrono::milliseconds(1));
  /// What a switch has made the servers forget may be had once more: told, and at most a burst a key.
  void expect_bound(std::uint64_t switches);
  [[nodiscard]] Load& load() { return *load_; }
  /// From here on what is logged is kept, until take_log().
  void keep_log();
  [[nodiscard]] std::string take_log();

  std::chrono::milliseconds timeout_{100};
  Limit bucket_{.algorithm = Algorithm::token_bucket, .rate = 50, .period = std::chrono::seconds(1), .burst = 20};

 private:
  bool is_secure_ = false;
  bool keeps_log_ = false;
  std::unique_ptr<SecuredRedis> secured_;
  std::unique_ptr<Load> load_;
};

}  // namespace sluice::testing
