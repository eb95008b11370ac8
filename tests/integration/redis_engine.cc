#include "tests/integration/redis_engine.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "algorithm/int128.h"
#include "store/redis/check_call.h"
#include "store/redis/key.h"
#include "store/redis/resp_writer.h"

namespace sluice::testing {

namespace {

using algorithm::Int128;
using boost::json::object;
using boost::json::value;
using model::Operation;
using store::redis::RedisLimit;
using store::redis::text_of;

constexpr std::int64_t kTrustedLead = std::int64_t{1} << 53;

class PlainCheck final : public store::Check {
 public:
  void complete() override {}
};

void append_double(std::string& out, std::int64_t number) {
  const auto real = static_cast<double>(number);
  char bytes[sizeof real];
  std::memcpy(bytes, &real, sizeof real);
  out.append(bytes, sizeof bytes);
}

// A state as the script stores it.
std::string written(const RedisLimit& limit, const RedisLimit::State& state) {
  std::string argument;
  limit.append_argument(argument, Time{});
  if (limit.numbers().algorithm == Algorithm::token_bucket) {
    const auto period = static_cast<std::uint64_t>(limit.numbers().period.count() / 1'000);
    const auto p = static_cast<Int128>(period / std::gcd(limit.numbers().rate, period));
    const auto missing = static_cast<Int128>(algorithm::Uint128{state.second} << 64U | state.first);
    const Int128 level = static_cast<Int128>(limit.numbers().burst) * p - missing;
    Int128 tokens = level / p;
    Int128 part = level % p;
    if (part < 0) {
      part += p;
      --tokens;
    }
    append_double(argument, static_cast<std::int64_t>(tokens));
    append_double(argument, static_cast<std::int64_t>(part));
  } else {
    argument.resize(11);
    append_double(argument, static_cast<std::int64_t>(state.second));
    append_double(argument, static_cast<std::int64_t>(state.first));
  }
  append_double(argument, state.last);
  return argument;
}

value ticks(const Wait& wait) { return wait.is_never() ? value(nullptr) : value(wait.value().count() / 1'000); }

object figures(const Decision& decision) {
  return {{"limit", decision.limit},
          {"remaining", decision.remaining},
          {"retry_after", ticks(decision.retry_after)},
          {"reset_after", ticks(decision.reset_after)}};
}

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

RedisEngine::RedisEngine(RedisServer& server)
    : server_(server), script_(store::redis::make_check_script(kTracedClock)) {
  server_.command({"FLUSHALL"});
  server_.command({"SCRIPT", "LOAD", script_.text});
}

RedisEngine::Held& RedisEngine::held(const std::string& limit, const std::string& key) {
  Held& one = held_[{limit, key}];
  if (one.limit == nullptr) {
    one.counted.numbers = limits_.at(limit);
    one.counted.identity = "test/" + limit;
    auto compiled = RedisLimit::compile(one.counted.numbers);
    if (!compiled) throw std::invalid_argument(compiled.error().message);
    one.limit = *std::move(compiled);
  }
  return one;
}

std::string RedisEngine::redis_key(const Name& name) {
  std::string key;
  store::redis::append_redis_key(key, "sluice:", held(name.first, name.second).counted.identity, name.second);
  return key;
}

object RedisEngine::apply(const Operation& operation) {
  if (operation.verb == "limit") {
    latest_ = 0;
    limits_[operation.limit] = model::with_numbers({}, operation.numbers, algorithm::Tick::microsecond);
    return {};
  }
  if (operation.verb == "check") return check(operation.charges, operation.now);
  if (operation.verb != "peek") return verb(operation);
  // The same as a check, undone.
  std::map<std::string, std::optional<std::string>> before;
  for (const auto& charge : operation.charges) {
    const std::string key = redis_key({charge.limit, charge.key});
    const auto reply = server_.command({"GET", key});
    before[key] = reply->type == REDIS_REPLY_STRING ? std::optional(std::string(text_of(*reply))) : std::nullopt;
  }
  object answer = check(operation.charges, operation.now);
  for (const auto& [key, state] : before) {
    server_.command(state ? std::vector<std::string>{"SET", key, *state} : std::vector<std::string>{"DEL", key});
  }
  return answer;
}

object RedisEngine::check(const std::vector<model::TracedCharge>& traced, std::int64_t now) {
  latest_ = std::max(latest_, now);
  // The same key twice is one charge of the sum, in the place of the first.
  std::map<Name, std::size_t> places;
  std::vector<store::Charge> charges;
  std::vector<std::shared_ptr<const RedisLimit>> limits;
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < traced.size(); ++i) {
    const auto [place, is_new] = places.try_emplace({traced[i].limit, traced[i].key}, charges.size());
    if (!is_new) {
      charges[place->second].cost += traced[i].cost;
      continue;
    }
    const Held& one = held(traced[i].limit, traced[i].key);
    charges.push_back({.limit = &one.counted, .key = place->first.second, .cost = traced[i].cost});
    limits.push_back(one.limit);
    indices.push_back(i);
  }
  std::vector<Decision> decisions(charges.size());
  PlainCheck check;
  check.charges = charges;
  check.decisions = decisions;

  store::redis::Batch batch;
  if (!batch.add(check, limits, "sluice:", Time{.steady = 0, .utc = latest_ * 1'000}, 0)) {
    throw std::logic_error("a batch takes its first request");
  }
  batch.prepare();
  std::string command;
  store::redis::append_command(command, 2 + store::redis::words_of_call(batch) + 1);
  store::redis::append_bulk(command, "EVALSHA");
  store::redis::append_bulk(command, script_.sha1);
  store::redis::append_call(command, batch);
  store::redis::append_bulk(command, std::to_string(now));
  const auto reply = server_.raw_command(command);
  const store::Failure failure = store::redis::AnswerReader(kTrustedLead).read(*reply, batch);
  if (failure != store::Failure::none || batch.requests()[0].failure != store::Failure::none) {
    throw std::runtime_error(std::string(to_text(failure)) + ": " +
                             (reply->type == REDIS_REPLY_ERROR ? std::string(text_of(*reply)) : ""));
  }

  const std::size_t which = deciding(check.admitted, decisions);
  object answer = figures(decisions[which]);
  answer["allowed"] = check.admitted;
  if (traced.size() > 1) {
    answer["which"] = indices[which];
    answer["leases"] = boost::json::array();
  } else if (charges[0].limit->numbers.algorithm == Algorithm::fixed_window) {
    answer["mark"] = mark_of(decisions[0]);
  }
  return answer;
}

object RedisEngine::verb(const Operation& operation) {
  const Name name{operation.limit, operation.key};
  Held& one = held(operation.limit, operation.key);
  if (operation.verb == "set_limit") {
    one.counted.numbers = model::with_numbers(one.counted.numbers, operation.numbers, algorithm::Tick::microsecond);
    auto compiled = RedisLimit::compile(one.counted.numbers);
    if (!compiled) throw std::invalid_argument(compiled.error().message);
    one.limit = *std::move(compiled);
  } else if (operation.verb == "reset") {
    server_.command({"DEL", redis_key(name)});
  } else {
    change_state(name, operation);
  }
  return check({{operation.limit, operation.key, 0}}, operation.now);
}

void RedisEngine::change_state(const Name& name, const Operation& operation) {
  const RedisLimit& limit = *held(name.first, name.second).limit;
  const std::string key = redis_key(name);
  const auto reply = server_.command({"GET", key});
  std::optional<std::string_view> stored;
  if (reply->type == REDIS_REPLY_STRING) stored = text_of(*reply);
  auto state = limit.read_state(stored, operation.now, kTrustedLead);
  if (!state) throw std::runtime_error(key + " holds no state");
  const auto before = *state;
  if (operation.verb == "refund") {
    limit.compiled().refund(*state, operation.now, operation.cost, operation.at);
  } else if (operation.verb == "settle") {
    limit.compiled().settle(*state, operation.now, operation.reserved, operation.actual, operation.at);
  } else if (operation.verb == "penalize") {
    limit.compiled().penalize(*state, operation.now, operation.cost);
  } else {
    throw std::invalid_argument("unknown verb " + operation.verb);
  }
  if (*state == before) return;
  server_.command({"SET", key, written(limit, *state)});
}

}  // namespace sluice::testing
