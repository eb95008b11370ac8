#include "cli/redis_connection.h"

#include <algorithm>
#include <utility>

#include "store/redis/resp_writer.h"

namespace sluice::cli {

using store::redis::Reply;

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
  if (options.database != 0) {
    bytes += command_bytes({"SELECT", std::to_string(options.database)});
    ++count;
  }
  if (count == 0) return std::nullopt;
  const auto replies = ask_raw(bytes, count);
  if (!replies) return replies.error();
  for (const Reply& reply : *replies) {
    if (reply->type == REDIS_REPLY_ERROR) return server_error(*this, *reply);
  }
  return std::nullopt;
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
  return Error{"Redis " + server_ + ": " +
               std::string(!why.empty() ? why : (is_open_ ? "the connection was closed" : "cannot be reached"))};
}

void RedisConnection::wire_read(std::string_view bytes) {
  reader_.feed(bytes);
  while (Reply reply = reader_.next()) replies_.push_back(std::move(reply));
  if (!reader_.failed()) return;
  wire_->close();
  failed_ = "an answer that is not of the protocol";
}

void RedisConnection::wire_failed(std::string_view why) { failed_ = std::string(why); }

std::string command_bytes(const std::vector<std::string>& words) {
  std::string bytes;
  store::redis::append_command(bytes, words.size());
  for (const std::string& word : words) store::redis::append_bulk(bytes, word);
  return bytes;
}

Error server_error(const RedisConnection& connection, const redisReply& reply) {
  return Error{"Redis " + connection.server() + ": " + std::string(store::redis::text_of(reply))};
}

}  // namespace sluice::cli
