// Policy files → a snapshot.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "policy/field_reader.h"
#include "policy/findings.h"
#include "policy/first_document.h"
#include "policy/glob.h"
#include "policy/identity.h"
#include "policy/limit_reader.h"
#include "policy/metric_path.h"
#include "policy/place_names.h"
#include "policy/policy.h"
#include "policy/policy_builder.h"
#include "policy/requests_reader.h"
#include "policy/yaml_to_json.h"
#include "yaml/tree.h"

namespace sluice::policy {
namespace {

/// One level on the way to a limit.
struct Level {
  std::string_view key;
  std::string_view value;
  bool share = false;
  bool value_to_metric = false;

  [[nodiscard]] std::string composite() const {
    return value.empty() ? std::string(key) : fmt::format("{}_{}", key, value);
  }
  /// The text in place of which requests have one of their own.
  [[nodiscard]] std::string_view open_part() const { return value.empty() ? key : value; }
  /// Does more than one pair of key and value match?
  [[nodiscard]] bool is_open() const { return value.empty() || is_pattern(); }
  [[nodiscard]] bool is_pattern() const { return Glob::is_pattern(key) || Glob::is_pattern(value); }
};

/// The descriptors of one level that have been read, by their name.
using Composites = std::unordered_map<std::string, yaml::Position>;

/// Where a domain was first seen, and its first level, which other files may add to.
struct DomainPlace {
  std::string file;
  yaml::Position position;
  NodeId root = 0;
  Composites composites;
};

using DomainPlaces = std::unordered_map<std::string, DomainPlace>;

/// A `requests:` and where it stands: its domain may be that of another file.
struct PlacedRequests {
  std::shared_ptr<const request::Rules> rules;
  std::string file;
  yaml::Position position;
};

/// Reads one file's document into the builder.
class FileLoader {
 public:
  FileLoader(const LoadOptions& options, Findings& findings, DomainPlaces& domains,
             std::vector<PlacedRequests>& requests, PolicyBuilder& builder)
      : options_(options), findings_(findings), domains_(domains), requests_(requests), builder_(builder) {}

  void load(std::string_view text) {
    yaml::Tree tree;
    if (options_.envoy) {
      // There whatever stands behind the first document does not keep it from loading.
      const FirstDocument first = first_document(text);
      text = first.text;
      if (first.rest_line > 0) {
        findings_.warning({first.rest_line, 1},
                          "only the first YAML document counts; give each domain a file of its own");
      }
    }
    if (const auto problem = yaml::Tree::parse(text, tree)) {
      findings_.error(problem->position, problem->message);
      return;
    }
    const auto& documents = tree.documents();
    if (documents.empty()) {
      findings_.error({}, "the file is empty; expected a `domain` and its `descriptors`");
      return;
    }
    if (documents.size() > 1) {
      findings_.error(
          documents[1]->position,
          fmt::format("expected one YAML document, found {}; give each domain a file of its own", documents.size()));
      return;
    }
    read_root(*documents.front());
  }

 private:
  void read_root(const yaml::Node& root) {
    if (root.kind != yaml::Node::Kind::map) {
      findings_.error(root.position,
                      fmt::format("expected a map with a `domain` and its `descriptors`, found {}", described(root)));
      return;
    }
    const FieldReader fields(root, findings_);
    if (fields.find("apiVersion") != nullptr && fields.find("kind") != nullptr) {
      findings_.error(
          root.position,
          "this is a Kubernetes object; expected the policy itself. Mount the ConfigMap and give its directory, or "
          "save each entry of its `data` as a file");
      return;
    }
    check_names(fields, Place::root, findings_);
    const Field* requests = fields.find("requests");
    const bool is_requests_alone =
        requests != nullptr && fields.find("domain") == nullptr && fields.find("descriptors") == nullptr;
    if (is_requests_alone) {
      read_requests_of(*requests);
      return;
    }
    DomainPlace nameless;
    DomainPlace* const known = read_domain(root, fields);
    DomainPlace& place = known != nullptr ? *known : nameless;
    if (known == nullptr) place.root = builder_.add_domain(domain_);
    on_store_failure_ = read_on_store_failure(fields, findings_).value_or(OnStoreFailure::local);
    leases_ = fields.boolean("leases").value_or(false);
    if (leases_ && requests != nullptr) {
      findings_.error(
          requests->key->position,
          "`requests` has no place beside `leases: true`: a proxy that asks by them cannot release a lease");
    }
    read_level(fields, place.root, place.composites);
    if (!merges_domains()) check_replaced_names();
    if (requests != nullptr) read_requests_of(*requests);
  }

