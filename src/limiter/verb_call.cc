#include "limiter/verb_call.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "sluice/limit.h"

namespace sluice::limiter {
namespace {

std::uint64_t product(std::uint64_t tokens, std::uint64_t times) {
  return tokens > kMaxTokens / times ? kMaxTokens : tokens * times;
}

/// What is done to a counter that `cost` is the sum of the descriptors' costs of. Of settle all costs are 1.
store::Verb verb_of(const CounterVerb& verb, std::uint64_t cost) {
  cost = std::min(cost, kMaxTokens);
  switch (verb.kind) {
    case CounterVerb::Kind::refund:
      return store::Verb::refund(cost, verb.at);
    case CounterVerb::Kind::settle:
      return store::Verb::settle(product(verb.reserved, cost), product(verb.actual, cost), verb.at);
    case CounterVerb::Kind::penalize:
      return store::Verb::penalize(cost);
    case CounterVerb::Kind::reset:
      break;
  }
  return store::Verb::reset();
}

metrics::Counter counter_of(CounterVerb::Kind kind) {
  switch (kind) {
    case CounterVerb::Kind::refund:
      return metrics::Counter::verb_refund;
    case CounterVerb::Kind::settle:
      return metrics::Counter::verb_settle;
    case CounterVerb::Kind::penalize:
      return metrics::Counter::verb_penalize;
    case CounterVerb::Kind::reset:
      break;
  }
  return metrics::Counter::verb_reset;
}

}  // namespace

class VerbCall::Step final : public store::Check {
 public:
  Step(VerbCall& call, const store::Charge& what, const store::Verb& how) : call_(call), charge_(what), verb_(how) {
    charges = {&charge_, 1};
    decisions = {&decision_, 1};
    verb = &verb_;
  }
  void complete() override {
    is_pending = false;
    call_.step_done();
  }
  [[nodiscard]] const Decision& decision() const { return decision_; }

  bool is_pending = true;

 private:
  VerbCall& call_;
  store::Charge charge_;
  store::Verb verb_;
  Decision decision_;
};

VerbCall::VerbCall(Owner& owner, metrics::Shard& metrics) : owner_(owner), metrics_(metrics) {}

VerbCall::~VerbCall() { cancel(); }

store::Progress VerbCall::start(const Request& request, const CounterVerb& verb,
                                const std::shared_ptr<const policy::Policy>& policy, store::Store& store, Time now) {
  assert(pending_at_ == nullptr);
  answer_.problem = Answer::Problem::none;
  answer_.known_domain = true;
  answer_.failed = false;
  answer_.any_done = false;
  answer_.statuses.clear();
  steps_.clear();
  list_.clear();
  policy_ = policy;
  kind_ = verb.kind;
  Request asked = request;
  if (kind_ == CounterVerb::Kind::settle) asked.cost = 1;

  answer_.problem = problem_of(asked, policy_.get());
  if (std::max(verb.reserved, verb.actual) > kMaxTokens) answer_.problem = Answer::Problem::cost_out_of_range;
  if (answer_.problem != Answer::Problem::none) return store::Progress::answered;
  answer_.statuses.resize(asked.descriptors.size());
  const policy::Domain* domain = policy_->find_domain(asked.domain);
  if (domain == nullptr) {
    answer_.known_domain = false;
    metrics_.add(metrics::Counter::unknown_domain);
    return store::Progress::answered;
  }
  list_.collect(asked, *policy_, *domain);
  for (const store::Charge& charge : list_.charges()) {
    steps_.push_back(std::make_unique<Step>(*this, charge, verb_of(verb, charge.cost)));
  }
  pending_at_ = &store;
  pending_ = steps_.size();
  for (const auto& step : steps_) {
    if (store.apply(*step, now) == store::Progress::pending) continue;
    step->is_pending = false;
    --pending_;
  }
  if (pending_ > 0) return store::Progress::pending;
  finish();
  return store::Progress::answered;
}

void VerbCall::cancel() {
  store::Store* store = std::exchange(pending_at_, nullptr);
  if (store == nullptr) return;
  for (const auto& step : steps_) {
    if (step->is_pending) store->cancel(*step);
  }
}

void VerbCall::step_done() {
  if (--pending_ > 0) return;
  finish();
  owner_.answered(*this);
}

void VerbCall::finish() {
  pending_at_ = nullptr;
  for (const auto& step : steps_) {
    const bool done = step->failure == store::Failure::none;
    metrics_.add(done ? counter_of(kind_) : metrics::Counter::verb_failures);
    answer_.failed |= !done;
    answer_.any_done |= done;
  }
  for (std::size_t i = 0; i < answer_.statuses.size(); ++i) {
    const ChargeList::Matched& matched = list_.matched()[i];
    VerbStatus& status = answer_.statuses[i];
    status.rule = matched.rule;
    if (matched.charge == ChargeList::kNoCharge) continue;
    const Step& step = *steps_[matched.charge];
    status.failure = step.failure;
    status.done = step.failure == store::Failure::none;
    status.decision = step.decision();
  }
}

}  // namespace sluice::limiter
