#include "limiter/call.h"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "limiter/combine.h"

namespace sluice::limiter {
namespace {

std::uint64_t cost_of(const Descriptor& descriptor, const Request& request) {
  return descriptor.cost.value_or(request.cost);
}

}  // namespace

Call::~Call() { cancel(); }

store::Progress Call::start(const Request& request, const std::shared_ptr<const policy::Policy>& policy,
                            store::Store& store, Time now) {
  assert(pending_at_ == nullptr);
  answer_.problem = Answer::Problem::none;
  answer_.allowed = true;
  answer_.known_domain = true;
  answer_.statuses.clear();
  answer_.decision = Decision();
  answer_.deciding = nullptr;
  answer_.has_figures = true;
  overrides_.clear();
  keys_.clear();
  matched_.clear();
  charges_buffer_.clear();
  charge_descriptors_.clear();
  if (policy_ != policy) policy_ = policy;

  answer_.problem = problem_of(request);
  if (answer_.problem != Answer::Problem::none) return store::Progress::answered;
  answer_.statuses.resize(request.descriptors.size());
  const policy::Domain* domain = policy_->find_domain(request.domain);
  if (domain == nullptr) {
    answer_.known_domain = false;
    metrics_.add(metrics::Counter::unknown_domain);
    return store::Progress::answered;
  }
  match(request, *domain);
  drop_replaced();
  collect_charges();
  if (charges_buffer_.empty()) {
    finish();
    return store::Progress::answered;
  }

  decisions_buffer_.assign(charges_buffer_.size(), Decision());
  charges = charges_buffer_;
  decisions = decisions_buffer_;
  admitted = false;
  pending_at_ = &store;
  if (store.check(*this, now) == store::Progress::pending) return store::Progress::pending;
  pending_at_ = nullptr;
  finish();
  return store::Progress::answered;
}

void Call::cancel() {
  if (store::Store* store = std::exchange(pending_at_, nullptr)) store->cancel(*this);
}

void Call::complete() {
  pending_at_ = nullptr;
  finish();
  owner_.answered(*this);
}

Answer::Problem Call::problem_of(const Request& request) const {
  if (request.domain.empty()) return Answer::Problem::empty_domain;
  if (request.descriptors.empty()) return Answer::Problem::no_descriptors;
  for (const Descriptor& descriptor : request.descriptors) {
    if (cost_of(descriptor, request) > kMaxTokens) return Answer::Problem::cost_out_of_range;
  }
  return policy_ == nullptr ? Answer::Problem::no_policy : Answer::Problem::none;
}

void Call::match(const Request& request, const policy::Domain& domain) {
  for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
    const Descriptor& descriptor = request.descriptors[i];
    Matched matched{.key_begin = keys_.size(), .cost = cost_of(descriptor, request)};
    if (descriptor.limit) {
      matched.is_override = true;
      answer_.statuses[i].rule = &overrides_.emplace_back(
          policy::make_override_rule(request.domain, descriptor.entries, *descriptor.limit, keys_));
    } else {
      answer_.statuses[i].rule = policy_->match(domain, descriptor.entries, keys_);
    }
    matched.key_end = keys_.size();
    matched_.push_back(matched);
  }
}

/// As in envoyproxy/ratelimit, what is itself replaced still replaces others.
void Call::drop_replaced() {
  const auto replaces = [](const Status& status, const std::string& name) {
    return status.rule != nullptr && std::ranges::find(status.rule->replaces, name) != status.rule->replaces.end();
  };
  const auto has_any = [](const Status& status) { return status.rule != nullptr && !status.rule->replaces.empty(); };
  if (std::ranges::none_of(answer_.statuses, has_any)) return;
  // Nothing is dropped before all have been judged.
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    const policy::Rule* rule = answer_.statuses[i].rule;
    matched_[i].is_replaced =
        rule != nullptr && !rule->name.empty() &&
        std::ranges::any_of(answer_.statuses, [&](const Status& status) { return replaces(status, rule->name); });
  }
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    if (matched_[i].is_replaced) answer_.statuses[i].rule = nullptr;
  }
}

void Call::collect_charges() {
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    const policy::Rule* rule = answer_.statuses[i].rule;
    if (rule == nullptr || rule->unlimited) continue;
    Matched& matched = matched_[i];
    const std::string_view key = std::string_view(keys_).substr(matched.key_begin, matched.key_end - matched.key_begin);
    const auto same = std::ranges::find_if(charges_buffer_, [&](const store::Charge& charge) {
      return charge.limit->id == rule->counted.id && charge.key == key;
    });
    matched.charge = static_cast<std::size_t>(same - charges_buffer_.begin());
    if (same == charges_buffer_.end()) {
      charges_buffer_.push_back({&rule->counted, key, matched.cost, rule->enforcement});
      charge_descriptors_.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    same->cost = std::min(same->cost + matched.cost, store::kNeverFits);
  }
}

void Call::finish() {
  for (std::size_t i = 0; i < matched_.size(); ++i) {
    Status& status = answer_.statuses[i];
    if (status.rule == nullptr) continue;
    if (matched_[i].charge != kNoCharge) {
      status.decision = decisions_buffer_[matched_[i].charge];
      status.over_limit = !status.decision.allowed && status.rule->enforcement != store::Enforcement::shadow;
    }
    count(status, matched_[i]);
  }
  if (charges_buffer_.empty()) {
    decide_without_charges();
    return;
  }
  answer_.decision = combine(charges_buffer_, decisions_buffer_);
  answer_.decision.which = charge_descriptors_[answer_.decision.which];
  answer_.allowed = answer_.decision.allowed;
  answer_.deciding = answer_.statuses[answer_.decision.which].rule;
  answer_.has_figures = has_figures(answer_.decision.source);
}

/// Nothing was counted: the first limit that says unlimited decides, if there is one.
void Call::decide_without_charges() {
  const auto first =
      std::ranges::find_if(answer_.statuses, [](const Status& status) { return status.rule != nullptr; });
  if (first == answer_.statuses.end()) return;
  answer_.decision.which = static_cast<std::uint32_t>(first - answer_.statuses.begin());
  answer_.deciding = first->rule;
}

void Call::count(const Status& status, const Matched& matched) {
  using metrics::Counter;
  using metrics::Verdict;
  const bool fits = status.decision.allowed;
  if (matched.is_override) {
    metrics_.add(fits ? Counter::override_allowed : Counter::override_denied);
  } else if (fits) {
    metrics_.count(*status.rule, Verdict::allowed);
  } else {
    metrics_.count(*status.rule, status.over_limit ? Verdict::denied : Verdict::shadow_denied);
  }
}

}  // namespace sluice::limiter
