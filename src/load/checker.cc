#include "load/checker.h"

#include <algorithm>
#include <limits>

namespace sluice::load {
namespace {

bool looks_at_windows(const Limit& limit) {
  return limit.algorithm == Algorithm::sliding_log || limit.algorithm == Algorithm::concurrency;
}

std::uint64_t excess_over(std::uint64_t admitted, std::uint64_t bound) {
  return admitted > bound ? admitted - bound : 0;
}

}  // namespace

void Checker::Span::cover(Time from, Time to) {
  if (is_empty) {
    begin = from;
    end = to;
    is_empty = false;
    return;
  }
  if (from.steady < begin.steady) begin = from;
  if (to.steady > end.steady) end = to;
}

void Checker::Span::cover(const Span& other) {
  if (!other.is_empty) cover(other.begin, other.end);
}

Checker::KeyId Checker::key(const Limit& limit, std::string_view name) {
  auto at = std::ranges::find(limits_, limit);
  if (at == limits_.end()) at = limits_.insert(limits_.end(), limit);
  const auto which = static_cast<std::uint32_t>(at - limits_.begin());
  std::string id = std::to_string(which) + ' ';
  id += name;
  const auto [found, is_new] = ids_.try_emplace(std::move(id), static_cast<KeyId>(keys_.size()));
  if (is_new) {
    keys_.emplace_back().limit = which;
    names_.emplace_back(name);
  }
  return found->second;
}

void Checker::note(KeyId id, std::uint64_t cost, Time sent, Time answered, Answered how) {
  Key& key = keys_[id];
  key.asked = add_bounds(key.asked, cost);
  key.asking.cover(sent, answered);
  switch (how) {
    case Answered::admitted:
      key.admitted = add_bounds(key.admitted, cost);
      key.admitting.cover(sent, answered);
      if (looks_at_windows(limits_[key.limit]) && cost > 0) key.events.push_back({sent.steady, answered.steady, cost});
      break;
    case Answered::admitted_local:
      key.local = add_bounds(key.local, cost);
      key.rescuing.cover(sent, answered);
      break;
    case Answered::admitted_blind:
      key.blind = add_bounds(key.blind, cost);
      break;
    case Answered::denied:
    case Answered::denied_blind:
    case Answered::failed:
      break;
  }
}

void Checker::add(const Checker& other) {
  for (std::size_t i = 0; i < other.keys_.size(); ++i) {
    const Key& from = other.keys_[i];
    Key& to = keys_[key(other.limits_[from.limit], other.names_[i])];
    to.asked = add_bounds(to.asked, from.asked);
    to.admitted = add_bounds(to.admitted, from.admitted);
    to.local = add_bounds(to.local, from.local);
    to.blind = add_bounds(to.blind, from.blind);
    to.asking.cover(from.asking);
    to.admitting.cover(from.admitting);
    to.rescuing.cover(from.rescuing);
    to.events.insert(to.events.end(), from.events.begin(), from.events.end());
  }
}

std::uint64_t Checker::bound_of(const Key& key, const Span& span, const Allowance& allowance) const {
  if (span.is_empty) return 0;
  const Limit& limit = limits_[key.limit];
  std::uint64_t most = bound(limit, span.begin, span.end, allowance.slack);
  most = add_bounds(most, times_bound(capacity(limit), allowance.restarts));
  if (allowance.outage.count() > 0) {
    most = add_bounds(most, times_bound(local_bound(limit, allowance.outage), allowance.nodes));
  }
  return most;
}

// Requests that were sent and answered within less than a period were all counted within one: more than the rate is too
// much, wherever that period begins. Each one's sending is tried as a beginning.
std::uint64_t Checker::window_excess(const Key& key, const Allowance& allowance) const {
  const Limit& limit = limits_[key.limit];
  if (key.events.empty()) return 0;
  const std::int64_t length = limit.algorithm == Algorithm::concurrency ? limit.ttl.count() : limit.period.count();
  std::uint64_t most = times_bound(limit.rate, 1 + allowance.restarts);
  if (allowance.outage.count() > 0) {
    most = add_bounds(most, times_bound(local_bound(limit, allowance.outage), allowance.nodes));
  }
  std::vector<Event> by_sending = key.events;
  std::ranges::sort(by_sending, {}, &Event::sent);
  std::vector<Event> by_answer = key.events;
  std::ranges::sort(by_answer, {}, &Event::answered);
  // Of a window [a, b): those answered before b, less those sent before a. One sent before a but answered in it is
  // taken away without having to be: that only makes the sum smaller.
  std::uint64_t answered = 0;
  std::uint64_t sent_before = 0;
  std::size_t next = 0;
  std::uint64_t worst = 0;
  for (const Event& event : by_sending) {
    while (next < by_answer.size() && by_answer[next].answered < event.sent + length)
      answered += by_answer[next++].cost;
    if (answered > sent_before) worst = std::max(worst, excess_over(answered - sent_before, most));
    sent_before += event.cost;
  }
  return worst;
}

std::uint64_t Checker::local_excess(const Key& key, const Allowance& allowance) const {
  if (key.local == 0) return 0;
  return excess_over(key.local, times_bound(local_bound(limits_[key.limit], key.rescuing.length()), allowance.nodes));
}

KeyReport Checker::report_of(const Key& key, const Allowance& allowance) const {
  KeyReport report;
  report.admitted = add_bounds(key.admitted, key.local);
  report.bound = bound_of(key, key.admitting, allowance);
  report.excess = std::max(excess_over(key.admitted, report.bound), window_excess(key, allowance));
  if (key.local > 0) {
    report.excess = add_bounds(report.excess, local_excess(key, allowance));
    report.bound =
        add_bounds(report.bound, times_bound(local_bound(limits_[key.limit], key.rescuing.length()), allowance.nodes));
  }
  return report;
}

KeyReport Checker::report(KeyId id, const Allowance& allowance) const {
  KeyReport report = report_of(keys_[id], allowance);
  report.name = names_[id];
  return report;
}

CheckReport Checker::report(const Allowance& allowance) const {
  CheckReport all;
  all.keys = keys_.size();
  double wanted_bound = 0;
  double wanted_admitted = 0;
  double least = std::numeric_limits<double>::infinity();
  double nearest = -1;
  std::uint64_t largest_capacity = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const Key& key = keys_[i];
    const KeyReport one = report_of(key, allowance);
    largest_capacity = std::max(largest_capacity, capacity(limits_[key.limit]));
    all.admitted = add_bounds(all.admitted, key.admitted);
    all.admitted_local = add_bounds(all.admitted_local, key.local);
    all.admitted_blind = add_bounds(all.admitted_blind, key.blind);
    // Of a key that was admitted nothing, what it might have been.
    const std::uint64_t asked_bound = bound_of(key, key.asking, allowance);
    all.bound = add_bounds(all.bound, std::max(one.bound, asked_bound));
    if (one.excess > 0) ++all.keys_over;
    all.excess = add_bounds(all.excess, one.excess);
    const double ratio = one.bound == 0 ? 0 : static_cast<double>(one.admitted) / static_cast<double>(one.bound);
    if (one.excess > all.worst.excess || (all.worst.excess == 0 && ratio > nearest)) {
      all.worst = one;
      all.worst.name = names_[i];
      nearest = std::max(nearest, ratio);
    }
    if (asked_bound > 0 && key.asked / 2 >= asked_bound) {
      ++all.keys_wanted;
      const double used = static_cast<double>(key.admitted) / static_cast<double>(asked_bound);
      wanted_bound += static_cast<double>(asked_bound);
      wanted_admitted += static_cast<double>(key.admitted);
      least = std::min(least, used);
    }
  }
  all.allowed = times_bound(largest_capacity, allowance.evictions);
  if (all.keys_wanted > 0) {
    all.used = wanted_admitted / wanted_bound;
    all.used_least = least;
  }
  return all;
}

}  // namespace sluice::load
