#include "limiter/verb_call.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "limiter/hold.h"
#include "sluice/limit.h"
#include "store/ban_store.h"

namespace sluice::limiter {
namespace {

std::uint64_t product(std::uint64_t tokens, std::uint64_t times) {
  return times != 0 && tokens > kMaxTokens / times ? kMaxTokens : tokens * times;
}

/// What is done to a counter. `cost`: the sum of the costs of its descriptors; of settle: how many these are.
store::Verb own_verb_of(const CounterVerb& verb, std::uint64_t cost) {
  cost = std::min(cost, kMaxTokens);
  switch (verb.kind) {
    case CounterVerb::Kind::refund:
      return store::Verb::refund(cost, verb.at);
    case CounterVerb::Kind::settle:
      return store::Verb::settle(product(verb.reserved, cost), product(verb.actual, cost), verb.at);
    case CounterVerb::Kind::penalize:
      return store::Verb::penalize(cost);
    case CounterVerb::Kind::reset:
    case CounterVerb::Kind::ban:
    case CounterVerb::Kind::release:
      break;
  }
  return store::Verb::reset();
}

store::Verb verb_of(const CounterVerb& verb, std::uint64_t cost) {
  store::Verb own = own_verb_of(verb, cost);
  own.is_stand_in = verb.reservation && store::is_stand_in_lease(verb.reservation->lease);
  return own;
}

metrics::Counter counter_of(CounterVerb::Kind kind) {
  switch (kind) {
    case CounterVerb::Kind::refund:
      return metrics::Counter::verb_refund;
    case CounterVerb::Kind::settle:
      return metrics::Counter::verb_settle;
    case CounterVerb::Kind::penalize:
      return metrics::Counter::verb_penalize;
    case CounterVerb::Kind::ban:
      return metrics::Counter::verb_ban;
    case CounterVerb::Kind::release:
      return metrics::Counter::verb_release;
    case CounterVerb::Kind::reset:
      break;
  }
  return metrics::Counter::verb_reset;
}

}  // namespace

class VerbCall::Step final : public store::Check {
 public:
  explicit Step(VerbCall& call) : call_(call) {}
  /// Is done after those added before, if they were.
  void add(const store::Charge& what, const store::Verb& how) { actions_.push_back({what, how}); }
  /// False: the store has yet to answer.
  [[nodiscard]] bool run(store::Store& store, Time now) {
    while (next_ < actions_.size()) {
      const Action& action = actions_[next_++];
      charges = {&action.charge, 1};
      decisions = {&decision_, 1};
      verb = &action.verb;
      is_pending = store.apply(*this, now) == store::Progress::pending;
      if (is_pending) return false;
      if (failure != store::Failure::none) break;
    }
    return true;
  }
  void complete() override {
    is_pending = false;
    if (failure == store::Failure::none && !run(*call_.store_, call_.now_)) return;
    call_.step_done();
  }
  /// Was anything asked of the store?
  [[nodiscard]] bool has_run() const { return next_ > 0; }
  /// What the limit itself says after the last of it.
  [[nodiscard]] const Decision& decision() const { return decision_; }

  bool is_pending = false;
  VerbStatus::Other other = VerbStatus::Other::no;

