#include "tests/model/engine.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "algorithm/int128.h"

namespace sluice::model {

namespace {

namespace json = boost::json;
using algorithm::Uint128;
using algorithm::Verdict;
using algorithm::View;

json::value ticks(std::int64_t wait) { return wait == algorithm::kNever ? json::value(nullptr) : json::value(wait); }

// One (limit, key) of a request, equal ones merged.
struct Row {
  Subject* subject = nullptr;
  std::uint64_t cost = 0;
  std::size_t index = 0;  // of its first charge
  Verdict verdict;
  View view;
  json::object own;
};

json::object answer_of(bool allowed, const Verdict& verdict, const View& view, json::object own) {
  json::object answer = std::move(own);
  answer["allowed"] = allowed;
  answer["limit"] = view.limit;
  answer["remaining"] = view.remaining;
  answer["reset_after"] = ticks(view.reset_after);
  answer["retry_after"] = ticks(verdict.retry_after);
  return answer;
}

// Is a's remaining/limit less than b's? A limit of 0 is the least of all.
bool has_less(const View& a, const View& b) {
  if (a.limit == 0 || b.limit == 0) return a.limit == 0 && b.limit != 0;
  return Uint128{a.remaining} * b.limit < Uint128{b.remaining} * a.limit;
}

// Fields of a request with several charges.
void add_joint_fields(json::object& answer, const std::vector<Row>& rows, const Row& decisive, bool allowed) {
  for (const char* name : {"mark", "lease", "delay"}) answer.erase(name);
  answer["which"] = decisive.index;
  std::int64_t delay = -1;
  json::array leases;
  for (const Row& row : rows) {
    if (row.own.contains("delay")) delay = std::max(delay, row.verdict.delay);
    if (const auto* lease = row.own.if_contains("lease"); lease != nullptr && allowed) leases.push_back(*lease);
  }
  if (delay >= 0) answer["delay"] = allowed ? json::value(delay) : json::value(nullptr);
  answer["leases"] = std::move(leases);
}

}  // namespace

json::object Engine::apply(const Operation& operation) {
  if (operation.verb == "limit") {
    limits_[operation.limit] = with_numbers({}, operation.numbers, tick_);
    return {};
  }
  if (operation.verb == "check") return check(operation.charges, operation.now, true);
  if (operation.verb == "peek") return check(operation.charges, operation.now, false);
  return verb(operation);
}

Engine::Held& Engine::held(const std::string& limit, const std::string& key) {
  auto [it, added] = held_.try_emplace({limit, key});
  if (added) it->second = {limits_.at(limit), make_subject(limits_.at(limit), tick_)};
  return it->second;
}

json::object Engine::check(std::span<const TracedCharge> charges, std::int64_t now, bool take) {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<Subject>> copies;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const TracedCharge& charge = charges[i];
    const auto [it, added] = seen.try_emplace({charge.limit, charge.key}, rows.size());
    if (added) {
      Subject* subject = held(charge.limit, charge.key).subject.get();
      if (!take) subject = copies.emplace_back(subject->clone()).get();
      rows.push_back({.subject = subject, .cost = 0, .index = i, .verdict = {}, .view = {}, .own = {}});
    }
    rows[it->second].cost += charge.cost;
  }
  bool allowed = true;
  for (Row& row : rows) {
    row.verdict = row.subject->judge(now, row.cost);
    row.subject->add_own_fields(row.own, row.verdict, row.cost);
    allowed = allowed && row.verdict.fits;
  }
  for (Row& row : rows) {
    if (allowed) {
      row.subject->take(now, row.cost);
    } else if (!row.verdict.fits) {
      row.subject->count_denied(now, row.cost);
    }
    row.view = row.subject->view(now);
  }
  const Row* decisive = nullptr;
  for (const Row& row : rows) {
    const bool better =
        allowed ? decisive == nullptr || has_less(row.view, decisive->view)
                : !row.verdict.fits && (decisive == nullptr || row.verdict.retry_after > decisive->verdict.retry_after);
    if (better) decisive = &row;
  }
  json::object answer = answer_of(allowed, decisive->verdict, decisive->view, decisive->own);
  if (charges.size() > 1) add_joint_fields(answer, rows, *decisive, allowed);
  return answer;
}

json::object Engine::verb(const Operation& operation) {
  Held& one = held(operation.limit, operation.key);
  Subject& subject = *one.subject;
  const std::int64_t now = operation.now;
  json::object own;
  if (operation.verb == "refund") {
    subject.refund(now, operation.cost, operation.at);
  } else if (operation.verb == "settle") {
    subject.settle(now, operation.reserved, operation.actual, operation.at);
  } else if (operation.verb == "penalize") {
    subject.penalize(now, operation.cost);
  } else if (operation.verb == "set_limit") {
    one.limit = with_numbers(one.limit, operation.numbers, tick_);
    subject.set_limit(one.limit, now);
  } else if (operation.verb == "reset") {
    subject.reset();
  } else if (operation.verb == "release") {
    own["released"] = subject.release(now, operation.lease);
  } else {
    throw std::invalid_argument("unknown verb: " + operation.verb);
  }
  const Verdict verdict = subject.judge(now, 0);
  subject.add_own_fields(own, verdict, 0);
  return answer_of(true, verdict, subject.view(now), std::move(own));
}

}  // namespace sluice::model
