#include "store/memory/memory_store.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <new>
#include <random>
#include <vector>

#include "algorithm/int128.h"
#include "algorithm/ticks.h"
#include "store/admission.h"
#include "store/memory/live_limit.h"
#include "store/memory/seen_cell.h"

namespace sluice::store {
namespace {

using algorithm::Cell;
using algorithm::CompiledLimit;
using algorithm::Verdict;
using memory::LiveLimit;
using memory::SeenCell;

// When the charge that is given back was made, by the clock that the limit goes by.
std::optional<std::int64_t> instant_of(const Verb& verb, const CompiledLimit& compiled, Time now) {
  if (!verb.at) return std::nullopt;
  const std::int64_t apart = compiled.uses_utc() ? 0 : now.steady - now.utc;
  const algorithm::Int128 instant = algorithm::Int128{*verb.at} + apart;
  return static_cast<std::int64_t>(std::clamp<algorithm::Int128>(instant, -algorithm::kLatest, algorithm::kLatest));
}

// What check() would tell of a charge, in a request that would be admitted or not.
Decision look(const CompiledLimit& compiled, const Cell& cell, std::int64_t instant, std::uint64_t cost,
              bool admitted) {
  algorithm::Outcome outcome = compiled.peek(cell, instant, cost);
  if (outcome.verdict.fits && !admitted) {
    outcome.verdict.forget_turn();
    outcome.view = compiled.view(cell, instant);
  }
  return compiled.decision(outcome);
}

// False: the lease is not held.
bool carry_out(const Verb& verb, const CompiledLimit& compiled, Cell& cell, Time now) {
  const std::int64_t instant = compiled.instant(now);
  switch (verb.kind) {
    case Verb::Kind::refund:
      compiled.refund(cell, instant, verb.amount, instant_of(verb, compiled, now));
      break;
    case Verb::Kind::overdraw:
      compiled.settle(cell, instant, 0, verb.amount);
      break;
    case Verb::Kind::penalize:
      compiled.penalize(cell, instant, verb.amount);
      break;
    case Verb::Kind::release:
      return compiled.release(cell, instant, verb.amount);
    case Verb::Kind::reset:
    case Verb::Kind::peek:
      break;
  }
  return true;
}

Decision without_figures(const CountedLimit& limit) {
  Decision decision;
  decision.allowed = limit.on_store_failure != OnStoreFailure::deny;
  decision.source = decision.allowed ? Source::fallback_allow : Source::fallback_deny;
  return decision;
}

}  // namespace

MemoryStore::MemoryStore(std::uint64_t max_keys)
    : table_(max_keys, book_), leases_(std::uint64_t{std::random_device{}()} << 16U) {}

MemoryStore::~MemoryStore() = default;

Progress MemoryStore::check(Check& check, Time now) {
  if (check.charges.size() == 1 && check.leases.empty()) {
    check_one(check.charges.front(), check.decisions.front(), check.admitted, now);
  } else {
    check_many(check, now);
  }
  table_.clean(now);
  return Progress::answered;
}

void MemoryStore::check_one(const Charge& charge, Decision& decision, bool& admitted, Time now) {
  const LiveLimit* limit = LiveLimit::of(*charge.limit);
  if (limit == nullptr) {
    decision = without_figures(*charge.limit);
  } else {
    const CompiledLimit& compiled = limit->compiled;
    const std::int64_t instant = compiled.instant(now);
    const std::uint64_t place = table_.hash()(limit->id, charge.key);
    const auto hash = static_cast<std::uint32_t>(place);
    Shard& shard = table_.shard(table_.shard_number(place));
    shard.prefetch(hash);  // the lock's fence would keep the load from starting before it
    const memory::SlotKey key = table_.hash().slot_key(charge.key);
    const auto decide = [&]() -> Decision {
      const std::scoped_lock lock(shard);
      if (const std::uint32_t found = shard.find(hash, *limit, key); found != Shard::kNone) {
        shard.bring_up_to_date(found, *limit, instant);
        if (Cell& cell = shard[found].cell; limit->narrow.decides(cell)) [[likely]]
          return limit->narrow.decide(cell, instant, charge.cost);
        return compiled.decision(
            shard.change(found, *limit, [&](Cell& cell) { return compiled.decide(cell, instant, charge.cost); }));
      }
      Cell cell;
      const algorithm::Outcome outcome = compiled.decide(cell, instant, charge.cost);
      if (!cell.is_fresh()) shard.insert(hash, *limit, key, cell, outcome.view.reset_after, now);
      return compiled.decision(outcome);
    };
    try {
      decision = decide();
    } catch (const std::bad_alloc&) {
      decision = without_figures(*charge.limit);
    }
  }
  admitted = decision.allowed || charge.enforcement == Enforcement::shadow;
}

Decision MemoryStore::judge(const Charge& charge, Time now) {
  const LiveLimit* limit = LiveLimit::of(*charge.limit);
  if (limit == nullptr) return without_figures(*charge.limit);
  const CompiledLimit& compiled = limit->compiled;
  const std::int64_t instant = compiled.instant(now);
  const std::uint64_t place = table_.hash()(limit->id, charge.key);
  const auto hash = static_cast<std::uint32_t>(place);
  Shard& shard = table_.shard(table_.shard_number(place));
  const memory::SlotKey key = table_.hash().slot_key(charge.key);
  const auto look = [&](const Cell& cell) {
    Verdict verdict = compiled.judge(cell, instant, charge.cost);
    if (verdict.fits) verdict.forget_turn();
    return compiled.decision(verdict, compiled.view(cell, instant));
  };
  try {
    const std::scoped_lock lock(shard);
    const std::uint32_t found = shard.find(hash, *limit, key);
    return look(*SeenCell(shard, found, *limit, instant));
  } catch (const std::bad_alloc&) {
    return without_figures(*charge.limit);
  }
}

Progress MemoryStore::apply(Check& check, Time now) {
  check.failure = Failure::none;
  try {
    if (check.verb->kind == Verb::Kind::peek) {
      peek_many(check, now);
      return Progress::answered;
    }
    const CountedLimit& counted = *check.charges.front().limit;
    const LiveLimit* limit = LiveLimit::of(counted);
    if (limit == nullptr || !has_verb(counted.numbers.algorithm, check.verb->kind)) {
      check.failure = Failure::unsupported;
      return Progress::answered;
    }
    apply_one(check, *limit, now);
  } catch (const std::bad_alloc&) {
    check.failure = Failure::out_of_memory;
  }
  table_.clean(now);
  return Progress::answered;
}

void MemoryStore::apply_one(Check& check, const LiveLimit& limit, Time now) {
  const Charge& charge = check.charges.front();
  const CompiledLimit& compiled = limit.compiled;
  const std::int64_t instant = compiled.instant(now);
  const std::uint64_t place = table_.hash()(limit.id, charge.key);
  const auto hash = static_cast<std::uint32_t>(place);
  Shard& shard = table_.shard(table_.shard_number(place));
  const memory::SlotKey key = table_.hash().slot_key(charge.key);
  const auto change = [&](Cell& cell) {
    check.admitted = carry_out(*check.verb, compiled, cell, now);
    return compiled.peek(cell, instant, 0);
  };
  algorithm::Outcome outcome;
  {
    const std::scoped_lock lock(shard);
    std::uint32_t found = shard.find(hash, limit, key);
    if (found != Shard::kNone && check.verb->kind == Verb::Kind::reset) {
      shard.erase(found);
      found = Shard::kNone;
    }
    if (found != Shard::kNone) {
      shard.bring_up_to_date(found, limit, instant);
      outcome = shard.change(found, limit, change);
      shard.note_life(outcome.view.reset_after, now);
    } else {
      Cell cell;
      outcome = change(cell);
      if (!cell.is_fresh()) shard.insert(hash, limit, key, cell, outcome.view.reset_after, now);
    }
  }
  check.decisions.front() = compiled.decision(outcome);
}

// Under the lock of the cell's shard, so that ids rise in each cell: it skips those before.
std::uint64_t MemoryStore::take_lease(const LiveLimit& limit, Cell& cell, std::int64_t instant, std::uint64_t cost) {
  return limit.compiled.take_lease(cell, instant, cost, leases_.fetch_add(1, std::memory_order_relaxed));
}

/// One charge of several on its way.
struct MemoryStore::Step {
  const LiveLimit* limit = nullptr;  // null: cannot be judged
  std::uint32_t shard = 0;
  std::uint32_t hash = 0;
  std::uint32_t slot = Shard::kNone;
  std::int64_t instant = 0;
  memory::SlotKey key;
  Cell fresh;  // of a key that is not there
  Verdict verdict;
};

/// Holds the locks of several shards, taken in ascending order, each once.
class MemoryStore::Locks {
 public:
  Locks(const memory::Table<memory::PolicyRecord>& table, std::vector<std::uint32_t>& numbers)
      : table_(table), numbers_(numbers) {
    std::ranges::sort(numbers_);
    numbers_.erase(std::ranges::unique(numbers_).begin(), numbers_.end());
    for (const std::uint32_t number : numbers_) table_.shard(number).lock();
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() {
    for (const std::uint32_t number : numbers_) table_.shard(number).unlock();
  }

 private:
  const memory::Table<memory::PolicyRecord>& table_;
  std::vector<std::uint32_t>& numbers_;
};

/// Where each charge belongs, in `steps`; the shards of all.
void MemoryStore::locate(const Check& check, Time now, std::vector<Step>& steps, std::vector<std::uint32_t>& shards) {
  assert(check.decisions.size() == check.charges.size());
  steps.assign(check.charges.size(), Step{});
  shards.clear();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    const Charge& charge = check.charges[i];
    step.limit = LiveLimit::of(*charge.limit);
    if (step.limit == nullptr) continue;
    step.instant = step.limit->compiled.instant(now);
    const std::uint64_t place = table_.hash()(step.limit->id, charge.key);
    step.hash = static_cast<std::uint32_t>(place);
    step.shard = table_.shard_number(place);
    table_.shard(step.shard).prefetch(step.hash);
    step.key = table_.hash().slot_key(charge.key);
    shards.push_back(step.shard);
  }
}

/// Under the locks of all shards.
void MemoryStore::find_all(std::vector<Step>& steps) {
  for (Step& step : steps) {
    if (step.limit != nullptr) step.slot = table_.shard(step.shard).find(step.hash, *step.limit, step.key);
  }
}

void MemoryStore::peek_many(Check& check, Time now) {
  std::vector<Step> steps;
  std::vector<std::uint32_t> shard_numbers;
  locate(check, now, steps, shard_numbers);
  std::vector<SeenCell> seen(steps.size());
  Admission admission;
  const Locks locks(table_, shard_numbers);
  find_all(steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    const Charge& charge = check.charges[i];
    if (step.limit == nullptr) {
      check.decisions[i] = without_figures(*charge.limit);
      admission.add(charge.enforcement, check.decisions[i].allowed);
      continue;
    }
    seen[i] = SeenCell(table_.shard(step.shard), step.slot, *step.limit, step.instant);
    admission.add(charge.enforcement, step.limit->compiled.judge(*seen[i], step.instant, charge.cost).fits);
  }
  check.admitted = admission.admitted();
  std::ranges::fill(check.leases, 0);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (step.limit == nullptr) continue;
    check.decisions[i] = look(step.limit->compiled, *seen[i], step.instant, check.charges[i].cost, check.admitted);
  }
}

