// All servers as the whole process sees them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "store/redis/node.h"

namespace sluice::store::redis {

/// What the stores of all io threads share: a breaker for each server. Logs each change of a server's state, once.
/// Thread-safe.
class Nodes {
 public:
  explicit Nodes(const Node::Options& options) : options_(options) {}

  /// The one of this name; made when nobody has it yet.
  [[nodiscard]] std::shared_ptr<Node> at(const std::string& name);
  /// A cluster's map has been found, or nobody tells it. Logs the first and each change.
  void tell_map(bool is_found, std::string_view why);

 private:
  const Node::Options options_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Node>> nodes_;
  std::optional<bool> told_;
};

}  // namespace sluice::store::redis
