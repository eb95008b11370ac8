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
  calls_ = 0;
  if (!hello_.password.empty()) {
    append_auth(output_, hello_.user, hello_.password);
    await(Kind::auth);
  }
  if (hello_.wants_master) ask_role();
  if (hello_.database != 0) {
    append_command(output_, 2);
    append_bulk(output_, "SELECT");
    append_bulk(output_, std::to_string(hello_.database));
    await(Kind::select);
  }
  if (hello_.load_script) {
    append_command(output_, 3);
    append_bulk(output_, "SCRIPT");
    append_bulk(output_, "LOAD");
    append_bulk(output_, script_.text);
    await(Kind::load);
  }
  greetings_ = awaited_.size();
  if (greetings_ == 0) greeted();
}

void Connection::greeted() {
  ready_ = true;
  owner_.logged_in();
}

void Connection::ask_role() {
  append_command(output_, 1);
  append_bulk(output_, "ROLE");
  await(Kind::role);
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
        --calls_;
        write(*awaited.batch, text_on_its_way_ ? Kind::call : Kind::call_with_text, awaited.asking);
        return Failure::none;
      }
      --calls_;
      owner_.answered(*awaited.batch, reply);
      return Failure::none;
    case Kind::asking:
      // If it is an error, the call after it is answered by MOVED.
      return Failure::none;
    case Kind::wait:
      // An error: nothing is known of the replicas.
      owner_.replicated(reply.type == REDIS_REPLY_INTEGER ? static_cast<std::uint64_t>(reply.integer) : 0);
      return Failure::none;
    case Kind::statistics:
      owner_.told_statistics(reply);
      return Failure::none;
    case Kind::auth:
    case Kind::select:
    case Kind::role:
    case Kind::load:
      break;
  }
  if (const Failure failure = handle_greeting(awaited.kind, reply); failure != Failure::none) return failure;
  if (greetings_ == 0) return Failure::none;
  --greetings_;
  if (greetings_ == 0) greeted();
  return Failure::none;
}

Failure Connection::handle_greeting(Kind kind, const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) {
    if (kind != Kind::role) return Failure::none;
    const bool tells_role =
        reply.type == REDIS_REPLY_ARRAY && reply.elements > 0 && reply.element[0]->type == REDIS_REPLY_STRING;
    if (!tells_role) return Failure::bad_answer;
    return text_of(*reply.element[0]) == "master" ? Failure::none : Failure::read_only;
  }
  // A user or server without SCRIPT LOAD may still run scripts: the first call then brings the text.
  const bool may_do_without = kind == Kind::load && (classify_error(text_of(reply)) == Failure::no_permission ||
                                                     text_of(reply).starts_with("ERR unknown"));
  return may_do_without ? Failure::none : refused(reply);
}

Failure Connection::refused(const redisReply& reply) {
  const Failure failure = classify_error(text_of(reply));
  refusal_ = error_detail(failure, text_of(reply));
  return failure;
}

void Connection::close(Failure failure) {
  ready_ = false;
  output_.clear();
  calls_ = 0;
  // The owner may send nothing now, but let it see a consistent state.
  for (const Awaited& awaited : std::exchange(awaited_, {})) {
    if (awaited.batch != nullptr) owner_.failed(*awaited.batch, failure);
  }
}

void Connection::send(Batch& batch, bool asking) { write(batch, Kind::call, asking); }

void Connection::wait_for_replicas(unsigned replicas, std::chrono::milliseconds patience) {
  append_command(output_, 3);
  append_bulk(output_, "WAIT");
  append_bulk(output_, std::to_string(replicas));
  append_bulk(output_, std::to_string(patience.count()));
  await(Kind::wait);
}

void Connection::ask_statistics() {
  append_command(output_, 2);
  append_bulk(output_, "INFO");
  append_bulk(output_, "stats");
  await(Kind::statistics);
}

void Connection::write(Batch& batch, Kind kind, bool asking) {
  const bool with_text = kind == Kind::call_with_text;
  text_on_its_way_ |= with_text;
  batch.prepare();
  if (asking) {
    append_command(output_, 1);
    append_bulk(output_, "ASKING");
    await(Kind::asking);
  }
  append_command(output_, 2 + words_of_call(batch));
  append_bulk(output_, with_text ? "EVAL" : "EVALSHA");
  append_bulk(output_, with_text ? script_.text : script_.sha1);
  append_call(output_, batch);
  await(kind, &batch, asking);
  ++calls_;
}

}  // namespace sluice::store::redis