  void read_requests_of(const Field& field) {
    auto rules = read_requests(*field.value, domain_, findings_);
    if (rules != nullptr) requests_.push_back({std::move(rules), findings_.file(), field.key->position});
  }

  [[nodiscard]] bool merges_domains() const { return options_.envoy && options_.envoy->merge_domains; }

  /// Null, and a finding, when the domain cannot have these descriptors.
  DomainPlace* read_domain(const yaml::Node& root, const FieldReader& fields) {
    const Field* field = fields.find("domain");
    domain_ = fields.text("domain").value_or("");
    const yaml::Position position = field != nullptr ? field->value->position : root.position;
    if (domain_.empty()) {
      const bool has_wrong_type = field != nullptr && field->value->kind != yaml::Node::Kind::scalar;
      if (!has_wrong_type) findings_.error(position, "`domain` must be a name, found none");
      return nullptr;
    }
    const auto [first, is_new] = domains_.try_emplace(domain_);
    DomainPlace& place = first->second;
    if (is_new) {
      place = {.file = findings_.file(), .position = position, .root = builder_.add_domain(domain_), .composites = {}};
      return &place;
    }
    if (merges_domains()) return &place;
    findings_.error(position, fmt::format("the domain {} is already that of {}:{}:{}; a domain is one file",
                                          quote(domain_), place.file, place.position.line, place.position.column));
    return nullptr;
  }

  /// The `descriptors` below a level.
  void read_level(const FieldReader& fields, NodeId parent, Composites& composites) {
    for (const yaml::Node* descriptor : fields.maps("descriptors")) read_descriptor(*descriptor, parent, composites);
  }

  void read_descriptor(const yaml::Node& map, NodeId parent, Composites& composites) {
    const FieldReader fields(map, findings_);
    check_names(fields, Place::descriptor, findings_);
    Level level;
    level.key = fields.text("key").value_or("");
    level.value = fields.text("value").value_or("");
    level.share = fields.boolean("share_threshold").value_or(false);
    level.value_to_metric = fields.boolean("value_to_metric").value_or(false);
    if (level.key.empty()) {
      const Field* key = fields.find("key");
      const bool has_wrong_type = key != nullptr && key->value->kind != yaml::Node::Kind::scalar;
      if (!has_wrong_type) {
        findings_.error(key != nullptr ? key->value->position : map.position, "a descriptor needs a `key`, found none");
      }
    } else if (!check_composite(level, map, composites)) {
      level.key = {};
    }
    if (level.share && !level.is_pattern()) {
      findings_.error(fields.find("share_threshold")->key->position,
                      fmt::format("`share_threshold` is for patterns: expected a `*` in the key or value, found {}",
                                  quote(level.composite())));
    }
    // Go on below even a descriptor that is wrong, so that all errors are found at once.
    const NodeId node = level.key.empty() ? builder_.add_level(parent, spare_key(), {})
                                          : builder_.add_level(parent, level.key, level.value);
    path_.push_back(level);
    read_rule(fields, node);
    Composites below;
    read_level(fields, node, below);
    path_.pop_back();
  }

  /// False, and a finding, when another descriptor of this level goes by the same name.
  bool check_composite(const Level& level, const yaml::Node& map, Composites& composites) {
    const auto [first, is_new] = composites.emplace(level.composite(), map.position);
    if (is_new) return true;
    findings_.error(map.position, fmt::format("the descriptor {} is already on this level, at line {}",
                                              quote(level.composite()), first->second.line));
    return false;
  }

  /// A key for a level that cannot be built; its policy is never used.
  std::string_view spare_key() { return spare_keys_.emplace_back(std::to_string(spare_keys_.size())); }

  void read_rule(const FieldReader& fields, NodeId node) {
    const bool shadow = fields.boolean("shadow_mode").value_or(false);
    const bool quota = fields.boolean("quota_mode").value_or(false);
    const bool detailed = fields.boolean("detailed_metric").value_or(false);
    const Field* limit = fields.find("rate_limit");
    warn_of_idle_switches(fields, limit == nullptr, shadow, quota, detailed);
    if (limit == nullptr) return;
    if (limit->value->kind != yaml::Node::Kind::map) {
      findings_.error(limit->value->position,
                      fmt::format("`rate_limit` must be a map, found {}", described(*limit->value)));
      return;
    }
    std::optional<LimitText> text = read_limit(*limit->value, options_, findings_);
    if (!text) return;
    if (text->numbers.algorithm == Algorithm::concurrency && !text->unlimited && !leases_) {
      // A lease that nobody can release would stay held for its whole ttl.
      findings_.error(
          limit->value->position,
          "algorithm concurrency gives leases, which Envoy's RateLimitService, /json and forward auth cannot "
          "give back; expected `leases: true` beside `domain`, which closes the domain's leases to them, and "
          "callers that acquire and release");
      return;
    }
    for (const std::string& name : text->replaces) replaced_.emplace_back(name, limit->value->position);
    if (!text->name.empty()) names_.insert(text->name);
    store::Enforcement enforcement = store::Enforcement::enforce;
    if (quota || (options_.envoy && options_.envoy->quota_mode)) enforcement = store::Enforcement::quota;
    if (shadow) enforcement = store::Enforcement::shadow;
    add_rule(std::move(*text), enforcement, detailed, metadata_of(fields), node);
  }

