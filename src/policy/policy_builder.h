// How a snapshot is put together; for loaders only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"

namespace sluice::policy {

using NodeId = std::uint32_t;

/// Where an entry's part of the key comes from.
struct KeyLevel {
  bool with_key = false;  ///< the policy's key is a pattern, so the entry's key counts too
  std::string shared;     ///< not empty: this text in place of what the entry has (`share_threshold`)
  [[nodiscard]] bool is_plain() const { return !with_key && shared.empty(); }
};

/// Not thread-safe. Nodes are the levels of descriptors; what is added to a level must differ in (key, value).
class PolicyBuilder {
 public:
  explicit PolicyBuilder(const std::optional<EnvoyRules>& envoy = std::nullopt);
  ~PolicyBuilder();
  /// The domain's root. Precondition: a new name.
  NodeId add_domain(std::string_view name);
  /// A level below `parent`. An empty value matches any.
  NodeId add_level(NodeId parent, std::string_view key, std::string_view value);
  /// Makes a level count. `key_levels`: one for each entry, from the domain down.
  void set_rule(NodeId node, Rule rule, std::vector<KeyLevel> key_levels);
  void add_requests(std::shared_ptr<const request::Rules> rules);
  /// Ends the builder's life.
  [[nodiscard]] std::shared_ptr<const Policy> build();

 private:
  std::unique_ptr<Policy::Impl> impl_;
};

}  // namespace sluice::policy
