#include "store/redis/check_call.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "store/admission.h"
#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;
constexpr std::size_t kBytesOfRequest = 2;
constexpr std::size_t kBytesOfCharge = 11;

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

std::size_t words_of_call(const Batch& batch) { return 1 + 2 * batch.sent_keys() + 1; }

void append_call(std::string& out, const Batch& batch) {
  std::string scratch;
  append_number(scratch, batch.sent_keys());
  append_bulk(out, scratch);
  for (const Batch::Key& key : batch.keys()) {
    if (key.place != 0) append_bulk(out, batch.name(key));
  }
  for (const Batch::Key& key : batch.keys()) {
    if (key.place == 0) continue;
    scratch.clear();
    key.limit->append_argument(scratch, key.caller);
    append_bulk(out, scratch);
  }
  std::size_t size = 0;
  for (const Batch::Request& request : batch.requests()) {
    if (request.is_sent) size += kBytesOfRequest + kBytesOfCharge * request.charge_count;
  }
  append_bulk_head(out, size);
  for (const Batch::Request& request : batch.requests()) {
    if (!request.is_sent) continue;
    append_short(out, request.charge_count);
    for (const Batch::Charge& charge : batch.charges(request)) {
      append_short(out, batch.keys()[charge.key].place);
      out += static_cast<char>(charge.enforcement);
      append_cost(out, charge.cost);
    }
  }
  out += "\r\n";
}

Failure AnswerReader::read(const redisReply& reply, Batch& batch, const BadKey& bad_key) {
  if (reply.type == REDIS_REPLY_ERROR) return classify_error(text_of(reply));
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != batch.sent_keys() + 2) return Failure::bad_answer;
  const redisReply& time = *reply.element[0];
  const redisReply& verdicts = *reply.element[1];
  if (time.type != REDIS_REPLY_INTEGER || time.integer < 0 || time.integer >= kExact) return Failure::bad_answer;
  if (verdicts.type != REDIS_REPLY_STRING || verdicts.len != batch.sent_requests()) return Failure::bad_answer;
  now_ = time.integer;
  if (const Failure failure = read_states(reply, batch, bad_key); failure != Failure::none) return failure;
  std::size_t next = 0;
  for (Batch::Request& request : batch.requests()) {
    if (request.is_sent && !judge(batch, request, text_of(verdicts)[next++])) return Failure::bad_answer;
  }
  return Failure::none;
}

Failure AnswerReader::read_states(const redisReply& reply, const Batch& batch, const BadKey& bad_key) {
  held_.resize(batch.keys().size());
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const Batch::Key& key = batch.keys()[i];
    if (key.place == 0) continue;
    const redisReply& element = *reply.element[key.place + 1U];
    held_[i].failure = Failure::none;
    std::optional<std::string_view> value;
    if (element.type == REDIS_REPLY_ERROR) {
      held_[i].failure = classify_error(text_of(element));
      if (bad_key) bad_key(held_[i].failure, text_of(element));
      continue;
    }
    if (element.type == REDIS_REPLY_STRING) {
      value = text_of(element);
    } else if (element.type != REDIS_REPLY_NIL) {
      return Failure::bad_answer;
    }
    const auto state = key.limit->read_state(value, now_, trusted_lead_);
    if (!state) return Failure::bad_answer;
    held_[i].state = *state;
  }
  return Failure::none;
}

// As the script does: all charges are judged before any is taken. False when the script said something else.
bool AnswerReader::judge(Batch& batch, Batch::Request& request, char verdict) {
  const std::span<const Batch::Charge> charges = batch.charges(request);
  request.failure = Failure::none;
  verdicts_.resize(charges.size());
  Admission admission;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Held& held = held_[charges[i].key];
    if (held.failure != Failure::none) {
      request.failure = held.failure;
      return verdict == 'x';
    }
    verdicts_[i] = batch.keys()[charges[i].key].limit->compiled().judge(held.state, now_, charges[i].cost);
    admission.add(charges[i].enforcement, verdicts_[i].fits);
  }
  if (verdict != (admission.admitted() ? '1' : '0')) return false;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const algorithm::CompiledLimit& limit = batch.keys()[charges[i].key].limit->compiled();
    RedisLimit::State& state = held_[charges[i].key].state;
    if (admission.admitted() && verdicts_[i].fits) {
      limit.take(state, now_, charges[i].cost);
    } else if (!verdicts_[i].fits) {
      limit.count_denied(state, now_, charges[i].cost);
    }
  }
  if (request.check == nullptr) return true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Decision& decision = request.check->decisions[i];
    write_decision(charges[i], *batch.keys()[charges[i].key].limit, verdicts_[i], decision);
    decision.which = static_cast<std::uint32_t>(i);
  }
  request.check->admitted = admission.admitted();
  return true;
}

void AnswerReader::write_decision(const Batch::Charge& charge, const RedisLimit& limit, algorithm::Verdict verdict,
                                  Decision& decision) const {
  const RedisLimit::State& state = held_[charge.key].state;
  algorithm::View view = limit.compiled().view(state, now_);
  // Both count from the state's own time, which only comes when the server's clock has made up its lead.
  const std::int64_t lead = state.last - std::min(state.last, now_);
  const std::int64_t distrusted = std::max<std::int64_t>(0, lead - trusted_lead_);
  verdict.retry_after = postponed(verdict.retry_after, distrusted);
  view.reset_after = postponed(view.reset_after, distrusted);
  decision = limit.compiled().decision(verdict, view);
  decision.source = Source::redis;
}

}  // namespace sluice::store::redis
