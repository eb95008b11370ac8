#include "limiter/call.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "limiter/combine.h"
#include "limiter/denial_log.h"
#include "limiter/dynamic_metadata.h"
#include "policy/metric_path.h"

namespace sluice::limiter {
namespace {

std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Call::~Call() { cancel(); }

store::Progress Call::start(const Request& request, const std::shared_ptr<const policy::Policy>& policy,
                            store::Store& store, Time now) {
  prepare(request, policy);
  return run(request, store, now);
}

void Call::prepare(const Request& request, const std::shared_ptr<const policy::Policy>& policy) {
  assert(pending_at_ == nullptr);
  answer_.allowed = true;
  answer_.known_domain = true;
  answer_.explain = request.explain;
  answer_.statuses.clear();
  answer_.decision = Decision();
  answer_.deciding = nullptr;
  answer_.has_figures = true;
  answer_.failure = store::Failure::none;
  answer_.dynamic_metadata.clear();
  answer_.hold.reset();
  list_.clear();
  if (policy_ != policy) policy_ = policy;

  answer_.problem = problem_of(request, policy_.get());
  if (answer_.problem != Answer::Problem::none) return;
  const policy::Domain* domain = policy_->find_domain(request.domain);
  answer_.known_domain = domain != nullptr;
  if (domain == nullptr) return;
  answer_.statuses.resize(request.descriptors.size());
  list_.collect(request, *policy_, *domain, metrics_.limit_stats() != nullptr);
  if (!list_.has_leases() || request.leases || request.peek) return;
  answer_.statuses.clear();
  answer_.problem = Answer::Problem::needs_lease;
}

store::Progress Call::run(const Request& request, store::Store& store, Time now) {
  metrics::LimitStats* const stats = metrics_.limit_stats();
  if (answer_.problem != Answer::Problem::none) {
    if (stats != nullptr && answer_.problem != Answer::Problem::needs_lease) stats->count_service_error();
    return store::Progress::answered;
  }
  const policy::EnvoyRules* const envoy = policy_->envoy();
  if (envoy != nullptr && envoy->dynamic_metadata) answer_.dynamic_metadata = described(request);
  if (!answer_.known_domain) {
    answer_.statuses.resize(request.descriptors.size());
    metrics_.add(metrics::Counter::unknown_domain);
    if (stats != nullptr) {
      // There each descriptor is looked for, and counts.
      const std::string name = policy::clean_metric_name(request.domain);
      for (std::size_t i = 0; i < request.descriptors.size(); ++i) stats->count_unknown_domain(name);
    }
    return store::Progress::answered;
  }
  const bool has_leases = list_.has_leases();
  for (std::size_t i = 0; i < answer_.statuses.size(); ++i) answer_.statuses[i].rule = list_.matched()[i].rule;
  static constexpr store::Verb kPeek{.kind = store::Verb::Kind::peek};
  verb = request.peek ? &kPeek : nullptr;
  if (list_.charges().empty()) {
    finish();
    return store::Progress::answered;
  }

  if (!request.peek && (has_leases || list_.has_reservation())) draft_hold(request, now);
  decisions_buffer_.assign(list_.charges().size(), Decision());
  charges = list_.charges();
  decisions = decisions_buffer_;
  counts_buffer_.assign(stats != nullptr ? list_.charges().size() : 0, 0);
  counts = counts_buffer_;
  leases_buffer_.assign((has_leases || list_.has_reservation()) && !request.peek ? decisions_buffer_.size() : 0, 0);
  leases = leases_buffer_;
  admitted = false;
  pending_at_ = &store;
  asked_at_ = now.steady;
  const store::Progress progress = request.peek ? store.apply(*this, now) : store.check(*this, now);
  if (progress == store::Progress::pending) return progress;
  pending_at_ = nullptr;
  if (metrics_.is_sample()) {
    metrics_.observe(metrics::Histogram::decided_at_once, steady_now() - asked_at_, metrics::kSampled);
  }
  finish();
  return store::Progress::answered;
}

void Call::cancel() {
  if (store::Store* store = std::exchange(pending_at_, nullptr)) store->cancel(*this);
}

namespace {

bool is_held(const Status& status) {
  return status.rule != nullptr && status.rule->holds && status.decision.allowed && status.decision.delay > Wait();
}

}  // namespace

std::chrono::nanoseconds Call::hold() const {
  Wait longest;
  if (!answer_.allowed || verb != nullptr) return longest.value();  // one who peeks has no slot
  for (const Status& status : answer_.statuses) {
    if (is_held(status)) longest = std::max(longest, status.decision.delay);
  }
  return longest.value();
}

void Call::end_hold() {
  answer_.decision.delay = Wait();
  for (Status& status : answer_.statuses) {
    if (is_held(status)) status.decision.delay = Wait();
    answer_.decision.delay = std::max(answer_.decision.delay, status.decision.delay);
  }
}

void Call::refuse_hold() {
  const Wait longest(hold());
  for (std::size_t i = 0; i < answer_.statuses.size(); ++i) {
    Status& status = answer_.statuses[i];
    if (!is_held(status)) continue;
    const bool decides = status.decision.delay == longest;
    status.over_limit = true;
    status.decision.allowed = false;
    status.decision.retry_after = status.decision.delay;
    status.decision.delay = Wait();
    if (!decides) continue;
    answer_.decision = status.decision;
    answer_.decision.which = static_cast<std::uint32_t>(i);
    answer_.deciding = status.rule;
  }
  answer_.allowed = false;
}

void Call::complete() {
  pending_at_ = nullptr;
  metrics_.observe(metrics::Histogram::decided_by_store, steady_now() - asked_at_);
  finish();
  owner_.answered(*this);
}

Answer::Problem problem_of(const Request& request, const policy::Policy* policy) {
  if (request.domain.empty()) return Answer::Problem::empty_domain;
  if (request.descriptors.empty()) return Answer::Problem::no_descriptors;
  // In the place of envoyproxy/ratelimit a number that fits nowhere is denied.
  const bool takes_any = policy != nullptr && policy->envoy() != nullptr;
  for (const Descriptor& descriptor : request.descriptors) {
    if (!takes_any && ChargeList::cost_of(descriptor, request) > kMaxTokens) return Answer::Problem::cost_out_of_range;
  }
  const bool may_hold = !request.peek && (request.leases || request.reserve.count() > 0);
  if (may_hold && has_too_long_text(request)) return Answer::Problem::too_long_to_hold;
  return policy == nullptr ? Answer::Problem::no_policy : Answer::Problem::none;
}

void Call::finish() {
  const bool is_peek = verb != nullptr;
  if (is_peek && !list_.charges().empty() && failure != store::Failure::none) {
    answer_.failure = failure;
    return;
  }
  for (std::size_t i = 0; i < list_.matched().size(); ++i) {
    const ChargeList::Matched& matched = list_.matched()[i];
    Status& status = answer_.statuses[i];
    if (status.rule == nullptr) continue;
    if (matched.charge != ChargeList::kNoCharge) {
      status.decision = decisions_buffer_[matched.charge];
      status.key = list_.charges()[matched.charge].key;
      status.cost = list_.charges()[matched.charge].cost;
      if (!leases_buffer_.empty()) status.lease = leases_buffer_[matched.charge];
      status.over_limit = !status.decision.allowed && status.rule->enforcement != store::Enforcement::shadow;
      status.never_fits = !status.decision.allowed && status.decision.mark != Mark::banned &&
                          has_figures(status.decision.source) &&
                          list_.charges()[matched.charge].cost > status.decision.limit;
    }
    if (!is_peek) {
      count(status, matched.is_override);
      count_hits(matched, status);
    }
  }
  if (list_.charges().empty()) {
    decide_without_charges();
    if (policy_->envoy() != nullptr) apply_envoy_rules();
    return;
  }
  const std::span<const store::Charge> own = list_.own_charges();
  answer_.decision = combine(own, std::span<const Decision>(decisions_buffer_).first(own.size()));
  answer_.decision.which = list_.descriptor_of(answer_.decision.which);
  answer_.allowed = answer_.decision.allowed;
  answer_.deciding = answer_.statuses[answer_.decision.which].rule;
  answer_.has_figures = has_figures(answer_.decision.source);
  if (policy_->envoy() != nullptr) apply_envoy_rules();
  if (answer_.hold) complete_hold();
}

void Call::apply_envoy_rules() {
  const policy::EnvoyRules& envoy = *policy_->envoy();
  if (envoy.shadow_mode && !answer_.allowed) {
    answer_.allowed = answer_.decision.allowed = true;
    if (metrics_.limit_stats() != nullptr && verb == nullptr) metrics_.limit_stats()->count_shadowed();
  }
  if (envoy.dynamic_metadata) add_metadata(answer_.statuses, answer_.dynamic_metadata);
}

void Call::count_hits(const ChargeList::Matched& matched, const Status& status) {
  metrics::LimitStats* const stats = metrics_.limit_stats();
  if (stats == nullptr || matched.charge == ChargeList::kNoCharge || !has_figures(status.decision.source)) return;
  const Decision& decision = status.decision;
  std::uint64_t counted = decision.limit - decision.remaining;
  if (status.rule->counted.threshold != store::kNoThreshold) {
    counted = counts_buffer_[matched.charge];
  } else if (!decision.allowed) {
    counted += matched.cost;  // as if it had been taken: more is not told of a limit that counts no denials
  }
  stats->count(matched.stats_name, {.cost = matched.cost,
                                    .counted = counted,
                                    .limit = decision.limit,
                                    .over = !decision.allowed,
                                    .shadow = status.rule->enforcement == store::Enforcement::shadow});
}

/// What is asked, kept for who is to give it back.
void Call::draft_hold(const Request& request, Time now) {
  Hold& hold = answer_.hold.emplace();
  hold.kind = list_.has_reservation() ? Hold::Kind::reservation : Hold::Kind::lease;
  hold.domain = request.domain;
  for (const Descriptor& descriptor : request.descriptors) {
    Hold::Descriptor& kept = hold.descriptors.emplace_back();
    for (const Entry& entry : descriptor.entries) kept.entries.emplace_back(entry.key, entry.value);
  }
  hold.cost = request.cost;
  if (list_.has_reservation()) hold.place = list_.charges().back().key;
  hold.life = reservation_life(request.reserve);
  hold.charged_at = now.utc;
  hold.expires_at = now.utc + request.reserve.count();
  hold.lasts = request.reserve;
}

void Call::complete_hold() {
  if (!answer_.hold) return;
  Hold& hold = *answer_.hold;
  bool any = false;
  for (std::size_t i = 0; i < answer_.statuses.size() && !leases_buffer_.empty(); ++i) {
    const std::size_t charge = list_.matched()[i].charge;
    if (charge == ChargeList::kNoCharge) continue;
    Hold::Descriptor& kept = hold.descriptors[i];
    // A limit in shadow or quota mode may have had no room, and one whose store failed may have let all through.
    const Decision& decision = decisions_buffer_[charge];
    if (decision.allowed && has_figures(decision.source)) kept.mark = counter_mark(list_.charges()[charge]);
    // Descriptors that share a counter have one lease.
    if (list_.descriptor_of(charge) != i) continue;
    kept.lease = leases_buffer_[charge];
    kept.cost = kept.lease != 0 ? list_.charges()[charge].cost : 0;
    any |= kept.lease != 0;
  }
  if (hold.kind == Hold::Kind::reservation) {
    hold.lease = leases_buffer_.empty() ? 0 : leases_buffer_.back();
    // Redis numbers leases by its own clock, in µs (lua/concurrency.lua): that is when it charged.
    constexpr std::int64_t microsecond = 1000;
    if (hold.lease != 0 && decisions_buffer_.back().source == Source::redis) {
      hold.charged_at = static_cast<std::int64_t>(hold.lease) * microsecond;
    }
    any = true;
  }
  if (!any || !answer_.allowed) answer_.hold.reset();
}

/// Nothing was counted: the first limit that says unlimited decides, if there is one.
void Call::decide_without_charges() {
  const auto first =
      std::ranges::find_if(answer_.statuses, [](const Status& status) { return status.rule != nullptr; });
  if (first == answer_.statuses.end()) return;
  answer_.decision.which = static_cast<std::uint32_t>(first - answer_.statuses.begin());
  answer_.deciding = first->rule;
}

void Call::count(const Status& status, bool is_override) {
  using metrics::Counter;
  using metrics::Verdict;
  const bool fits = status.decision.allowed;
  if (is_override) {
    metrics_.add(fits ? Counter::override_allowed : Counter::override_denied);
  } else if (fits) {
    metrics_.count(*status.rule, Verdict::allowed);
    const Decision& decision = status.decision;
    if (decision.remaining < decision.limit / 5) metrics_.count(*status.rule, Verdict::near_limit);
  } else {
    if (status.over_limit && DenialLog::wants()) {
      DenialLog::write(*status.rule, status.key, status.cost, status.decision);
    }
    metrics_.count(*status.rule, status.over_limit ? Verdict::denied : Verdict::shadow_denied);
  }
}

}  // namespace sluice::limiter
