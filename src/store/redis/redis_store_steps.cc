// Requests whose keys cannot share a call: a step each, and what is given back.
#include <utility>

#include "store/redis/give_back.h"
#include "store/redis/redis_store.h"

namespace sluice::store::redis {

Progress RedisStore::submit_split(Check& check, Time now, std::int64_t steady_now) {
  if (free_splits_.empty()) {
    SplitCheck::Owner& owner = *this;
    splits_.push_back(std::make_unique<SplitCheck>(owner));
    free_splits_.push_back(splits_.back().get());
  }
  // Nothing is taken anywhere when it is plain that some of it cannot be.
  for (const std::uint64_t group : groups_) {
    Link* const link = pick(group);
    check.failure = link == nullptr ? unserved() : link->client().obstacle();
    if (check.failure == Failure::none) continue;
    if (link != nullptr) link->client().refuse(check.failure, steady_now);
    if (check.failure != Failure::circuit_open) {
      metrics_.add(metrics::Counter::store_checks);
      count(check.failure);
    }
    return Progress::answered;
  }
  metrics_.add(metrics::Counter::store_checks);
  metrics_.add(metrics::Counter::store_splits);
  SplitCheck& split = *free_splits_.back();
  free_splits_.pop_back();
  split.start(check, scratch_, groups_, now, steady_now + options_.timeout.count());
  starting_ = &split;
  split.go();
  // Null: it has failed at once.
  return std::exchange(starting_, nullptr) == nullptr ? Progress::answered : Progress::pending;
}

Failure RedisStore::submit_part(SplitCheck& split, SplitCheck::Part& part) {
  Link* const link = pick(part.group);
  if (link != nullptr) part.link_serial = link->client().link_serial();
  return submit_to(link, part, part.limits, split.caller(), part.group, Session::now(), split.deadline());
}

// Sent once: it may have been carried out even if no answer comes.
void RedisStore::give_back(const SplitCheck& split, const SplitCheck::Part& part, std::size_t charge,
                           const std::optional<Verb>& verb) {
  Link* const link = verb ? pick(part.group) : nullptr;
  // After a new connection it may be another server, which has not seen the charge.
  if (link == nullptr || link->client().link_serial() != part.link_serial) {
    metrics_.add(metrics::Counter::store_losses);
    return;
  }
  if (free_give_backs_.empty()) {
    give_backs_.push_back(std::make_unique<GiveBack>(*this));
    free_give_backs_.push_back(give_backs_.back().get());
  }
  GiveBack& step = *free_give_backs_.back();
  free_give_backs_.pop_back();
  step.set(part.own_charges[charge], *verb);
  const std::int64_t now = Session::now();
  // A calendar's windows are told to the server by the caller's time, as they were with the charge.
  step.failure =
      submit_to(link, step, {&part.limits[charge], 1}, split.caller(), part.group, now, now + options_.timeout.count());
  if (step.failure != Failure::none) step.complete();
}

void RedisStore::split_done(SplitCheck& split) {
  Check* const outer = split.outer();
  free_splits_.push_back(&split);
  split.clear();
  if (outer == nullptr) return;
  count(outer->failure);
  if (starting_ == &split) {
    starting_ = nullptr;
  } else {
    outer->complete();
  }
}

}  // namespace sluice::store::redis
