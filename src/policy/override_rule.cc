// Limits that requests bring themselves.
#include "policy/identity.h"
#include "policy/key_encoding.h"
#include "policy/limit_reader.h"
#include "policy/policy.h"
#include "store/limit_ids.h"

namespace sluice::policy {

Rule make_override_rule(std::string_view domain, std::span<const Entry> entries, const LimitOverride& limit,
                        std::string& key, const EnvoyRules* envoy) {
  const Unit unit = limit.unit == Unit::unknown ? Unit::second : limit.unit;
  Rule rule;
  rule.counted.numbers.algorithm = Algorithm::fixed_window;
  rule.counted.numbers.rate = limit.requests_per_unit;
  rule.counted.numbers.period = length_of(unit);
  if (envoy != nullptr) {
    count_as_envoy(rule.counted, *envoy);
    if (envoy->quota_mode) rule.enforcement = store::Enforcement::quota;
  }
  rule.counted.identity = make_override_identity(domain, name_of(unit));
  rule.counted.id = store::limit_id(rule.counted.identity);
  rule.requests_per_unit = limit.requests_per_unit;
  rule.unit = unit;
  rule.domain = domain;
  KeyWriter writer(key);
  for (const Entry& entry : entries) writer.add_pair(entry.key, entry.value);
  writer.finish();
  // Nothing of the request: this name stands in the head of answers.
  rule.metric_path = "override_" + std::string(name_of(unit));
  return rule;
}

}  // namespace sluice::policy
