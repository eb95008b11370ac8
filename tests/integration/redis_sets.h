// Redis servers that work together, for tests: behind Sentinel, and as a cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/redis_server.h"

namespace sluice::testing {

/// Calls `done` every few ms until it is true; false: not within half a minute.
[[nodiscard]] bool wait_for(const std::function<bool()>& done);

/// How the servers of a set are made, beyond what makes them a set.
struct SetOptions {
  std::vector<std::string> options;  ///< of all, sentinels included
  std::string config;                ///< lines of the data servers' files
  std::string sentinel_config;       ///< lines of the sentinels' files
  ServerSetup setup;                 ///< of all; the password is also that by which they get at each other
  /// Of the data servers, in their order; those missing have the machine's time.
  std::vector<std::chrono::milliseconds> clocks_ahead;
};

/// A master, a replica and three sentinels that watch them. Throws std::runtime_error when it cannot be started.
class SentinelSet {
 public:
  static constexpr const char* kMaster = "mymaster";

  explicit SentinelSet(const SetOptions& options = {});

  /// redis-sentinel://…/mymaster
  [[nodiscard]] std::string url() const;
  /// Of the data servers, the one that the sentinels name.
  [[nodiscard]] RedisServer& master();
  /// The other one.
  [[nodiscard]] RedisServer& replica();
  /// Orders a switch, and waits until the sentinels name the other one.
  void fail_over();
  /// Waits until a sentinel names another than this one.
  void await_switch_from(const RedisServer& old_master);
  /// The same of all of them: until then one that does not know yet may take the old one for the master, when it is
  /// there again, and tell the new one to follow it.
  void await_agreement_against(const RedisServer& old_master);
  /// From here on sentinels take nobody for dead whom a busy machine keeps waiting, and so don't switch again.
  void be_patient();

 private:
  [[nodiscard]] std::uint16_t master_port(std::size_t sentinel = 0);

  const std::string scheme_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

/// A cluster of three masters with a replica each. Throws std::runtime_error when it cannot be started.
class ClusterSet {
 public:
  static constexpr std::size_t kMasters = 3;

  explicit ClusterSet(const SetOptions& options = {});

  /// redis+cluster://… with one master's and one replica's address.
  [[nodiscard]] std::string url() const;
  /// At first 0 … 2 are masters, and 3 … 5 their replicas in that order.
  [[nodiscard]] RedisServer& server(std::size_t index) { return *servers_[index]; }
  [[nodiscard]] std::size_t size() const { return servers_.size(); }
  /// Runs now, and is a master.
  [[nodiscard]] bool is_master(std::size_t index);
  /// The index of who serves a key.
  [[nodiscard]] std::size_t owner_of(const std::string& key);
  /// Moves a slot with its keys from one master to another, as resharding does.
  void move_slot(std::uint16_t slot, std::size_t from, std::size_t to);
  /// The first part of that: keys are asked for at the other one when they are not here.
  void begin_move(std::uint16_t slot, std::size_t from, std::size_t to);
  void end_move(std::uint16_t slot, std::size_t from, std::size_t to);
  /// Of that: one key, while its slot is being moved.
  void migrate(const std::string& key, std::size_t from, std::size_t to);

 private:
  [[nodiscard]] const std::string& id(std::size_t index);
  [[nodiscard]] bool is_whole();

  const SetOptions set_options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::string> ids_;
};

}  // namespace sluice::testing
