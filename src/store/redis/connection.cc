#include "store/redis/connection.h"

#include <utility>

#include "store/redis/advice.h"
#include "store/redis/check_call.h"
#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"
#include "store/redis/server_kind.h"

namespace sluice::store::redis {

namespace {

void append_load(std::string& out, const Script& script) {
  append_command(out, 3);
  append_bulk(out, "SCRIPT");
  append_bulk(out, "LOAD");
  append_bulk(out, script.text);
}

}  // namespace

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
  if (hello_.wants_alone) {
    append_command(output_, 1);
    append_bulk(output_, "HELLO");
    await(Kind::hello);
  }
  if (hello_.wants_master) ask_role();
  if (hello_.database != 0) {
    append_command(output_, 2);
    append_bulk(output_, "SELECT");
    append_bulk(output_, std::to_string(hello_.database));
    await(Kind::select);
  }
  // A server that is asked what it is gets it only when that is known: no replica is given a script.
  if (hello_.load_script && !hello_.wants_alone && !hello_.wants_master) {
    append_load(output_, script_);
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
  return reader_.failed() ? refused_as(Failure::bad_answer, strange_answer(bytes)) : Failure::none;
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
    case Kind::hello:
    case Kind::select:
    case Kind::role:
    case Kind::load:
      break;
  }
  if (const Failure failure = handle_greeting(awaited.kind, reply); failure != Failure::none) return failure;
  if (greetings_ == 0) return Failure::none;
  if (--greetings_ > 0) return Failure::none;
  const bool was_asked = hello_.wants_alone || hello_.wants_master;
  if (was_asked && hello_.load_script && awaited.kind != Kind::load) {
    append_load(output_, script_);
    await(Kind::load);
    greetings_ = 1;
  } else {
    greeted();
  }
  return Failure::none;
}

Failure Connection::handle_greeting(Kind kind, const redisReply& reply) {
  if (kind == Kind::hello) return handle_hello(reply);
  if (reply.type != REDIS_REPLY_ERROR) return kind == Kind::role ? handle_role(reply) : Failure::none;
  const std::string_view words = text_of(reply);
  const Failure failure = classify_error(words);
  // A user or server without SCRIPT LOAD may still run scripts: the first call then brings the text.
  const bool may_do_without =
      kind == Kind::load && (failure == Failure::no_permission || words.starts_with("ERR unknown"));
  if (may_do_without) return Failure::none;
  if (kind == Kind::select && failure == Failure::server_error) {
    return refused_as(failure, advised(one_line(words), kNoDatabase));
  }
  return refused(reply);
}

// Servers that do not know it (Redis 5) are found out by the first call.
Failure Connection::handle_hello(const redisReply& reply) {
  if (reply.type == REDIS_REPLY_ERROR) return may_do_without_hello(text_of(reply)) ? Failure::none : refused(reply);
  const std::string_view objection = objection_to(reply);
  return objection.empty() ? Failure::none : refused_as(Failure::wrong_server, objection);
}

Failure Connection::handle_role(const redisReply& reply) {
  const bool tells_role =
      reply.type == REDIS_REPLY_ARRAY && reply.elements > 0 && reply.element[0]->type == REDIS_REPLY_STRING;
  if (!tells_role) return Failure::bad_answer;
  return text_of(*reply.element[0]) == "master" ? Failure::none : Failure::read_only;
}

Failure Connection::refused(const redisReply& reply) {
  const Failure failure = classify_error(text_of(reply));
  return refused_as(failure, error_detail(failure, text_of(reply)));
}

Failure Connection::refused_as(Failure failure, std::string_view why) {
  refusal_ = why;
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
