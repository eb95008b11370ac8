#include "store/redis/check_call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/admission.h"
#include "store/redis/error_kinds.h"
#include "store/redis/packed.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;
// Beside the enforcement: the last charge of its request.
constexpr unsigned kLast = 4;
// In the place of a cost that needs more than a byte.
constexpr unsigned kLongCost = 255;
// A verb of the script: a short form of check.
constexpr unsigned kEachOnce = 7;
// The same of one key.
constexpr unsigned kOneBucket = 8;

// The cost of each request, when each is one enforced charge of that cost on a token bucket, all of one limit, and of a
// key that no other request of the call has; else 0.
std::uint64_t cost_of_each(const Batch& batch) {
  if (batch.sent_limits() != 1 || batch.sent_requests() != batch.sent_keys()) return 0;
  if (batch.keys()[batch.places().front()].limit->numbers().algorithm != Algorithm::token_bucket) return 0;
  std::uint64_t cost = 0;
  std::uint32_t place = 0;
  for (const Batch::Request& request : batch.requests()) {
    if (!request.is_sent) continue;
    if (request.verb || request.charge_count != 1) return 0;
    const Batch::Charge& charge = batch.charges(request).front();
    if (place == 0) cost = charge.cost;
    const bool is_next = batch.keys()[charge.key].place == ++place;
    if (!is_next || charge.cost != cost || charge.enforcement != Enforcement::enforce) return 0;
  }
  return cost < kLongCost ? cost : 0;
}

void append_request(std::string& out, const Batch& batch, const Batch::Request& request) {
  const auto charges = batch.charges(request);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Batch::Charge& charge = charges[i];
    append_packed<2>(out, batch.keys()[charge.key].place);
    append_packed<1>(out, static_cast<unsigned>(charge.enforcement) + (i + 1 == charges.size() ? kLast : 0));
    append_packed<1>(out, std::min<std::uint64_t>(charge.cost, kLongCost));
    if (charge.cost >= kLongCost) append_packed<7>(out, charge.cost);
  }
}

void append_verb(std::string& out, const Verb& verb) {
  append_packed<7>(out, verb.amount);
  append_packed<1>(out, verb.at ? 1 : 0);
  std::int64_t at = verb.at.value_or(0);  // of release the cost, else a time, which goes as µs
  if (verb.kind != Verb::Kind::release) at = at / 1'000 - (at % 1'000 < 0 ? 1 : 0);
  append_packed<8>(out, static_cast<std::uint64_t>(at));
}

}  // namespace

std::size_t words_of_call(const Batch& batch) {
  const bool is_short = batch.sent_keys() == 1 && cost_of_each(batch) > 0;
  return 1 + batch.sent_keys() + 1 + (is_short ? 0 : batch.sent_limits());
}

void append_call(std::string& out, const Batch& batch, CallKind kind) {
  std::string scratch;
  append_number(scratch, batch.sent_keys());
  append_bulk(out, scratch);
  for (const std::uint32_t index : batch.places()) append_bulk(out, batch.name(batch.keys()[index]));
  scratch.clear();
  const std::optional<Verb> verb = batch.requests().empty() ? std::nullopt : batch.requests().front().verb;
  const std::uint64_t each = kind == CallKind::check ? cost_of_each(batch) : 0;
  if (each > 0 && batch.sent_keys() == 1) {
    const Batch::Key& key = batch.keys()[batch.places().front()];
    scratch += static_cast<char>(kOneBucket);
    append_packed<1>(scratch, each);
    key.limit->append_argument(scratch, key.caller);
    append_bulk(out, scratch);
    return;
  }
  if (each > 0) {
    scratch += static_cast<char>(kEachOnce);
  } else {
    scratch += verb ? static_cast<char>(verb->kind) : static_cast<char>(kind);
  }
  append_packed<2>(scratch, batch.sent_limits());
  std::uint64_t in_a_row = 0;
  for (const std::uint32_t index : batch.places()) {
    if (batch.keys()[index].begins_limit && in_a_row > 0) append_packed<2>(scratch, std::exchange(in_a_row, 0));
    ++in_a_row;
  }
  append_packed<2>(scratch, in_a_row);
  if (each > 0) append_packed<1>(scratch, each);
  for (const Batch::Request& request : batch.requests()) {
    if (!request.is_sent || each > 0) continue;
    if (request.verb && request.verb->kind != Verb::Kind::peek) {
      append_verb(scratch, *request.verb);
    } else {
      append_request(scratch, batch, request);
    }
  }
  append_bulk(out, scratch);
  for (const std::uint32_t index : batch.places()) {
    const Batch::Key& key = batch.keys()[index];
    if (!key.begins_limit) continue;
    scratch.clear();
    key.limit->append_argument(scratch, key.caller);
    append_bulk(out, scratch);
  }
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
    held_[i].is_charged = false;
    std::optional<std::string_view> value;
    if (element.type == REDIS_REPLY_ERROR) {
      held_[i].failure = classify_error(text_of(element));
      if (bad_key) {
        bad_key(held_[i].failure, std::string(text_of(element)).append(" (key ").append(batch.name(key)).append(")"));
      }
      continue;
    }
    if (element.type == REDIS_REPLY_STRING) {
      value = text_of(element);
    } else if (element.type != REDIS_REPLY_NIL) {
      return Failure::bad_answer;
    }
    if (!held_[i].state.read(*key.limit, value, now_, trusted_lead_)) return Failure::bad_answer;
    if (!held_[i].state.is_sound()) {
      blame(held_[i]);
      if (bad_key)
        bad_key(held_[i].failure, std::string("figures that do not fit (key ").append(batch.name(key)) + ")");
    }
  }
  return Failure::none;
}

