#include "limiter/charge_list.h"

#include <algorithm>
#include <string_view>

#include "limiter/hold.h"
#include "policy/metric_path.h"

namespace sluice::limiter {

void ChargeList::clear() {
  overrides_.clear();
  keys_.clear();
  matched_.clear();
  charges_.clear();
  first_descriptors_.clear();
}

void ChargeList::collect(const Request& request, const policy::Policy& policy, const policy::Domain& domain,
                         bool wants_names) {
  clear();
  match(request, policy, domain);
  drop_replaced();
  if (wants_names) name(request);
  collect_charges(policy.envoy() == nullptr || !policy.envoy()->counts_each());
  if (request.reserve.count() > 0 && !charges_.empty()) {
    charges_.push_back(
        {.limit = &reservation_limit(reservation_life(request.reserve)), .key = place_of(charges_.front().key)});
  }
}

bool ChargeList::has_leases() const {
  return std::ranges::any_of(own_charges(), [](const store::Charge& charge) {
    return charge.limit->numbers.algorithm == Algorithm::concurrency;
  });
}

void ChargeList::match(const Request& request, const policy::Policy& policy, const policy::Domain& domain) {
  for (const Descriptor& descriptor : request.descriptors) {
    Matched matched{.cost = std::min(cost_of(descriptor, request), store::kNeverFits), .key_begin = keys_.size()};
    if (descriptor.limit) {
      matched.is_override = true;
      matched.rule = &overrides_.emplace_back(
          policy::make_override_rule(request.domain, descriptor.entries, *descriptor.limit, keys_, policy.envoy()));
    } else {
      matched.rule = policy.match(domain, descriptor.entries, keys_);
    }
    matched.key_end = keys_.size();
    matched_.push_back(matched);
  }
}

/// As in envoyproxy/ratelimit, what is itself replaced still replaces others.
void ChargeList::drop_replaced() {
  const auto replaces = [](const Matched& one, const std::string& name) {
    return one.rule != nullptr && std::ranges::find(one.rule->replaces, name) != one.rule->replaces.end();
  };
  const auto has_any = [](const Matched& one) { return one.rule != nullptr && !one.rule->replaces.empty(); };
  if (std::ranges::none_of(matched_, has_any)) return;
  // Nothing is dropped before all have been judged.
  replaced_.assign(matched_.size(), false);
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    const policy::Rule* rule = matched_[i].rule;
    replaced_[i] = rule != nullptr && !rule->name.empty() &&
                   std::ranges::any_of(matched_, [&](const Matched& one) { return replaces(one, rule->name); });
  }
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    if (replaced_[i]) matched_[i].rule = nullptr;
  }
}

void ChargeList::name(const Request& request) {
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    Matched& matched = matched_[i];
    if (matched.rule == nullptr) continue;
    const std::span<const Entry> entries = request.descriptors[i].entries;
    matched.stats_name = policy::clean_metric_name(request.domain) + ".";
    matched.stats_name +=
        matched.is_override ? policy::metric_path_of(entries) : policy::metric_path_for(*matched.rule, entries);
  }
}

void ChargeList::collect_charges(bool sums_equal) {
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    Matched& matched = matched_[i];
    const policy::Rule* rule = matched.rule;
    if (rule == nullptr || rule->unlimited) continue;
    const std::string_view key = std::string_view(keys_).substr(matched.key_begin, matched.key_end - matched.key_begin);
    const auto same = std::ranges::find_if(charges_, [&](const store::Charge& charge) {
      return sums_equal && charge.limit->id == rule->counted.id && charge.key == key;
    });
    matched.charge = static_cast<std::size_t>(same - charges_.begin());
    if (same == charges_.end()) {
      charges_.push_back({&rule->counted, key, matched.cost, rule->enforcement});
      first_descriptors_.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    same->cost = std::min(same->cost + matched.cost, store::kNeverFits);
  }
}

}  // namespace sluice::limiter