void MemoryStore::check_many(Check& check, Time now) {
  // Kept by each thread so that a call allocates nothing.
  thread_local std::vector<Step> steps;
  thread_local std::vector<std::uint32_t> shard_numbers;
  locate(check, now, steps, shard_numbers);
  const std::size_t count = steps.size();

  Admission admission;
  const Locks locks(table_, shard_numbers);
  find_all(steps);
  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    const Charge& charge = check.charges[i];
    if (step.limit != nullptr && step.slot != Shard::kNone) {
      Shard& shard = table_.shard(step.shard);
      try {
        shard.bring_up_to_date(step.slot, *step.limit, step.instant);
        step.verdict = step.limit->compiled.judge(shard[step.slot].cell, step.instant, charge.cost);
      } catch (const std::bad_alloc&) {
        step.limit = nullptr;
      }
    } else if (step.limit != nullptr) {
      step.verdict = step.limit->compiled.judge(step.fresh, step.instant, charge.cost);
    }
    if (step.limit == nullptr) {
      check.decisions[i] = without_figures(*charge.limit);
      admission.add(charge.enforcement, check.decisions[i].allowed);
    } else {
      admission.add(charge.enforcement, step.verdict.fits);
    }
  }

  check.admitted = admission.admitted();
  std::ranges::fill(check.leases, 0);
  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    if (step.limit == nullptr) continue;
    const CompiledLimit& compiled = step.limit->compiled;
    const Charge& charge = check.charges[i];
    const auto carry_out = [&](Cell& cell) {
      if (!step.verdict.fits) {
        compiled.count_denied(cell, step.instant, charge.cost);
      } else if (check.admitted && !check.leases.empty() && charge.limit->numbers.algorithm == Algorithm::concurrency) {
        check.leases[i] = take_lease(*step.limit, cell, step.instant, charge.cost);
      } else if (check.admitted) {
        compiled.take(cell, step.instant, charge.cost);
      } else {
        step.verdict.forget_turn();
      }
      return compiled.view(cell, step.instant);
    };
    try {
      const algorithm::View view = step.slot == Shard::kNone
                                       ? carry_out(step.fresh)
                                       : table_.shard(step.shard).change(step.slot, *step.limit, carry_out);
      check.decisions[i] = compiled.decision(step.verdict, view);
    } catch (const std::bad_alloc&) {
      // What was taken from other limits stays taken: giving it back could fail as well.
      check.decisions[i] = without_figures(*charge.limit);
      if (!check.decisions[i].allowed && charge.enforcement == Enforcement::enforce) check.admitted = false;
    }
  }
  // New keys last: they move others.
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    if (step.limit == nullptr || step.slot != Shard::kNone || step.fresh.is_fresh()) continue;
    const std::int64_t life = step.limit->compiled.view(step.fresh, step.instant).reset_after;
    table_.shard(step.shard).insert(step.hash, *step.limit, step.key, step.fresh, life, now);
  }
}

}  // namespace sluice::store
