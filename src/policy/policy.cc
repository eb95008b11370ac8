#include "policy/policy.h"

#define XXH_INLINE_ALL  // the calls are a few ns each
#include <xxhash.h>

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <limits>

#include "policy/glob.h"
#include "policy/key_encoding.h"
#include "policy/policy_builder.h"
#include "store/limit_ids.h"

namespace sluice::policy {

class Domain {
 public:
  Domain(std::string_view domain_name, NodeId domain_root) : name(domain_name), root(domain_root) {}
  std::string name;
  NodeId root;
};

namespace {

/// The way from a level to one below it. An empty value is the bare key.
struct Edge {
  NodeId parent = 0;
  std::string_view key;
  std::string_view value;
  std::uint64_t hash = 0;  ///< of all three
  friend bool operator==(const Edge& a, const Edge& b) {
    return a.hash == b.hash && a.parent == b.parent && a.key == b.key && a.value == b.value;
  }
};

struct EdgeHash {
  using is_avalanching = void;
  std::size_t operator()(const Edge& edge) const { return edge.hash; }
};

std::uint64_t hash_key(NodeId parent, std::string_view key) {
  return XXH3_64bits_withSeed(key.data(), key.size(), parent);
}
std::uint64_t hash_value(std::uint64_t of_key, std::string_view value) {
  return XXH3_64bits_withSeed(value.data(), value.size(), of_key);
}

struct NameHash {
  using is_avalanching = void;
  std::size_t operator()(std::string_view name) const { return XXH3_64bits(name.data(), name.size()); }
};

struct Wildcard {
  Glob key;
  std::optional<Glob> value;  ///< none: any
  NodeId child = 0;
};

struct Node {
  const Rule* rule = nullptr;
  bool has_levels_below = false;
  std::vector<Wildcard> wildcards;   ///< of the level below, in file order
  std::vector<KeyLevel> key_levels;  ///< of the rule; empty: all are plain
};

constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();

}  // namespace

struct Policy::Impl {
  std::deque<std::string> texts;  ///< what the views in `edges` are of
  std::vector<Node> nodes;
  boost::unordered_flat_map<Edge, NodeId, EdgeHash> edges;
  std::deque<Domain> domains;
  boost::unordered_flat_map<std::string_view, const Domain*, NameHash> domains_by_name;
  std::deque<Rule> owned_rules;
  std::vector<const Rule*> rules;
  std::vector<std::shared_ptr<const request::Rules>> requests;
  std::optional<EnvoyRules> envoy;

  [[nodiscard]] NodeId find(NodeId parent, const Entry& entry) const {
    const Node& node = nodes[parent];
    if (!node.has_levels_below) return kNoNode;
    const std::uint64_t of_key = hash_key(parent, entry.key);
    if (!entry.value.empty()) {
      const auto exact = edges.find(Edge{parent, entry.key, entry.value, hash_value(of_key, entry.value)});
      if (exact != edges.end()) return exact->second;
    }
    for (const Wildcard& wildcard : node.wildcards) {
      if (wildcard.key.matches(entry.key) && (!wildcard.value || wildcard.value->matches(entry.value))) {
        return wildcard.child;
      }
    }
    const auto bare = edges.find(Edge{parent, entry.key, {}, of_key});
    return bare != edges.end() ? bare->second : kNoNode;
  }
};

Policy::Policy() = default;
Policy::~Policy() = default;

const Domain* Policy::find_domain(std::string_view name) const {
  const auto found = impl_->domains_by_name.find(name);
  return found != impl_->domains_by_name.end() ? found->second : nullptr;
}

std::vector<std::string_view> Policy::domain_names() const {
  std::vector<std::string_view> names;
  for (const Domain& domain : impl_->domains) names.emplace_back(domain.name);
  return names;
}

const Rule* Policy::match(const Domain& domain, std::span<const Entry> entries, std::string& key) const {
  NodeId at = domain.root;
  for (const Entry& entry : entries) {
    at = impl_->find(at, entry);
    if (at == kNoNode) return nullptr;
  }
  const Node& node = impl_->nodes[at];
  if (node.rule == nullptr) return nullptr;
  KeyWriter writer(key);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const KeyLevel* level = node.key_levels.empty() ? nullptr : &node.key_levels[i];
    if (level == nullptr || level->is_plain()) {
      writer.add_value(entries[i].value);
    } else if (!level->shared.empty()) {
      // Only the value is shared: each key that a pattern meets counts for itself.
      if (level->with_key) {
        writer.add_pair(entries[i].key, level->shared);
      } else {
        writer.add_value(level->shared);
      }
    } else {
      writer.add_pair(entries[i].key, entries[i].value);
    }
  }
  writer.finish();
  return node.rule;
}