 private:
  struct Action {
    store::Charge charge;
    store::Verb verb;
  };
  VerbCall& call_;
  std::vector<Action> actions_;
  std::size_t next_ = 0;
  Decision decision_;
};

VerbCall::VerbCall(Owner& owner, metrics::Shard& metrics) : owner_(owner), metrics_(metrics) {}

VerbCall::~VerbCall() { cancel(); }

store::Progress VerbCall::start(const Request& request, const CounterVerb& verb,
                                const std::shared_ptr<const policy::Policy>& policy, store::Store& store, Time now) {
  prepare(request, verb, policy);
  return run(verb, store, now);
}

void VerbCall::prepare(const Request& request, const CounterVerb& verb,
                       const std::shared_ptr<const policy::Policy>& policy) {
  assert(pending_at_ == nullptr);
  answer_.problem = Answer::Problem::none;
  answer_.known_domain = true;
  answer_.failed = false;
  answer_.any_done = false;
  answer_.held = true;
  answer_.kind = verb.kind;
  has_begun_ = false;
  answer_.statuses.clear();
  steps_.clear();
  reservation_.reset();
  list_.clear();
  policy_ = policy;
  kind_ = verb.kind;
  Request asked = request;
  if (kind_ == CounterVerb::Kind::settle) asked.cost = 1;

  answer_.problem = problem_of(asked, policy_.get());
  if (std::max(verb.reserved, verb.actual) > kMaxTokens) answer_.problem = Answer::Problem::cost_out_of_range;
  if (answer_.problem != Answer::Problem::none) return;
  answer_.statuses.resize(asked.descriptors.size());
  const policy::Domain* domain = policy_->find_domain(asked.domain);
  answer_.known_domain = domain != nullptr;
  if (domain == nullptr) return;
  list_.collect(asked, *policy_, *domain);
  answer_.problem = refusal(verb);
  if (answer_.problem != Answer::Problem::none) {
    answer_.statuses.clear();
    return;
  }
  add_steps(verb);
}

store::Progress VerbCall::run(const CounterVerb& verb, store::Store& store, Time now) {
  if (answer_.problem != Answer::Problem::none) return store::Progress::answered;
  if (!answer_.known_domain) {
    metrics_.add(metrics::Counter::unknown_domain);
    return store::Progress::answered;
  }
  store_ = &store;
  now_ = now;
  pending_at_ = &store;
  if (verb.reservation && !steps_.empty()) {
    if (verb.reservation->lease == 0 || now.utc >= verb.reservation->expires_at) {
      answer_.held = false;
      finish();
      return store::Progress::answered;
    }
    end_reservation(*verb.reservation);
    if (!reservation_->run(store, now)) {
      pending_ = 1;
      return store::Progress::pending;
    }
  }
  return run_steps() ? store::Progress::answered : store::Progress::pending;
}

/// Is the whole verb none of what the request's limits have?
Answer::Problem VerbCall::refusal(const CounterVerb& verb) const {
  using Kind = CounterVerb::Kind;
  const bool moves_tokens = kind_ == Kind::refund || kind_ == Kind::penalize || kind_ == Kind::settle;
  // A limit that has become one of concurrency since is told of as one that has changed.
  if (moves_tokens && !verb.reservation && list_.has_leases()) return Answer::Problem::needs_lease;
  const bool is_ban = kind_ == Kind::ban && verb.time.count() > 0;
  const auto is_enforced = [](const store::Charge& charge) {
    return charge.enforcement == store::Enforcement::enforce;
  };
  if (is_ban && !std::ranges::all_of(list_.charges(), is_enforced)) return Answer::Problem::not_enforced;
  return Answer::Problem::none;
}

void VerbCall::add_steps(const CounterVerb& verb) {
  for (std::size_t i = 0; i < list_.charges().size(); ++i) {
    const store::Charge& charge = list_.charges()[i];
    auto step = std::make_unique<Step>(*this);
    if (kind_ == CounterVerb::Kind::ban) {
      const store::Charge ban{.limit = &store::ban_limit_of(*charge.limit), .key = charge.key};
      step->add(ban, store::Verb::reset());
      if (verb.time.count() > 0) {
        // Those who have not heard of a ban are told of it by this one.
        step->add({.limit = &store::any_ban_limit_of(*charge.limit), .key = store::kAnyBan}, store::ban_for(verb.time));
        step->add(ban, store::ban_for(verb.time));
      }
    } else if (kind_ == CounterVerb::Kind::release) {
      const std::uint64_t lease = lease_of(i, verb.leases);
      if (lease != 0 && taken_from(i, verb, step->other) != 0) {
        step->add(charge, store::Verb::release(lease, std::min(charge.cost, kMaxTokens)));
      }
    } else if (verb.reservation) {
      const std::uint64_t times = taken_from(i, verb, step->other);
      if (times != 0) step->add(charge, verb_of(verb, times));
    } else if (kind_ == CounterVerb::Kind::settle) {
      step->add(charge, verb_of(verb, descriptors_of(i)));
    } else {
      step->add(charge, verb_of(verb, charge.cost));
    }
    steps_.push_back(std::move(step));
  }
}

/// How many of the request's descriptors share a counter.
std::uint64_t VerbCall::descriptors_of(std::size_t charge) const {
  return static_cast<std::uint64_t>(std::ranges::count(list_.matched(), charge, &ChargeList::Matched::charge));
}

/// That a charge of a request to release has taken.
std::uint64_t VerbCall::lease_of(std::size_t charge, std::span<const std::uint64_t> leases) const {
  for (std::size_t i = 0; i < std::min(leases.size(), list_.matched().size()); ++i) {
    if (list_.matched()[i].charge == charge && leases[i] != 0) return leases[i];
  }
  return 0;
}

/// Of how many of the request's descriptors the part was taken from the counter that a charge is of now. 0: `other`
/// says why.
std::uint64_t VerbCall::taken_from(std::size_t charge, const CounterVerb& verb, VerbStatus::Other& other) const {
  const std::uint32_t present = counter_mark(list_.charges()[charge]);
  std::uint64_t times = 0;
  other = VerbStatus::Other::nothing;
  for (std::size_t i = 0; i < std::min(verb.marks.size(), list_.matched().size()); ++i) {
    if (list_.matched()[i].charge != charge || verb.marks[i] == 0) continue;
    if (verb.marks[i] == present) {
      ++times;
    } else {
      other = VerbStatus::Other::counter;
    }
  }
  if (times != 0) other = VerbStatus::Other::no;
  return times;
}

void VerbCall::end_reservation(const CounterVerb::Reservation& reservation) {
  reservation_ = std::make_unique<Step>(*this);
  place_ = reservation.place;
  reservation_->add({.limit = &reservation_limit(reservation.life), .key = place_},
                    store::Verb::release(reservation.lease, 1));
}

/// True: all is answered.
bool VerbCall::run_steps() {
  if (reservation_ != nullptr) {
    const bool failed = reservation_->failure != store::Failure::none;
    if (failed || !reservation_->admitted) {
      answer_.held = failed;
      finish();
      return true;
    }
  }
  has_begun_ = true;
  pending_ = 0;
  for (const auto& step : steps_) {
    if (!step->run(*store_, now_)) ++pending_;
  }
  if (pending_ > 0) return false;
  finish();
  return true;
}

void VerbCall::cancel() {
  store::Store* store = std::exchange(pending_at_, nullptr);
  if (store == nullptr) return;
  if (reservation_ != nullptr && reservation_->is_pending) store->cancel(*reservation_);
  for (const auto& step : steps_) {
    if (step->is_pending) store->cancel(*step);
  }
}

void VerbCall::step_done() {
  if (--pending_ > 0) return;
  if (has_begun_) {
    finish();
  } else if (!run_steps()) {
    return;
  }
  owner_.answered(*this);
}

void VerbCall::finish() {
  pending_at_ = nullptr;
  const store::Failure before = reservation_ != nullptr ? reservation_->failure : store::Failure::none;
  bool any_lease = kind_ != CounterVerb::Kind::release;
  for (const auto& step : steps_) {
    if (!has_begun_) step->failure = before;
    const bool ok = step->failure == store::Failure::none;
    const bool done = ok && has_begun_ && step->has_run() && (kind_ != CounterVerb::Kind::release || step->admitted);
    if (done) metrics_.add(counter_of(kind_));
    if (!ok) metrics_.add(metrics::Counter::verb_failures);
    answer_.failed |= !ok;
    answer_.any_done |= done;
    any_lease |= done;
  }
  if (kind_ == CounterVerb::Kind::release && !answer_.failed && !steps_.empty()) answer_.held = any_lease;
  for (std::size_t i = 0; i < answer_.statuses.size(); ++i) {
    const ChargeList::Matched& matched = list_.matched()[i];
    VerbStatus& status = answer_.statuses[i];
    status.rule = matched.rule;
    if (matched.charge == ChargeList::kNoCharge) continue;
    const Step& step = *steps_[matched.charge];
    const bool ok = step.failure == store::Failure::none;
    status.failure = step.failure;
    if (kind_ == CounterVerb::Kind::release || answer_.held) status.other = step.other;
    status.held = !ok || (answer_.held && (kind_ != CounterVerb::Kind::release || (step.has_run() && step.admitted)));
    status.done = ok && has_begun_ && step.has_run() && status.held;
    status.decision = step.decision();
  }
}

}  // namespace sluice::limiter
