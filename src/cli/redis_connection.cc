#include "cli/redis_connection.h"

#include <algorithm>
#include <utility>

#include "store/redis/advice.h"
#include "store/redis/error_kinds.h"
#include "store/redis/resp_writer.h"
#include "store/redis/server_kind.h"

namespace sluice::cli {

using store::redis::Reply;
using store::redis::text_of;

Result<std::unique_ptr<RedisConnection>> RedisConnection::open(const store::redis::Address& address,
                                                               const Options& options) {
  std::unique_ptr<RedisConnection> connection(new RedisConnection(address, options));
  if (auto error = connection->run_until([&] { return connection->is_open_; })) return *std::move(error);
  if (auto error = connection->greet(options)) return *std::move(error);
  return connection;
}

RedisConnection::RedisConnection(const store::redis::Address& address, const Options& options)
    : server_(address.to_text()),
      patience_(options.patience),
      wire_(std::make_shared<store::redis::Wire>(io_, owner())) {
  // A Unix socket is always in the clear.
  wire_->open(address, address.host.empty() ? nullptr : options.tls);
}

RedisConnection::~RedisConnection() {
  if (!failed_) wire_->close();
}

std::optional<Error> RedisConnection::greet(const Options& options) {
  std::string bytes;
  std::size_t count = 0;
  if (!options.password.empty()) {
    store::redis::append_auth(bytes, options.user, options.password);
    ++count;
  }
  const std::size_t hello = count;
  if (options.wants_alone) {
    bytes += command_bytes({"HELLO"});
    ++count;
  }
  const std::size_t select = count;
  if (options.database != 0) {
    bytes += command_bytes({"SELECT", std::to_string(options.database)});
    ++count;
  }
  if (count == 0) return std::nullopt;
  const auto replies = ask_raw(bytes, count);
  if (!replies) return replies.error();
  for (std::size_t i = 0; i < replies->size(); ++i) {
    const redisReply& reply = *(*replies)[i];
    if (i == hello && options.wants_alone) {
      if (auto error = judge_hello(reply)) return error;
    } else if (reply.type == REDIS_REPLY_ERROR) {
      Error error = server_error(*this, reply);
      const bool is_unknown =
          i == select && store::redis::classify_error(text_of(reply)) == store::Failure::server_error;
      if (is_unknown) error.message = store::redis::advised(error.message, store::redis::kNoDatabase);
      return error;
    }
  }
  return std::nullopt;
}

std::optional<Error> RedisConnection::judge_hello(const redisReply& reply) const {
  if (reply.type == REDIS_REPLY_ERROR) {
    if (store::redis::may_do_without_hello(text_of(reply))) return std::nullopt;
    return server_error(*this, reply);
  }
  const std::string_view objection = store::redis::objection_to(reply);
  if (objection.empty()) return std::nullopt;
  return Error{"Redis " + server_ + ": " + std::string(objection)};
}

Result<Reply> RedisConnection::ask(const std::vector<std::string>& words) {
  auto replies = ask_raw(command_bytes(words), 1);
  if (!replies) return replies.error();
  return std::move(replies->front());
}

Result<std::vector<Reply>> RedisConnection::ask_raw(std::string_view bytes, std::size_t count) {
  if (failed_) return broken(*failed_);
  std::string outgoing(bytes);
  is_writing_ = true;
  wire_->write(outgoing);
  if (auto error = run_until([&] { return !is_writing_ && replies_.size() >= count; })) return *std::move(error);
  std::vector<Reply> replies;
  replies.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    replies.push_back(std::move(replies_.front()));
    replies_.pop_front();
  }
  return replies;
}

template <typename Done>
std::optional<Error> RedisConnection::run_until(Done done) {
  const auto end = std::chrono::steady_clock::now() + patience_;
  while (!failed_ && !done()) {
    io_.restart();
    if (io_.run_one_until(end) > 0) continue;
    wire_->close();
    failed_ = "no answer within " + std::to_string(patience_.count() / 1'000) + " s";
  }
  if (failed_ && !done()) return broken(*failed_);
  return std::nullopt;
}

Error RedisConnection::broken(std::string_view why) {
  std::string_view words = why;
  if (words.empty()) words = is_open_ ? "the connection was closed" : "cannot be reached";
  if (why.empty() && is_open_ && !has_heard_) words = store::redis::kClosedUnheard;
  return Error{"Redis " + server_ + ": " + std::string(words)};
}

void RedisConnection::wire_read(std::string_view bytes) {
  has_heard_ = true;
  reader_.feed(bytes);
  while (Reply reply = reader_.next()) replies_.push_back(std::move(reply));
  if (!reader_.failed()) return;
  wire_->close();
  failed_ = std::string(store::redis::strange_answer(bytes));
}

void RedisConnection::wire_failed(std::string_view why) { failed_ = std::string(why); }

std::string command_bytes(const std::vector<std::string>& words) {
  std::string bytes;
  store::redis::append_command(bytes, words.size());
  for (const std::string& word : words) store::redis::append_bulk(bytes, word);
  return bytes;
}

Error server_error(const RedisConnection& connection, const redisReply& reply) {
  const std::string_view words = text_of(reply);
  const std::string detail = store::redis::error_detail(store::redis::classify_error(words), words);
  // Where the kind would tell all, there is no kind here.
  const bool is_told = detail.starts_with(words.substr(0, words.find(' ')));
  return Error{"Redis " + connection.server() + ": " +
               (is_told ? detail : store::redis::advised(store::redis::one_line(words), detail))};
}

}  // namespace sluice::cli
