#include "store/memory/memory_store.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <mutex>
#include <vector>

#include "store/admission.h"
#include "store/memory/live_limit.h"
#include "store/memory/record.h"

namespace sluice::store {
namespace {

using algorithm::CompiledLimit;
using algorithm::Verdict;
using memory::LiveLimit;
using memory::Shard;

constexpr std::uint64_t kKeysPerShard = 4'096;

bool is_fresh(const CompiledLimit::State& state) { return state.last == algorithm::kNeverSeen; }

// Nothing is taken, so it does not take the last token, nor has it a turn.
void forget_turn(Verdict& verdict) {
  verdict.mark = Mark::none;
  verdict.delay = 0;
}

Decision without_figures(const CountedLimit& limit) {
  Decision decision;
  decision.allowed = limit.on_store_failure != OnStoreFailure::deny;
  decision.source = decision.allowed ? Source::fallback_allow : Source::fallback_deny;
  return decision;
}

}  // namespace

MemoryStore::MemoryStore(std::uint64_t max_keys) {
  assert(max_keys >= 1 && max_keys <= kMostKeys);
  const auto shards = static_cast<std::uint32_t>(std::bit_floor(std::max<std::uint64_t>(1, max_keys / kKeysPerShard)));
  const auto capacity = static_cast<std::uint32_t>(max_keys / shards);
  arena_ = std::make_unique<memory::SlotArena>(shards, Shard::most_slots(capacity));
  shards_ = std::make_unique<Shard[]>(shards);
  shard_mask_ = shards - 1;
  for (std::uint32_t i = 0; i < shards; ++i) {
    shards_[i].init(*arena_, i, capacity, static_cast<std::uint32_t>(hash_(i, "eviction")));
  }
}

MemoryStore::~MemoryStore() = default;

Progress MemoryStore::check(Check& check, Time now) {
  if (check.charges.size() == 1) {
    check_one(check.charges.front(), check.decisions.front(), check.admitted, now);
  } else {
    check_many(check, now);
  }
  clean(now);
  return Progress::answered;
}

void MemoryStore::check_one(const Charge& charge, Decision& decision, bool& admitted, Time now) {
  const LiveLimit* limit = LiveLimit::of(*charge.limit);
  if (limit == nullptr) {
    decision = without_figures(*charge.limit);
  } else {
    const CompiledLimit& compiled = limit->compiled;
    const std::int64_t instant = compiled.instant(now);
    const std::uint64_t hash = hash_(limit->id, charge.key);
    const auto slot_hash = static_cast<std::uint32_t>(hash);
    Shard& shard = shards_[shard_of(hash)];
    shard.prefetch(slot_hash);  // the lock's fence would keep the load from starting before it
    const memory::SlotKey key = hash_.slot_key(charge.key);
    algorithm::Outcome outcome;
    {
      const std::scoped_lock lock(shard);
      if (const std::uint32_t found = shard.find(slot_hash, *limit, key); found != Shard::kNone) {
        shard.bring_up_to_date(found, *limit, instant);
        outcome = compiled.decide(shard[found].state, instant, charge.cost);
      } else {
        CompiledLimit::State state;
        outcome = compiled.decide(state, instant, charge.cost);
        if (!is_fresh(state)) {
          shard.insert(slot_hash, *limit, key, state, outcome.view.reset_after, now);
        }
      }
    }
    decision = compiled.decision(outcome);
  }
  admitted = decision.allowed || charge.enforcement == Enforcement::shadow;
}

Decision MemoryStore::judge(const Charge& charge, Time now) {
  const LiveLimit* limit = LiveLimit::of(*charge.limit);
  if (limit == nullptr) return without_figures(*charge.limit);
  const CompiledLimit& compiled = limit->compiled;
  const std::int64_t instant = compiled.instant(now);
  const std::uint64_t hash = hash_(limit->id, charge.key);
  const auto slot_hash = static_cast<std::uint32_t>(hash);
  Shard& shard = shards_[shard_of(hash)];
  const memory::SlotKey key = hash_.slot_key(charge.key);
  CompiledLimit::State state;
  {
    const std::scoped_lock lock(shard);
    if (const std::uint32_t found = shard.find(slot_hash, *limit, key); found != Shard::kNone) {
      shard.bring_up_to_date(found, *limit, instant);
      state = shard[found].state;
    }
  }
  Verdict verdict = compiled.judge(state, instant, charge.cost);
  if (verdict.fits) forget_turn(verdict);
  return compiled.decision(verdict, compiled.view(state, instant));
}

/// One charge of several on its way.
struct MemoryStore::Step {
  const LiveLimit* limit = nullptr;  // null: cannot be judged
  std::uint32_t shard = 0;
  std::uint32_t hash = 0;
  std::uint32_t slot = Shard::kNone;
  std::int64_t instant = 0;
  memory::SlotKey key;
  CompiledLimit::State state;
  Verdict verdict;
};

/// Holds the locks of several shards, taken in ascending order, each once.
class MemoryStore::Locks {
 public:
  Locks(Shard* shards, std::vector<std::uint32_t>& numbers) : shards_(shards), numbers_(numbers) {
    std::ranges::sort(numbers_);
    numbers_.erase(std::ranges::unique(numbers_).begin(), numbers_.end());
    for (const std::uint32_t number : numbers_) shards_[number].lock();
  }
  Locks(const Locks&) = delete;
  Locks& operator=(const Locks&) = delete;
  ~Locks() {
    for (const std::uint32_t number : numbers_) shards_[number].unlock();
  }