/// The script took figures of a key for its state that cannot be: that key's requests fail, and no others.
void AnswerReader::blame(Held& held) {
  held.failure = Failure::foreign_value;
  held.is_charged = true;
}

/// What the script's verdict on a request that fails did to its other keys. False when it cannot have said that.
bool AnswerReader::follow(std::span<const Batch::Charge> charges, char verdict) {
  if (verdict != '0' && verdict != '1') return false;
  for (const Batch::Charge& charge : charges) {
    Held& held = held_[charge.key];
    if (held.is_charged) continue;
    if (held.failure != Failure::none) return false;
    if (!held.state.judge(charge.cost).fits) {
      held.state.miss(charge.cost);
    } else if (verdict == '1') {
      held.state.take(charge.cost);
    }
  }
  return true;
}

// As the script does: all charges are judged before any is taken. False when the script said something else.
bool AnswerReader::judge(Batch& batch, Batch::Request& request, char verdict) {
  const std::span<const Batch::Charge> charges = batch.charges(request);
  request.failure = Failure::none;
  for (const Batch::Charge& charge : charges) {
    if (held_[charge.key].failure == Failure::none) continue;
    request.failure = held_[charge.key].failure;
    return verdict == 'x' || follow(charges, verdict);
  }
  if (request.verb && request.verb->kind != Verb::Kind::peek) return read_verb(batch, request, *request.verb, verdict);
  verdicts_.resize(charges.size());
  Admission admission;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    KeyState& state = held_[charges[i].key].state;
    verdicts_[i] = state.judge(charges[i].cost);
    if (!state.is_sound()) {
      blame(held_[charges[i].key]);
      request.failure = Failure::foreign_value;
      return follow(charges, verdict);
    }
    admission.add(charges[i].enforcement, verdicts_[i].fits);
  }
  if (verdict != (admission.admitted() ? '1' : '0')) return false;
  if (request.check != nullptr && !request.check->untaken.empty()) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      algorithm::Verdict untaken = verdicts_[i];
      if (untaken.fits) untaken.forget_turn();
      request.check->untaken[i] = held_[charges[i].key].state.decision(untaken);
    }
  }
  for (std::size_t i = 0; i < charges.size(); ++i) {
    KeyState& state = held_[charges[i].key].state;
    if (!verdicts_[i].fits) {
      state.miss(charges[i].cost);
    } else if (admission.admitted()) {
      state.take(charges[i].cost);
    } else {
      verdicts_[i].forget_turn();
    }
  }
  if (request.check == nullptr) return true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    Decision& decision = request.check->decisions[i];
    decision = held_[charges[i].key].state.decision(verdicts_[i]);
    decision.which = static_cast<std::uint32_t>(i);
    if (i < request.check->leases.size()) {
      const bool taken = !request.verb && admission.admitted() && verdicts_[i].fits && charges[i].cost > 0;
      request.check->leases[i] = taken ? held_[charges[i].key].state.lease() : 0;
    }
  }
  request.check->admitted = admission.admitted();
  return true;
}

// The script answers the state after a verb, so the figures are those of a check of cost 0.
bool AnswerReader::read_verb(const Batch& batch, const Batch::Request& request, const Verb& verb, char verdict) {
  const bool is_done = verdict == '1';
  if (!is_done && (verdict != '0' || verb.kind != Verb::Kind::release)) return false;
  if (request.check == nullptr) return true;
  KeyState& state = held_[batch.charges(request).front().key].state;
  request.check->decisions[0] = state.decision(state.judge(0));
  request.check->admitted = is_done;
  return true;
}

}  // namespace sluice::store::redis