  void warn_of_idle_switches(const FieldReader& fields, bool no_limit, bool shadow, bool quota, bool detailed) {
    const auto warn = [&](std::string_view name, std::string_view why) {
      findings_.warning(fields.find(name)->key->position, fmt::format("`{}` does nothing {}", name, why));
    };
    if (no_limit) {
      if (shadow) warn("shadow_mode", "without a `rate_limit` beside it");
      if (quota) warn("quota_mode", "without a `rate_limit` beside it");
      if (detailed) warn("detailed_metric", "without a `rate_limit` beside it");
      if (fields.find("metadata") != nullptr) warn("metadata", "without a `rate_limit` beside it");
    } else if (shadow && quota) {
      warn("quota_mode", "beside `shadow_mode`");
    }
    if (detailed && path_.back().value_to_metric) warn("value_to_metric", "beside `detailed_metric`");
  }

  std::string metadata_of(const FieldReader& fields) {
    const Field* field = fields.find("metadata");
    if (field == nullptr) return {};
    if (field->value->kind != yaml::Node::Kind::map) {
      findings_.error(field->value->position,
                      fmt::format("`metadata` must be a map, found {}", described(*field->value)));
      return {};
    }
    std::string json;
    append_json(*field->value, json);
    return json;
  }

  void add_rule(LimitText text, store::Enforcement enforcement, bool detailed, std::string metadata, NodeId node) {
    Rule rule;
    std::vector<PathStep> steps;
    std::vector<KeyLevel> key_levels;
    std::string metric_path;
    bool has_runtime_value = false;
    for (const Level& level : path_) {
      steps.push_back({level.key, level.value});
      key_levels.push_back({.with_key = Glob::is_pattern(level.key),
                            .shared = std::string(level.share ? level.open_part() : std::string_view{})});
      const std::string name = level.composite();
      metric_path += metric_path.empty() ? name : "." + name;
      const bool runtime = level.is_open() && !level.share && (detailed || level.value_to_metric);
      rule.metric_levels.push_back({name, runtime});
      has_runtime_value = has_runtime_value || runtime;
    }
    if (!has_runtime_value) rule.metric_levels.clear();
    rule.counted.numbers = text.numbers;
    rule.counted.identity = make_identity(domain_, steps, text.numbers.algorithm);
    rule.counted.on_store_failure = text.on_store_failure.value_or(on_store_failure_);
    if (options_.envoy && !text.unlimited) count_as_envoy(rule.counted, *options_.envoy);
    rule.enforcement = enforcement;
    rule.unlimited = text.unlimited;
    rule.name = std::move(text.name);
    rule.replaces = std::move(text.replaces);
    rule.requests_per_unit = text.requests_per_unit;
    rule.unit = text.unit;
    rule.metric_path = clean_metric_name(metric_path);
    rule.metadata = std::move(metadata);
    rule.domain = domain_;
    rule.denial = std::move(text.denial);
    rule.holds = text.holds;
    rule.overflow = std::move(text.overflow);
    builder_.set_rule(node, std::move(rule), std::move(key_levels));
  }

  void check_replaced_names() {
    for (const auto& [name, position] : replaced_) {
      if (names_.contains(name)) continue;
      findings_.warning(position,
                        fmt::format("`replaces` names {}, but no limit of this domain is named so", quote(name)));
    }
  }