bool Policy::can_match(const Domain& domain, std::span<const Entry> entries) const {
  std::vector<NodeId> at{domain.root};
  for (const Entry& entry : entries) {
    std::vector<NodeId> below;
    for (const auto& [edge, child] : impl_->edges) {
      if (edge.key != entry.key || !std::ranges::binary_search(at, edge.parent)) continue;
      if (entry.value.empty() || edge.value.empty() || edge.value == entry.value) below.push_back(child);
    }
    for (const NodeId node : at) {
      for (const Wildcard& wildcard : impl_->nodes[node].wildcards) {
        if (!wildcard.key.matches(entry.key)) continue;
        if (entry.value.empty() || !wildcard.value || wildcard.value->matches(entry.value)) {
          below.push_back(wildcard.child);
        }
      }
    }
    std::ranges::sort(below);
    at = std::move(below);
  }
  return std::ranges::any_of(at, [this](NodeId node) { return impl_->nodes[node].rule != nullptr; });
}

std::span<const Rule* const> Policy::rules() const { return impl_->rules; }

const EnvoyRules* Policy::envoy() const { return impl_->envoy ? &*impl_->envoy : nullptr; }

std::span<const std::shared_ptr<const request::Rules>> Policy::requests() const { return impl_->requests; }

PolicyBuilder::PolicyBuilder(const std::optional<EnvoyRules>& envoy) : impl_(std::make_unique<Policy::Impl>()) {
  impl_->envoy = envoy;
}
PolicyBuilder::~PolicyBuilder() = default;

NodeId PolicyBuilder::add_domain(std::string_view name) {
  const auto root = static_cast<NodeId>(impl_->nodes.size());
  impl_->nodes.emplace_back();
  const Domain& domain = impl_->domains.emplace_back(name, root);
  impl_->domains_by_name.emplace(domain.name, &domain);
  return root;
}

NodeId PolicyBuilder::add_level(NodeId parent, std::string_view key, std::string_view value) {
  const auto child = static_cast<NodeId>(impl_->nodes.size());
  impl_->nodes.emplace_back();
  Node& above = impl_->nodes[parent];
  above.has_levels_below = true;
  const std::string_view own_key = impl_->texts.emplace_back(key);
  const std::string_view own_value = impl_->texts.emplace_back(value);
  const std::uint64_t of_key = hash_key(parent, key);
  // A pattern is also found by its own text, before the other patterns.
  impl_->edges.emplace(Edge{parent, own_key, own_value, value.empty() ? of_key : hash_value(of_key, value)}, child);
  if (Glob::is_pattern(key) || Glob::is_pattern(value)) {
    above.wildcards.push_back({Glob(key), value.empty() ? std::nullopt : std::optional<Glob>(value), child});
  }
  return child;
}

void PolicyBuilder::set_rule(NodeId node, Rule rule, std::vector<KeyLevel> key_levels) {
  rule.slot = static_cast<std::uint32_t>(impl_->rules.size());
  impl_->rules.push_back(&impl_->owned_rules.emplace_back(std::move(rule)));
  impl_->nodes[node].rule = impl_->rules.back();
  if (!std::ranges::all_of(key_levels, &KeyLevel::is_plain)) impl_->nodes[node].key_levels = std::move(key_levels);
}

void PolicyBuilder::add_requests(std::shared_ptr<const request::Rules> rules) {
  impl_->requests.push_back(std::move(rules));
}

std::shared_ptr<const Policy> PolicyBuilder::build() {
  // Only now, as an identity that has a number keeps it for the life of the process.
  for (Rule& rule : impl_->owned_rules) rule.counted.id = store::limit_id(rule.counted.identity);
  std::shared_ptr<Policy> policy(new Policy());
  policy->impl_ = std::move(impl_);
  return policy;
}

}  // namespace sluice::policy
