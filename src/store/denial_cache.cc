#include "store/denial_cache.h"

#include <algorithm>
#include <utility>

#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "store/admission.h"

namespace sluice::store {

namespace {

using Denial = DenialTable::Denial;

bool is_bucket(const Limit& limit) {
  return limit.algorithm == Algorithm::token_bucket || limit.algorithm == Algorithm::leaky_bucket;
}

// Can a denial by this limit only become truer, until its retry_after?
bool can_be_remembered(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return !limit.count_denied;
    case Algorithm::concurrency:
      return false;
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::sliding_window:
    case Algorithm::sliding_log:
      return true;
  }
  return false;
}

// What `rate` gives in `wait`, rounded up. The wait is at most what the greatest cost needs.
std::uint64_t tokens_in(const Limit& limit, std::int64_t wait) {
  const auto period = static_cast<algorithm::Uint128>(limit.period.count());
  const algorithm::Uint128 product = static_cast<algorithm::Uint128>(wait) * limit.rate + period - 1;
  return static_cast<std::uint64_t>(std::min<algorithm::Uint128>(product / period, kMaxTokens));
}

// Until `tokens` have come, rounded up to the µs.
std::chrono::nanoseconds time_of(const Limit& limit, std::uint64_t tokens) {
  const algorithm::Uint128 product =
      static_cast<algorithm::Uint128>(tokens) * static_cast<algorithm::Uint128>(limit.period.count() / 1'000);
  const auto most = static_cast<algorithm::Uint128>(algorithm::longest_wait(algorithm::Tick::microsecond));
  return std::chrono::microseconds(static_cast<std::int64_t>(std::min(most, (product + limit.rate - 1) / limit.rate)));
}

Wait sum(std::chrono::nanoseconds one, std::chrono::nanoseconds other) {
  const std::chrono::microseconds most(algorithm::longest_wait(algorithm::Tick::microsecond));
  return Wait(one > most - other ? std::chrono::nanoseconds(most) : one + other);
}

Wait less(const Wait& wait, std::int64_t elapsed) {
  if (wait.is_never()) return wait;
  return Wait(std::max(std::chrono::nanoseconds(0), wait.value() - std::chrono::nanoseconds(elapsed)));
}

// False: what the charge would be told is not known.
bool describe(const Charge& charge, const Denial& denial, std::int64_t now, Decision& decision) {
  const Limit& limit = charge.limit->numbers;
  if (charge.cost < denial.cost) return false;
  const bool is_other_cost = charge.cost != denial.cost;
  const std::int64_t elapsed = now - denial.at;
  decision = denial.decision;
  decision.retry_after = less(denial.decision.retry_after, elapsed);
  decision.reset_after = less(denial.decision.reset_after, elapsed);
  if (is_bucket(limit) && !decision.retry_after.is_never()) {
    // What is still wanting to the denied cost will have come by its retry_after.
    const std::uint64_t wanting = tokens_in(limit, decision.retry_after.value().count());
    decision.remaining = std::max(decision.remaining, denial.cost - std::min(denial.cost, wanting));
  }
  if (!is_other_cost) return true;
  if (charge.cost > decision.limit) {
    decision.retry_after = Wait::never();
    return true;
  }
  if (decision.retry_after.is_never() || limit.algorithm == Algorithm::fixed_window) return true;
  if (!is_bucket(limit)) return false;
  decision.retry_after = sum(decision.retry_after.value(), time_of(limit, charge.cost - denial.cost));
  return true;
}

}  // namespace

// Stands for the caller's check at the primary.
class DenialCache::Relay final : public Check {
 public:
  explicit Relay(DenialCache& owner) : owner_(owner) {}
  void complete() override { owner_.relayed(*this); }

  Check* outer = nullptr;  ///< null: not in use
  std::int64_t asked_at = 0;
  std::uint64_t epoch = 0;

