#include "store/redis/connection.h"

#include <utility>

#include "store/redis/check_call.h"
#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"

namespace sluice::store::redis {

void Connection::open() {
  reader_ = ReplyReader();
  output_.clear();
  refusal_.clear();
  ready_ = false;
  text_on_its_way_ = false;
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
    case Kind::call_with_text:
      text_on_its_way_ = false;
      [[fallthrough]];
    case Kind::call:
      // Not executed, so it may be sent again; the script's text, which loads it, is sent once. What nobody waits for
      // any more is not sent: it would be charged for nothing.
      if (is_error && is_noscript(text_of(reply)) && awaited.batch->is_awaited()) {
        write(*awaited.batch, text_on_its_way_ ? Kind::call : Kind::call_with_text);
        return Failure::none;
      }
      owner_.answered(*awaited.batch, reply);
      return Failure::none;
    case Kind::statistics:
      --questions_;
      owner_.told_statistics(reply);
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
  questions_ = 0;
  output_.clear();
  // The owner may send nothing now, but let it see a consistent state.
  for (const Awaited& awaited : std::exchange(awaited_, {})) {
    if (awaited.batch != nullptr) owner_.failed(*awaited.batch, failure);
  }
}

void Connection::send(Batch& batch) { write(batch, Kind::call); }

void Connection::ask_statistics() {
  append_command(output_, 2);
  append_bulk(output_, "INFO");
  append_bulk(output_, "stats");
  awaited_.push_back({Kind::statistics, nullptr});
  ++questions_;
}

void Connection::write(Batch& batch, Kind kind) {
  const bool with_text = kind == Kind::call_with_text;
  text_on_its_way_ |= with_text;
  batch.prepare();
  append_command(output_, 2 + words_of_call(batch));
  append_bulk(output_, with_text ? "EVAL" : "EVALSHA");
  append_bulk(output_, with_text ? script_.text : script_.sha1);
  append_call(output_, batch);
  awaited_.push_back({kind, &batch});
}

}  // namespace sluice::store::redis