  const LoadOptions& options_;
  Findings& findings_;
  DomainPlaces& domains_;
  std::vector<PlacedRequests>& requests_;
  PolicyBuilder& builder_;
  std::string domain_;
  OnStoreFailure on_store_failure_ = OnStoreFailure::local;
  bool leases_ = false;  ///< its callers acquire and release
  std::vector<Level> path_;
  std::vector<std::string> spare_keys_;
  std::unordered_set<std::string> names_;
  std::vector<std::pair<std::string, yaml::Position>> replaced_;
};

/// What makes one of `requests` useless: a domain that there is not, or that another has already.
std::optional<std::string> problem_of(const std::vector<PlacedRequests>& requests, std::size_t index,
                                      const DomainPlaces& domains) {
  const std::string& domain = requests[index].rules->domain;
  if (!domains.contains(domain)) {
    return fmt::format("`requests` is for the domain {}, but no policy file has it", quote(domain));
  }
  for (std::size_t i = 0; i < index; ++i) {
    const PlacedRequests& other = requests[i];
    if (other.rules->domain != domain) continue;
    return fmt::format("the domain {} has `requests` already at {}:{}:{}", quote(domain), other.file,
                       other.position.line, other.position.column);
  }
  return std::nullopt;
}

/// What a descriptor may consist of: each action's own entry, or what stands in for it.
std::vector<std::vector<Entry>> forms_of(const request::DescriptorRule& rule) {
  constexpr std::size_t most = 64;
  std::vector<std::vector<Entry>> forms(1);
  for (const request::Action& action : rule.actions) {
    std::vector<const request::Action*> ways{&action};
    while (!ways.back()->instead.empty()) ways.push_back(&ways.back()->instead.front());
    std::vector<std::vector<Entry>> longer;
    for (const request::Action* const way : ways) {
      for (const std::vector<Entry>& form : forms) {
        if (longer.size() == most) break;
        longer.push_back(form);
        longer.back().push_back({.key = way->key, .value = way->value});
      }
    }
    forms = std::move(longer);
  }
  return forms;
}

using DomainNames = std::unordered_set<std::string_view>;

DomainNames domains_with_limits(const Policy& policy) {
  DomainNames names;
  for (const Rule* limit : policy.rules()) names.insert(limit->domain);
  return names;
}

/// Whose requests all pass: somebody has forgotten what stands below.
void warn_of_domains_without_limits(const Policy& policy, const DomainNames& limited, const DomainPlaces& domains,
                                    Loaded& loaded) {
  for (const std::string_view name : policy.domain_names()) {
    const auto found = domains.find(std::string(name));
    if (found == domains.end() || limited.contains(name)) continue;
    const DomainPlace& place = found->second;
    loaded.findings.push_back({Finding::Severity::warning, place.file, place.position.line, place.position.column,
                               fmt::format("the domain {} has no limits: nothing is denied", quote(name))});
  }
}

/// A mapping that leads nowhere limits nothing, without a word.
void warn_of_useless_mappings(const Policy& policy, const DomainNames& limited,
                              const std::vector<PlacedRequests>& requests, Loaded& loaded) {
  for (const PlacedRequests& placed : requests) {
    const Domain* const domain = policy.find_domain(placed.rules->domain);
    if (domain == nullptr || !limited.contains(placed.rules->domain)) continue;
    for (const request::DescriptorRule& rule : placed.rules->descriptors) {
      for (const std::vector<Entry>& form : forms_of(rule)) {
        if (policy.can_match(*domain, form)) continue;
        std::vector<std::string> keys;
        keys.reserve(form.size());
        for (const Entry& entry : form) {
          keys.push_back(entry.value.empty() ? std::string(entry.key) : fmt::format("{}={}", entry.key, entry.value));
        }
        loaded.findings.push_back(
            {Finding::Severity::warning, placed.file, placed.position.line, placed.position.column,
             fmt::format("`requests` makes a descriptor of {}, for which the domain {} has no "
                         "limit: such requests are not limited by it",
                         quote(fmt::format("{}", fmt::join(keys, ", "))), quote(placed.rules->domain))});
      }
    }
  }
}

}  // namespace

Loaded load_texts(std::span<const SourceText> texts, const LoadOptions& options) {
  Loaded loaded;
  loaded.files = texts.size();
  PolicyBuilder builder(options.envoy);
  DomainPlaces domains;
  std::vector<PlacedRequests> requests;
  bool has_errors = false;
  for (const SourceText& text : texts) {
    Findings findings(text.name);
    FileLoader(options, findings, domains, requests, builder).load(text.text);
    has_errors = has_errors || findings.errors() > 0;
    findings.drain_to(loaded.findings);
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const PlacedRequests& placed = requests[i];
    if (auto problem = problem_of(requests, i, domains)) {
      has_errors = true;
      loaded.findings.push_back(
          {Finding::Severity::error, placed.file, placed.position.line, placed.position.column, *std::move(problem)});
    }
    builder.add_requests(placed.rules);
  }
  if (has_errors) return loaded;
  loaded.policy = builder.build();
  const DomainNames limited = domains_with_limits(*loaded.policy);
  warn_of_domains_without_limits(*loaded.policy, limited, domains, loaded);
  warn_of_useless_mappings(*loaded.policy, limited, requests, loaded);
  return loaded;
}

}  // namespace sluice::policy