 private:
  Shard* shards_;
  std::vector<std::uint32_t>& numbers_;
};

void MemoryStore::check_many(Check& check, Time now) {
  // Kept by each thread so that a call allocates nothing.
  thread_local std::vector<Step> steps;
  thread_local std::vector<std::uint32_t> shard_numbers;
  const std::size_t count = check.charges.size();
  assert(check.decisions.size() == count);
  steps.assign(count, Step{});
  shard_numbers.clear();

  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    const Charge& charge = check.charges[i];
    step.limit = LiveLimit::of(*charge.limit);
    if (step.limit == nullptr) continue;
    step.instant = step.limit->compiled.instant(now);
    const std::uint64_t hash = hash_(step.limit->id, charge.key);
    step.hash = static_cast<std::uint32_t>(hash);
    step.shard = shard_of(hash);
    shards_[step.shard].prefetch(step.hash);
    step.key = hash_.slot_key(charge.key);
    shard_numbers.push_back(step.shard);
  }

  Admission admission;
  const Locks locks(shards_.get(), shard_numbers);
  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    if (step.limit != nullptr) step.slot = shards_[step.shard].find(step.hash, *step.limit, step.key);
  }
  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    const Charge& charge = check.charges[i];
    if (step.limit == nullptr) {
      check.decisions[i] = without_figures(*charge.limit);
      admission.add(charge.enforcement, check.decisions[i].allowed);
      continue;
    }
    if (step.slot != Shard::kNone) {
      Shard& shard = shards_[step.shard];
      shard.bring_up_to_date(step.slot, *step.limit, step.instant);
      step.state = shard[step.slot].state;
    }
    step.verdict = step.limit->compiled.judge(step.state, step.instant, charge.cost);
    admission.add(charge.enforcement, step.verdict.fits);
  }

  check.admitted = admission.admitted();
  for (std::size_t i = 0; i < count; ++i) {
    Step& step = steps[i];
    if (step.limit == nullptr) continue;
    const CompiledLimit& compiled = step.limit->compiled;
    const Charge& charge = check.charges[i];
    if (!step.verdict.fits) {
      compiled.count_denied(step.state, step.instant, charge.cost);
    } else if (check.admitted) {
      compiled.take(step.state, step.instant, charge.cost);
    } else {
      forget_turn(step.verdict);
    }
    check.decisions[i] = compiled.decision(step.verdict, compiled.view(step.state, step.instant));
    if (step.slot != Shard::kNone) shards_[step.shard][step.slot].state = step.state;
  }
  // New keys last: they move others.
  for (std::size_t i = 0; i < count; ++i) {
    const Step& step = steps[i];
    if (step.limit == nullptr || step.slot != Shard::kNone || is_fresh(step.state)) continue;
    const std::int64_t life = step.limit->compiled.view(step.state, step.instant).reset_after;
    shards_[step.shard].insert(step.hash, *step.limit, step.key, step.state, life, now);
  }
}

void MemoryStore::clean_some(Time now) {
  const std::unique_lock cleaner(cleaning_, std::try_to_lock);
  if (!cleaner.owns_lock()) return;
  const std::uint32_t shards = shard_mask_ + 1;
  const std::int64_t per_shard = std::max<std::int64_t>(1, Shard::kSoon / shards);
  if (cursor_ == shards || !pass_begun_) {
    pass_begun_ = true;
    pass_start_ = now.steady;
    cursor_ = 0;
  }
  // The pass should be here by now. A thread with an older clock finds it ahead and does nothing.
  const std::int64_t elapsed = std::max<std::int64_t>(0, now.steady - pass_start_);
  const auto target = static_cast<std::uint32_t>(std::min<std::int64_t>(shards, elapsed / per_shard + 1));
  for (std::uint32_t looked = 0; cursor_ < target && looked < kMostLooked; ++cursor_) {
    constexpr std::uint32_t as_slots = 8;  // what going to a shard costs
    Shard& shard = shards_[cursor_];
    const std::scoped_lock lock(shard);
    looked += shard.clean(now) + as_slots;
  }
  const std::int64_t due = cursor_ < target ? now.steady : pass_start_ + cursor_ * per_shard;
  clean_due_.store(cursor_ == shards ? std::max(now.steady, pass_start_ + Shard::kSoon) : due,
                   std::memory_order_relaxed);
}

MemoryStore::Figures MemoryStore::figures() const {
  Figures sum;
  for (std::uint32_t i = 0; i <= shard_mask_; ++i) {
    const Shard& shard = shards_[i];
    sum.keys += shard.size();
    sum.evicted += shard.evicted();
    sum.expired += shard.expired();
    sum.work += shard.work();
    sum.bytes += sizeof(Shard);
  }
  sum.bytes += arena_->bytes();
  return sum;
}

}  // namespace sluice::store
