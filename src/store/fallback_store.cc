#include "store/fallback_store.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "store/admission.h"

namespace sluice::store {

// Stands for the caller's check at the primary.
class FallbackStore::Relay final : public Check {
 public:
  explicit Relay(FallbackStore& owner) : owner_(owner) {}
  void complete() override { owner_.relayed(*this); }

  Check* outer = nullptr;  ///< null: not in use
  Time now;

 private:
  FallbackStore& owner_;
};

class FallbackStore::LocalCheck final : public Check {
 public:
  LocalCheck(std::span<const Charge> some, std::span<Decision> room, std::span<std::uint64_t> room_for_leases) {
    charges = some;
    decisions = room;
    leases = room_for_leases;
  }
  void complete() override {}
};

FallbackStore::FallbackStore(std::unique_ptr<Store> primary, MemoryStore& local, Readiness& readiness,
                             metrics::Shard& metrics)
    : primary_(std::move(primary)), local_(local), readiness_(readiness), metrics_(metrics) {}

FallbackStore::~FallbackStore() = default;

bool FallbackStore::ready() const {
  if (!readiness_.has_answered() && primary_->ready()) readiness_.set_answered();
  return readiness_.has_answered();
}

Progress FallbackStore::check(Check& check, Time now) {
  Relay& relay = relays_.take(*this, check);
  relay.now = now;
  if (primary_->check(relay, now) == Progress::pending) return Progress::pending;
  check.admitted = relay.admitted;
  const Failure failure = relay.failure;
  relays_.release(relay);
  settle(check, failure, now);
  return Progress::answered;
}

Progress FallbackStore::apply(Check& check, Time now) {
  if (!check.verb->is_stand_in) return primary_->apply(check, now);
  [[maybe_unused]] const Progress progress = local_.apply(check, now);
  assert(progress == Progress::answered);
  for (Decision& decision : check.decisions) decision.source = Source::fallback_local;
  return Progress::answered;
}

void FallbackStore::cancel(Check& check) { relays_.cancel(*primary_, check); }

void FallbackStore::relayed(Relay& relay) {
  Check& check = *relay.outer;
  const Failure failure = relay.failure;
  const Time now = relay.now;
  check.admitted = relay.admitted;
  relays_.release(relay);
  settle(check, failure, now);
  check.complete();
}

void FallbackStore::settle(Check& check, Failure failure, Time now) {
  check.failure = Failure::none;
  if (failure == Failure::none) {
    readiness_.set_answered();
  } else {
    rescue(check, now);
  }
}

void FallbackStore::rescue(Check& check, Time now) {
  std::ranges::fill(check.leases, 0);
  // Judged first as if every local charge fitted: does the word `deny` alone refuse the request?
  Admission without_local;
  bool quota_allowed = false;
  for (const Charge& charge : check.charges) {
    const OnStoreFailure word = charge.limit->on_store_failure;
    without_local.add(charge.enforcement, word != OnStoreFailure::deny);
    quota_allowed |= charge.enforcement == Enforcement::quota && word == OnStoreFailure::allow;
  }
  const bool refused = !without_local.admitted();

  local_charges_.clear();
  for (std::size_t i = 0; i < check.charges.size(); ++i) {
    const Charge& charge = check.charges[i];
    Decision& decision = check.decisions[i];
    decision = {};
    decision.which = static_cast<std::uint32_t>(i);
    switch (charge.limit->on_store_failure) {
      case OnStoreFailure::local:
        if (refused) {
          decision = local_.judge(charge, now);
          decision.which = static_cast<std::uint32_t>(i);
          decision.source = Source::fallback_local;
        } else {
          local_charges_.push_back(charge);
          // Quota charges deny together, and one of them that is allowed cannot be used up.
          if (charge.enforcement == Enforcement::quota && quota_allowed) {
            local_charges_.back().enforcement = Enforcement::shadow;
          }
        }
        metrics_.add(metrics::Counter::fallback_local);
        break;
      case OnStoreFailure::allow:
        decision.source = Source::fallback_allow;
        metrics_.add(metrics::Counter::fallback_allow);
        break;
      case OnStoreFailure::deny:
        decision.allowed = false;
        decision.source = Source::fallback_deny;
        metrics_.add(metrics::Counter::fallback_deny);
        break;
    }
  }
  check.admitted = !refused;
  if (local_charges_.empty()) return;

  local_decisions_.resize(local_charges_.size());
  local_leases_.assign(check.leases.empty() ? 0 : local_charges_.size(), 0);
  LocalCheck local(local_charges_, local_decisions_, local_leases_);
  [[maybe_unused]] const Progress progress = local_.check(local, now);
  assert(progress == Progress::answered);
  check.admitted = local.admitted;
  std::size_t next = 0;
  for (std::size_t i = 0; i < check.charges.size(); ++i) {
    if (check.charges[i].limit->on_store_failure != OnStoreFailure::local) continue;
    if (!local_leases_.empty() && local_leases_[next] != 0) check.leases[i] = local_leases_[next] | kStandInLease;
    check.decisions[i] = local_decisions_[next++];
    check.decisions[i].which = static_cast<std::uint32_t>(i);
    check.decisions[i].source = Source::fallback_local;
  }
}

}  // namespace sluice::store
