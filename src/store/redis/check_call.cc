#include "store/redis/check_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "store/admission.h"
#include "store/redis/error_kinds.h"
#include "store/redis/key.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;

void append_short(std::string& out, std::size_t number) {
  out += static_cast<char>(number & 0xffU);
  out += static_cast<char>(number >> 8U & 0xffU);
}

// A wait that begins only after `lead` ticks; no wait is none.
std::int64_t postponed(std::int64_t wait, std::int64_t lead) {
  if (wait == 0 || wait == algorithm::kNever) return wait;
  return std::min(wait + lead, algorithm::longest_wait(algorithm::Tick::microsecond));
}

void append_cost(std::string& out, std::uint64_t cost) {
  const auto value = static_cast<double>(cost);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

}  // namespace

void write_check(CallText& out, std::string_view prefix, std::span<const Charge> charges, Limits limits, Time caller) {
  std::string& text = out.text;
  text.clear();
  out.words = 1 + 2 * charges.size() + 1;
  std::string scratch;
  append_number(scratch, charges.size());
  append_bulk(text, scratch);
  for (const Charge& charge : charges) {
    scratch.clear();
    append_redis_key(scratch, prefix, charge.limit->identity, charge.key);
    append_bulk(text, scratch);
  }
  for (const auto& limit : limits) {
    scratch.clear();
    limit->append_argument(scratch, caller);
    append_bulk(text, scratch);
  }
  scratch.clear();
  append_short(scratch, charges.size());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    append_short(scratch, i + 1);
    scratch += static_cast<char>(charges[i].enforcement);
    append_cost(scratch, charges[i].cost);
  }
  append_bulk(text, scratch);
}

Failure read_check(const redisReply& reply, Limits limits, Check& check, std::int64_t trusted_lead) {
  if (reply.type == REDIS_REPLY_ERROR) return classify_error(text_of(reply));
  const std::size_t count = check.charges.size();
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != count + 2) return Failure::bad_answer;
  const redisReply& time = *reply.element[0];
  const redisReply& verdict = *reply.element[1];
  if (time.type != REDIS_REPLY_INTEGER || time.integer < 0 || time.integer >= kExact) return Failure::bad_answer;
  if (verdict.type != REDIS_REPLY_STRING || (text_of(verdict) != "1" && text_of(verdict) != "0")) {
    return Failure::bad_answer;
  }
  const std::int64_t now = time.integer;
  const bool admitted = text_of(verdict) == "1";

  // Two passes over the states, as the script does: all are judged before any is taken.
  constexpr std::size_t few = 8;
  std::array<RedisLimit::State, few> few_states;
  std::vector<RedisLimit::State> many_states(count > few ? count : 0);
  const std::span<RedisLimit::State> states(count > few ? many_states.data() : few_states.data(), count);
  Admission admission;
  std::array<algorithm::Verdict, few> few_verdicts;
  std::vector<algorithm::Verdict> many_verdicts(count > few ? count : 0);
  const std::span<algorithm::Verdict> verdicts(count > few ? many_verdicts.data() : few_verdicts.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const redisReply& element = *reply.element[i + 2];
    std::optional<std::string_view> value;
    if (element.type == REDIS_REPLY_STRING) {
      value = text_of(element);
    } else if (element.type != REDIS_REPLY_NIL) {
      return Failure::bad_answer;
    }
    const auto state = limits[i]->read_state(value, now, trusted_lead);
    if (!state) return Failure::bad_answer;
    states[i] = *state;
    verdicts[i] = limits[i]->compiled().judge(*state, now, check.charges[i].cost);
    admission.add(check.charges[i].enforcement, verdicts[i].fits);
  }
  if (admission.admitted() != admitted) return Failure::bad_answer;
  for (std::size_t i = 0; i < count; ++i) {
    const algorithm::CompiledLimit& limit = limits[i]->compiled();
    const std::uint64_t cost = check.charges[i].cost;
    if (admitted && verdicts[i].fits) {
      limit.take(states[i], now, cost);
    } else if (!verdicts[i].fits) {
      limit.count_denied(states[i], now, cost);
    }
    algorithm::View view = limit.view(states[i], now);
    // Both count from the state's own time, which only comes when the server's clock has made up its lead.
    const std::int64_t lead = states[i].last - std::min(states[i].last, now);
    const std::int64_t distrusted = std::max<std::int64_t>(0, lead - trusted_lead);
    verdicts[i].retry_after = postponed(verdicts[i].retry_after, distrusted);
    view.reset_after = postponed(view.reset_after, distrusted);
    Decision& decision = check.decisions[i];
    decision = limit.decision(verdicts[i], view);
    decision.source = Source::redis;
    decision.which = static_cast<std::uint32_t>(i);
  }
  check.admitted = admitted;
  return Failure::none;
}

}  // namespace sluice::store::redis
