#include "limiter/call.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "limiter/combine.h"

namespace sluice::limiter {
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
  answer_.failure = store::Failure::none;
  list_.clear();
  if (policy_ != policy) policy_ = policy;

  answer_.problem = problem_of(request, policy_.get());
  if (answer_.problem != Answer::Problem::none) return store::Progress::answered;
  answer_.statuses.resize(request.descriptors.size());
  const policy::Domain* domain = policy_->find_domain(request.domain);
  if (domain == nullptr) {
    answer_.known_domain = false;
    metrics_.add(metrics::Counter::unknown_domain);
    return store::Progress::answered;
  }
  list_.collect(request, *policy_, *domain);
  for (std::size_t i = 0; i < answer_.statuses.size(); ++i) answer_.statuses[i].rule = list_.matched()[i].rule;
  static constexpr store::Verb kPeek{.kind = store::Verb::Kind::peek};
  verb = request.peek ? &kPeek : nullptr;
  if (list_.charges().empty()) {
    finish();
    return store::Progress::answered;
  }

  decisions_buffer_.assign(list_.charges().size(), Decision());
  charges = list_.charges();
  decisions = decisions_buffer_;
  admitted = false;
  pending_at_ = &store;
  const store::Progress progress = request.peek ? store.apply(*this, now) : store.check(*this, now);
  if (progress == store::Progress::pending) return progress;
  pending_at_ = nullptr;
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
  finish();
  owner_.answered(*this);
}

Answer::Problem problem_of(const Request& request, const policy::Policy* policy) {
  if (request.domain.empty()) return Answer::Problem::empty_domain;
  if (request.descriptors.empty()) return Answer::Problem::no_descriptors;
  for (const Descriptor& descriptor : request.descriptors) {
    if (ChargeList::cost_of(descriptor, request) > kMaxTokens) return Answer::Problem::cost_out_of_range;
  }
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
      status.over_limit = !status.decision.allowed && status.rule->enforcement != store::Enforcement::shadow;
      status.never_fits = !status.decision.allowed && has_figures(status.decision.source) &&
                          list_.charges()[matched.charge].cost > status.decision.limit;
    }
    if (!is_peek) count(status, matched.is_override);
  }
  if (list_.charges().empty()) {
    decide_without_charges();
    return;
  }
  answer_.decision = combine(list_.charges(), decisions_buffer_);
  answer_.decision.which = list_.descriptor_of(answer_.decision.which);
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

void Call::count(const Status& status, bool is_override) {
  using metrics::Counter;
  using metrics::Verdict;
  const bool fits = status.decision.allowed;
  if (is_override) {
    metrics_.add(fits ? Counter::override_allowed : Counter::override_denied);
  } else if (fits) {
    metrics_.count(*status.rule, Verdict::allowed);
  } else {
    metrics_.count(*status.rule, status.over_limit ? Verdict::denied : Verdict::shadow_denied);
  }
}

}  // namespace sluice::limiter
