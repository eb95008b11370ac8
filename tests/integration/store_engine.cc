#include "tests/integration/store_engine.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "algorithm/int128.h"
#include "store/limit_ids.h"

namespace sluice::testing {

namespace {

using algorithm::Int128;
using boost::json::object;
using boost::json::value;
using model::Operation;

class PlainCheck final : public store::Check {
 public:
  void complete() override {}
};

value mark_of(const Decision& decision) {
  if (decision.mark == Mark::none) return nullptr;
  return decision.mark == Mark::quota_hit ? "quota_hit" : "over_quota";
}

// The decision of many, as docs/semantics.md section 4 has it.
std::size_t deciding(bool admitted, const std::vector<Decision>& decisions) {
  std::size_t best = decisions.size();
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (!admitted && decisions[i].allowed) continue;
    if (best == decisions.size()) {
      best = i;
      continue;
    }
    const Decision& one = decisions[i];
    const Decision& leader = decisions[best];
    if (!admitted) {
      if (one.retry_after > leader.retry_after) best = i;
    } else if (leader.limit != 0) {
      const bool less = one.limit == 0 || static_cast<Int128>(one.remaining) * leader.limit <
                                              static_cast<Int128>(leader.remaining) * one.limit;
      if (less) best = i;
    }
  }
  return best;
}

}  // namespace

value StoreEngine::ticks(const Wait& wait) const {
  return wait.is_never() ? value(nullptr) : value(wait.value().count() / nanoseconds_in(tick_));
}

object StoreEngine::figures(const Decision& decision) const {
  return {{"limit", decision.limit},
          {"remaining", decision.remaining},
          {"retry_after", ticks(decision.retry_after)},
          {"reset_after", ticks(decision.reset_after)}};
}

StoreEngine::Held& StoreEngine::held(const std::string& limit, const std::string& key) {
  Held& one = held_[{limit, key}];
  if (one.counted.id == 0) {
    one.counted.numbers = limits_.at(limit);
    one.counted.identity = "test/" + limit;
    one.counted.id = store::limit_id(one.counted.identity);
  }
  return one;
}

object StoreEngine::apply(const Operation& operation) {
  if (operation.verb == "limit") {
    begin();
    limits_[operation.limit] = model::with_numbers({}, operation.numbers, tick_);
    return {};
  }
  if (operation.verb == "check") return check(operation.charges, operation.now, nullptr);
  const store::Verb peek = store::Verb::peek();
  if (operation.verb == "peek") return check(operation.charges, operation.now, &peek);
  return verb(operation);
}

object StoreEngine::check(const std::vector<model::TracedCharge>& traced, std::int64_t now, const store::Verb* verb) {
  // The same key twice is one charge of the sum, in the place of the first.
  std::map<Name, std::size_t> places;
  std::vector<store::Charge> charges;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    const auto [place, is_new] = places.try_emplace({traced[i].limit, traced[i].key}, charges.size());
    if (!is_new) {
      charges[place->second].cost += traced[i].cost;
      continue;
    }
    const Held& one = held(traced[i].limit, traced[i].key);
    charges.push_back({.limit = &one.counted, .key = place->first.second, .cost = traced[i].cost});
    indices.push_back(i);
  }
  std::vector<Decision> decisions(charges.size());
  std::vector<std::uint64_t> leases(charges.size());
  PlainCheck check;
  check.charges = charges;
  check.decisions = decisions;
  check.leases = leases;

  check.verb = verb;

  ask(check, now);
  const std::size_t which = deciding(check.admitted, decisions);
  object answer = figures(decisions[which]);
  answer["allowed"] = check.admitted;
  value delay(nullptr);
  boost::json::array given;
  bool has_delay = false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Algorithm algorithm = charges[i].limit->numbers.algorithm;
    if (algorithm == Algorithm::leaky_bucket) {
      has_delay = true;
      const std::int64_t own = decisions[i].delay.value().count() / nanoseconds_in(tick_);
      if (check.admitted) delay = std::max(delay.is_null() ? 0 : delay.as_int64(), own);
    } else if (algorithm == Algorithm::concurrency && check.admitted) {
      auto& known = held(traced[indices[i]].limit, traced[indices[i]].key).leases;
      const bool took = verb == nullptr ? leases[i] != 0 : charges[i].cost > 0;
      given.push_back(took ? value(known.size() + 1) : value(nullptr));
      if (took && verb == nullptr) known.emplace_back(leases[i], charges[i].cost);
    }
  }
  if (has_delay) answer["delay"] = delay;
  const Algorithm algorithm = charges[0].limit->numbers.algorithm;
  if (traced.size() > 1) {
    answer["which"] = indices[which];
    answer["leases"] = given;
  } else if (algorithm == Algorithm::fixed_window) {
    answer["mark"] = mark_of(decisions[0]);
  } else if (algorithm == Algorithm::concurrency) {
    answer["lease"] = given.empty() ? value(nullptr) : given[0];
  }
  return answer;
}

object StoreEngine::verb(const Operation& operation) {
  using store::Verb;
  const Name name{operation.limit, operation.key};
  Held& one = held(operation.limit, operation.key);
  if (operation.verb == "set_limit") {
    store::CountedLimit next = one.counted;
    next.numbers = model::with_numbers(next.numbers, operation.numbers, tick_);
    one.counted = next;
    return check({{operation.limit, operation.key, 0}}, operation.now, nullptr);
  }
  Verb verb;
  std::optional<std::int64_t> at = operation.at;
  if (at) *at *= nanoseconds_in(tick_);
  if (operation.verb == "reset") {
    verb = Verb::reset();
  } else if (operation.verb == "refund") {
    verb = Verb::refund(operation.cost, at);
  } else if (operation.verb == "settle") {
    verb = Verb::settle(operation.reserved, operation.actual, at);
  } else if (operation.verb == "penalize") {
    verb = Verb::penalize(operation.cost);
  } else if (operation.verb == "release") {
    const bool is_known = operation.lease >= 1 && operation.lease <= one.leases.size();
    const auto lease = is_known ? one.leases[operation.lease - 1] : std::pair<std::uint64_t, std::uint64_t>{999, 1};
    verb = Verb::release(lease.first, lease.second);
  } else {
    throw std::invalid_argument("unknown verb " + operation.verb);
  }
  const store::Charge charge{.limit = &one.counted, .key = name.second};
  Decision decision;
  PlainCheck told;
  told.charges = {&charge, 1};
  told.decisions = {&decision, 1};
  told.verb = &verb;
  ask(told, operation.now);
  object answer = figures(decision);
  answer["allowed"] = true;
  const Algorithm algorithm = one.counted.numbers.algorithm;
  if (algorithm == Algorithm::fixed_window) answer["mark"] = nullptr;
  if (algorithm == Algorithm::leaky_bucket) answer["delay"] = decision.delay.value().count() / nanoseconds_in(tick_);
  if (algorithm == Algorithm::concurrency) answer["lease"] = nullptr;
  if (operation.verb == "release") answer["released"] = told.admitted;
  return answer;
}

}  // namespace sluice::testing
