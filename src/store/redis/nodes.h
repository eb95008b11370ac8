// All servers as the whole process sees them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/redis/node.h"
#include "store/redis/notices.h"
#include "store/redis/server_health.h"

namespace sluice::store::redis {

/// What the stores of all io threads share: a breaker for each server. Logs each change of a server's state, once.
/// Thread-safe.
class Nodes {
 public:
  explicit Nodes(const Node::Options& options);

  /// The one of this name; made when nobody has it yet.
  [[nodiscard]] std::shared_ptr<Node> at(const std::string& name);
  /// A server that some thread has.
  struct Server {
    std::string name;
    bool is_open = false;     ///< its breaker
    bool is_failing = false;  ///< checks of its keys
  };
  [[nodiscard]] std::vector<Server> servers();
  /// A cluster's map has been found, or nobody tells it. Logs the first and each change.
  void tell_map(bool is_found, std::string_view why);
  /// Of a cluster's slots so many have no master. Logs each change.
  void tell_unserved(std::size_t slots);
  /// The server that is connected to as the master of this name. Logs the first and each change.
  void tell_master(const std::string& name, const std::string& server);
  /// Checks whose keys no server is known to serve.
  [[nodiscard]] ServerHealth& unserved() { return unserved_; }
  /// One more of them.
  void unserved_check(std::int64_t now);
  /// A line for each server that cannot be asked or whose checks fail, and why; empty: all is well.
  [[nodiscard]] std::string trouble();
  /// What all threads would say of the files that they share.
  [[nodiscard]] Notices& notices() { return notices_; }
  /// Is a line due on keys that cannot be used? They fail each check, so these lines are rationed.
  [[nodiscard]] bool may_tell_of_key(std::int64_t now);

 private:
  const Node::Options options_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Node>> nodes_;
  std::optional<bool> told_;
  std::string no_map_;  ///< why nobody tells the map
  std::size_t told_unserved_ = 0;
  std::string master_;
  Notices notices_;
  std::atomic<std::int64_t> key_told_at_{0};  ///< steady ns; 0: never
  ServerHealth unserved_;
};

}  // namespace sluice::store::redis
