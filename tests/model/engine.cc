#include "tests/model/engine.h"

#include <algorithm>
#include <stdexcept>

#include "algorithm/int128.h"

namespace sluice::model {

namespace {

namespace json = boost::json;
using algorithm::Uint128;
using algorithm::Verdict;
using algorithm::View;

// One (limit, key) of a request, equal ones merged.
struct Row {
  Subject* subject = nullptr;
  Algorithm algorithm = Algorithm::token_bucket;
  std::uint64_t cost = 0;
  std::size_t index = 0;  // of its first charge
  Verdict verdict;
  std::optional<std::uint64_t> lease;
  View view;
};

Answer answer_of(bool allowed, const Row& row) {
  Answer answer;
  answer.allowed = allowed;
  answer.retry_after = row.verdict.retry_after;
  answer.limit = row.view.limit;
  answer.remaining = row.view.remaining;
  answer.reset_after = row.view.reset_after;
  return answer;
}

void add_own_fields(Answer& answer, const Row& row) {
  answer.own = row.algorithm;
  answer.mark = row.verdict.mark;
  answer.lease = row.lease;
  if (row.algorithm == Algorithm::leaky_bucket && row.verdict.fits) answer.delay = row.verdict.delay;
}

void add_joint_fields(Answer& answer, const std::vector<Row>& rows, const Row& decisive) {
  answer.which = decisive.index;
  for (const Row& row : rows) {
    if (row.algorithm == Algorithm::leaky_bucket) {
      answer.has_delay = true;
      if (answer.allowed) answer.delay = std::max(answer.delay.value_or(0), row.verdict.delay);
    } else if (row.algorithm == Algorithm::concurrency && answer.allowed) {
      answer.leases.push_back(row.lease);
    }
  }
}

// Is a's remaining/limit less than b's? A limit of 0 is the least of all.
bool has_less(const View& a, const View& b) {
  if (a.limit == 0 || b.limit == 0) return a.limit == 0 && b.limit != 0;
  return Uint128{a.remaining} * b.limit < Uint128{b.remaining} * a.limit;
}

json::value ticks(std::int64_t wait) { return wait == algorithm::kNever ? json::value(nullptr) : json::value(wait); }

template <typename T>
json::value or_null(const std::optional<T>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

}  // namespace

json::object to_json(const Answer& answer) {
  json::object object;
  object["allowed"] = answer.allowed;
  object["limit"] = answer.limit;
  object["remaining"] = answer.remaining;
  object["reset_after"] = ticks(answer.reset_after);
  object["retry_after"] = ticks(answer.retry_after);
  if (answer.released) object["released"] = *answer.released;
  if (answer.own == Algorithm::fixed_window) {
    object["mark"] = answer.mark == Mark::none        ? json::value(nullptr)
                     : answer.mark == Mark::quota_hit ? json::value("quota_hit")
                                                      : json::value("over_quota");
  }
  if (answer.own == Algorithm::leaky_bucket || answer.has_delay) object["delay"] = or_null(answer.delay);
  if (answer.own == Algorithm::concurrency) object["lease"] = or_null(answer.lease);
  if (answer.which) {
    object["which"] = *answer.which;
    json::array leases;
    for (const auto& lease : answer.leases) leases.push_back(or_null(lease));
    object["leases"] = std::move(leases);
  }
  return object;
}

Answer Engine::apply(const Operation& operation) {
  if (operation.verb == "check") return check(operation.charges, operation.now, true);
  if (operation.verb == "peek") return check(operation.charges, operation.now, false);
  if (operation.verb != "limit") return verb(operation);
  define(operation.limit, with_numbers({}, operation.numbers, tick_));
  return {};
}

Engine::Held& Engine::held(const std::string& limit, const std::string& key) {
  auto [it, added] = held_.try_emplace({limit, key});
  if (added) it->second = {limits_.at(limit), make_(limits_.at(limit), tick_)};
  return it->second;
}

Answer Engine::check(std::span<const TracedCharge> charges, std::int64_t now, bool take) {
  std::vector<Row> rows;
  std::vector<std::unique_ptr<Subject>> copies;
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const TracedCharge& charge = charges[i];
    const auto [it, added] = seen.try_emplace({charge.limit, charge.key}, rows.size());
    if (added) {
      const Held& one = held(charge.limit, charge.key);
      Subject* subject = take ? one.subject.get() : copies.emplace_back(one.subject->clone()).get();
      rows.push_back({.subject = subject, .algorithm = one.limit.algorithm, .index = i, .verdict{}, .lease{}, .view{}});
    }
    rows[it->second].cost += charge.cost;
  }
  bool allowed = true;
  for (Row& row : rows) {
    row.verdict = row.subject->judge(now, row.cost);
    allowed = allowed && row.verdict.fits;
    if (row.algorithm == Algorithm::concurrency && row.verdict.fits && row.cost > 0) {
      row.lease = row.subject->next_lease();
    }
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
  Answer answer = answer_of(allowed, *decisive);
  if (charges.size() > 1) {
    add_joint_fields(answer, rows, *decisive);
  } else {
    add_own_fields(answer, *decisive);
  }
  return answer;
}

Answer Engine::verb(const Operation& operation) {
  Held& one = held(operation.limit, operation.key);
  Subject& subject = *one.subject;
  const std::int64_t now = operation.now;
  std::optional<bool> released;
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
    released = subject.release(now, operation.lease);
  } else {
    throw std::invalid_argument("unknown verb: " + operation.verb);
  }
  const Row row{.subject = &subject,
                .algorithm = one.limit.algorithm,
                .verdict = subject.judge(now, 0),
                .lease{},
                .view = subject.view(now)};
  Answer answer = answer_of(true, row);
  add_own_fields(answer, row);
  answer.released = released;
  return answer;
}

}  // namespace sluice::model
