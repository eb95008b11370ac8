#include "compat/counting_store.h"

#include <algorithm>
#include <utility>

#include "store/admission.h"

namespace sluice::compat {

using store::Charge;
using store::Check;
using store::Progress;

/// One call to a store below.
class CountingStore::Part final : public Check {
 public:
  explicit Part(CountingStore& owner) : owner_(owner) {}
  void complete() override {
    pending_at = nullptr;
    owner_.part_answered(*job);
  }

  Job* job = nullptr;
  store::Store* pending_at = nullptr;  ///< null: it is answered

 private:
  CountingStore& owner_;
};

struct CountingStore::Job {
  Check* outer = nullptr;
  std::vector<std::unique_ptr<Part>> parts;  ///< the first `used` of them
  std::size_t used = 0;
  std::size_t left = 0;  ///< answers to come
};

CountingStore::CountingStore(Stores stores, bool each) : stores_(std::move(stores)), each_(each) {}
CountingStore::~CountingStore() = default;

store::Store& CountingStore::store_of(const Charge& charge) const {
  const bool is_other = stores_.per_second != nullptr && store::is_of_seconds(*charge.limit);
  return is_other ? *stores_.per_second : *stores_.main;
}

std::size_t CountingStore::part_end(const Check& check, std::size_t begin) const {
  std::size_t end = begin + 1;
  if (each_) return end;
  const store::Store& store = store_of(check.charges[begin]);
  while (end < check.charges.size() && &store_of(check.charges[end]) == &store) ++end;
  return end;
}

Progress CountingStore::check(Check& check, Time now) { return start(check, now); }

Progress CountingStore::apply(Check& check, Time now) { return start(check, now); }

Progress CountingStore::start(Check& check, Time now) {
  Job& job = take_job();
  job.outer = &check;
  job.left = 1;  // not answered before all have been asked
  for (std::size_t begin = 0; begin < check.charges.size();) {
    const std::size_t end = part_end(check, begin);
    if (job.used == job.parts.size()) job.parts.push_back(std::make_unique<Part>(*this));
    Part& part = *job.parts[job.used++];
    part.job = &job;
    part.charges = check.charges.subspan(begin, end - begin);
    part.decisions = check.decisions.subspan(begin, end - begin);
    part.leases = check.leases.empty() ? std::span<std::uint64_t>() : check.leases.subspan(begin, end - begin);
    part.verb = check.verb;
    part.admitted = false;
    part.failure = store::Failure::none;
    store::Store& store = store_of(check.charges[begin]);
    const Progress progress = check.verb == nullptr ? store.check(part, now) : store.apply(part, now);
    if (progress == Progress::pending) {
      part.pending_at = &store;
      ++job.left;
    }
    begin = end;
  }
  if (--job.left > 0) return Progress::pending;
  settle(job);
  return Progress::answered;
}

void CountingStore::part_answered(Job& job) {
  if (--job.left > 0) return;
  Check& outer = *job.outer;
  settle(job);
  outer.complete();
}

/// Answers the outer check, but for telling it, and ends the job.
void CountingStore::settle(Job& job) {
  Check& check = *job.outer;
  check.failure = store::Failure::none;
  bool done = true;
  for (std::size_t i = 0; i < job.used; ++i) {
    if (job.parts[i]->failure != store::Failure::none) check.failure = job.parts[i]->failure;
    done = done && job.parts[i]->admitted;
  }
  for (std::size_t i = 0; i < check.charges.size(); ++i) {
    const Charge& charge = check.charges[i];
    if (charge.limit->threshold == store::kNoThreshold || check.failure != store::Failure::none) continue;
    const std::uint64_t counted = judge_by_threshold(charge, check.decisions[i]);
    if (!check.counts.empty()) check.counts[i] = counted;
  }
  const bool judges = check.verb == nullptr || check.verb->kind == store::Verb::Kind::peek;
  check.admitted = judges ? store::admission_of(check.charges, check.decisions).admitted() : done;
  release(job);
}

void CountingStore::cancel(Check& check) {
  const auto found = std::ranges::find_if(jobs_, [&](const auto& job) { return job->outer == &check; });
  if (found == jobs_.end()) return;
  Job& job = **found;
  for (std::size_t i = 0; i < job.used; ++i) {
    if (store::Store* store = std::exchange(job.parts[i]->pending_at, nullptr)) store->cancel(*job.parts[i]);
  }
  release(job);
}

bool CountingStore::ready() const {
  return stores_.main->ready() && (stores_.per_second == nullptr || stores_.per_second->ready());
}

void CountingStore::tend(Time now) {
  stores_.main->tend(now);
  if (stores_.per_second != nullptr) stores_.per_second->tend(now);
}

CountingStore::Job& CountingStore::take_job() {
  if (free_.empty()) {
    jobs_.push_back(std::make_unique<Job>());
    free_.push_back(jobs_.back().get());
  }
  Job& job = *free_.back();
  free_.pop_back();
  return job;
}

void CountingStore::release(Job& job) {
  job.outer = nullptr;
  job.used = 0;
  free_.push_back(&job);
}

std::uint64_t judge_by_threshold(const Charge& charge, Decision& decision) {
  if (decision.source == Source::fallback_allow || decision.source == Source::fallback_deny) return 0;
  __extension__ using Wide = unsigned __int128;
  // A node that counts by itself while the store fails has a share of the limit.
  const auto limit = static_cast<std::uint64_t>(Wide{charge.limit->threshold} * decision.limit / kMaxRate);
  const bool is_banned = decision.mark == Mark::banned;
  const std::uint64_t counted = decision.limit - decision.remaining + (decision.allowed || is_banned ? 0 : charge.cost);
  decision.limit = limit;
  decision.remaining = counted < limit ? limit - counted : 0;
  if (is_banned) return counted;
  decision.allowed = counted <= limit;
  decision.mark = Mark::none;
  decision.retry_after = Wait();
  if (!decision.allowed) {
    decision.mark = Mark::over_quota;
    decision.retry_after = charge.cost > limit ? Wait::never() : decision.reset_after;
  } else if (counted == limit && charge.cost > 0) {
    decision.mark = Mark::quota_hit;
  }
  return counted;
}

}  // namespace sluice::compat
