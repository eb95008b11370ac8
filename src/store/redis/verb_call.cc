#include "store/redis/verb_call.h"

#include "store/redis/error_kinds.h"
#include "store/redis/key_state.h"
#include "store/redis/packed.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

void append_verb(std::string& out, std::string_view key_name, const RedisLimit& limit, const Verb& verb, Time caller) {
  append_bulk(out, "1");
  append_bulk(out, key_name);
  std::string text;
  append_packed<1>(text, static_cast<std::uint64_t>(verb.kind));
  append_packed<2>(text, 1);  // limit
  append_packed<2>(text, 1);  // key of it
  append_packed<7>(text, verb.amount);
  append_packed<1>(text, verb.at ? 1 : 0);
  append_packed<8>(text, static_cast<std::uint64_t>(verb.at.value_or(0)));
  append_bulk(out, text);
  text.clear();
  limit.append_argument(text, caller);
  append_bulk(out, text);
}

VerbAnswer read_verb(const redisReply& reply, const RedisLimit& limit, std::int64_t trusted_lead) {
  VerbAnswer answer{.failure = Failure::bad_answer, .decision = {}};
  if (reply.type == REDIS_REPLY_ERROR) {
    answer.failure = classify_error(text_of(reply));
    return answer;
  }
  constexpr std::size_t parts = 3;
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != parts) return answer;
  const redisReply& time = *reply.element[0];
  const redisReply& done = *reply.element[1];
  const redisReply& state = *reply.element[2];
  if (time.type != REDIS_REPLY_INTEGER || done.type != REDIS_REPLY_STRING) return answer;
  if (state.type == REDIS_REPLY_ERROR) {
    answer.failure = classify_error(text_of(state));
    return answer;
  }
  std::optional<std::string_view> value;
  if (state.type == REDIS_REPLY_STRING) {
    value = text_of(state);
  } else if (state.type != REDIS_REPLY_NIL) {
    return answer;
  }
  KeyState key;
  if (!key.read(limit, value, time.integer, trusted_lead)) return answer;
  answer.failure = Failure::none;
  answer.done = text_of(done) == "1";
  answer.decision = key.decision(key.judge(0));
  return answer;
}

}  // namespace sluice::store::redis