 private:
  DenialCache& owner_;
};

DenialCache::DenialCache(std::unique_ptr<Store> primary, std::chrono::nanoseconds longest, DenialEpochs& epochs,
                         metrics::Shard& metrics)
    : primary_(std::move(primary)), longest_(longest.count()), epochs_(epochs), metrics_(metrics), table_(epochs) {}

DenialCache::~DenialCache() = default;

Progress DenialCache::check(Check& check, Time now) {
  if (answer(check, now.steady)) {
    metrics_.add(metrics::Counter::store_cached_denials);
    return Progress::answered;
  }
  Relay& relay = relays_.take(*this, check);
  relay.asked_at = now.steady;
  relay.epoch = epochs_.latest();
  if (primary_->check(relay, now) == Progress::pending) return Progress::pending;
  answer_from(relay);
  return Progress::answered;
}

Progress DenialCache::apply(Check& check, Time now) {
  if (check.verb->kind == Verb::Kind::peek) return primary_->apply(check, now);
  Relay& relay = relays_.take(*this, check);
  relay.verb = check.verb;
  const Progress progress = primary_->apply(relay, now);
  if (progress == Progress::answered) answer_from(relay);
  return progress;
}

void DenialCache::cancel(Check& check) {
  if (check.verb != nullptr) forget(check);
  relays_.cancel(*primary_, check);
}

void DenialCache::relayed(Relay& relay) {
  Check& check = *relay.outer;
  answer_from(relay);
  check.complete();
}

// What the relay was told, to whom it stands for; then it is free.
void DenialCache::answer_from(Relay& relay) {
  Check& check = *relay.outer;
  check.admitted = relay.admitted;
  check.failure = relay.failure;
  if (relay.verb != nullptr) {
    forget(check);
  } else {
    learn(check, relay.asked_at, relay.epoch);
  }
  relays_.release(relay);
}

void DenialCache::forget(const Check& check) {
  for (const Charge& charge : check.charges) epochs_.forget(*charge.limit, charge.key);
}

bool DenialCache::answer(Check& check, std::int64_t now) const {
  if (check.charges.empty() || table_.is_empty(now)) return false;
  Admission admission;
  for (std::size_t i = 0; i < check.charges.size(); ++i) {
    const Charge& charge = check.charges[i];
    const Denial* denial = table_.find(denial_key(*charge.limit, charge.key), charge.limit->numbers, now);
    if (denial == nullptr || !describe(charge, *denial, now, check.decisions[i])) return false;
    check.decisions[i].which = static_cast<std::uint32_t>(i);
    admission.add(charge.enforcement, false);
  }
  std::ranges::fill(check.leases, 0);
  check.admitted = admission.admitted();
  check.failure = Failure::none;
  return true;
}

// The denial was made after the question left, so its wait, counted from then, ends too early rather than too late.
void DenialCache::learn(const Check& check, std::int64_t asked_at, std::uint64_t epoch) {
  if (check.failure != Failure::none || epochs_.latest() != epoch) return;
  for (std::size_t i = 0; i < check.charges.size(); ++i) {
    const Charge& charge = check.charges[i];
    const Decision& decision = check.decisions[i];
    if (charge.cost == 0 || !can_be_remembered(charge.limit->numbers)) continue;
    if (decision.allowed) {
      // What was remembered is still true, but its figures are not those of the state any more.
      if (check.admitted && !table_.is_empty(asked_at)) table_.erase(denial_key(*charge.limit, charge.key));
      continue;
    }
    if (charge.cost > decision.limit) continue;
    const Wait& wait = decision.retry_after;
    const std::int64_t length = wait.is_never() ? longest_ : std::min(longest_, wait.value().count());
    table_.put(denial_key(*charge.limit, charge.key), charge.limit->numbers,
               {.cost = charge.cost, .at = asked_at, .until = asked_at + length, .decision = decision});
  }
}

}  // namespace sluice::store
