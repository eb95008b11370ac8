#include "store/redis/connection.h"

#include <utility>

#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

void Connection::open() {
  reader_ = ReplyReader();
  output_.clear();
  refusal_.clear();
  ready_ = false;
  if (!endpoint_.password.empty()) {
    append_command(output_, endpoint_.user.empty() ? 2 : 3);
    append_bulk(output_, "AUTH");
    if (!endpoint_.user.empty()) append_bulk(output_, endpoint_.user);
    append_bulk(output_, endpoint_.password);
    awaited_.push_back({Kind::auth, nullptr});
  }
  if (endpoint_.database != 0) {
    append_command(output_, 2);
    append_bulk(output_, "SELECT");
    append_bulk(output_, std::to_string(endpoint_.database));
    awaited_.push_back({Kind::select, nullptr});
  }
  append_command(output_, 3);
  append_bulk(output_, "SCRIPT");
  append_bulk(output_, "LOAD");
  append_bulk(output_, script_.text);
  awaited_.push_back({Kind::load, nullptr});
}

Failure Connection::feed(std::string_view bytes) {
  reader_.feed(bytes);
  while (const Reply reply = reader_.next()) {
    if (awaited_.empty()) return Failure::bad_answer;
    const Awaited awaited = awaited_.front();
    awaited_.pop_front();
    if (const Failure failure = handle(awaited, *reply); failure != Failure::none) return failure;
  }
  return reader_.failed() ? Failure::bad_answer : Failure::none;
}

Failure Connection::handle(const Awaited& awaited, const redisReply& reply) {
  const bool is_error = reply.type == REDIS_REPLY_ERROR;
  switch (awaited.kind) {
    case Kind::call:
      if (is_error && is_noscript(text_of(reply))) {
        // Not executed, so it may be sent again, with the script's text, which loads it too. One that nobody waits for
        // any more is not: it would be charged for nothing.
        if (awaited.call->check != nullptr || awaited.call->is_probe) {
          write_call(*awaited.call, "EVAL", script_.text);
          return Failure::none;
        }
      }
      owner_.answered(*awaited.call, reply);
      return Failure::none;
    case Kind::auth:
    case Kind::select:
      return is_error ? refused(reply) : Failure::none;
    case Kind::load:
      break;
  }
  if (is_error) {
    // A user or server without SCRIPT LOAD may still run scripts: the first call then brings the text.
    const bool may_not_load = classify_error(text_of(reply)) == Failure::no_permission;
    if (!may_not_load && !text_of(reply).starts_with("ERR unknown")) return refused(reply);
  }
  ready_ = true;
  owner_.logged_in();
  return Failure::none;
}

Failure Connection::refused(const redisReply& reply) {
  const Failure failure = classify_error(text_of(reply));
  refusal_ = error_detail(failure, text_of(reply));
  return failure;
}

void Connection::close(Failure failure) {
  ready_ = false;
  output_.clear();
  // The owner may send nothing now, but let it see a consistent state.
  for (const Awaited& awaited : std::exchange(awaited_, {})) {
    if (awaited.kind == Kind::call) owner_.failed(*awaited.call, failure);
  }
}

void Connection::send(Call& call) { write_call(call, "EVALSHA", script_.sha1); }

void Connection::write_call(Call& call, std::string_view verb, std::string_view script) {
  append_command(output_, 2 + call.text.words);
  append_bulk(output_, verb);
  append_bulk(output_, script);
  output_ += call.text.text;
  awaited_.push_back({Kind::call, &call});
}

}  // namespace sluice::store::redis
