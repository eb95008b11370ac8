#include "cli/redis_connection.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <fstream>
#include <utility>

#include "store/redis/resp_writer.h"
#include "store/redis/url.h"

namespace sluice::cli {

using store::redis::Reply;

void RedisConnection::Close::operator()(redisContext* context) const { redisFree(context); }

Result<RedisConnection> RedisConnection::open(const config::Settings& settings, std::chrono::milliseconds patience) {
  const auto target = store::redis::parse_url(settings.redis_url, settings.redis_master);
  if (!target) return target.error();
  const std::string user = settings.redis_username.empty() ? target->user : settings.redis_username;
  std::string password = settings.redis_password.empty() ? target->password : settings.redis_password;
  if (!settings.redis_password_file.empty()) {
    std::ifstream file(settings.redis_password_file);
    if (!std::getline(file, password)) return Error{settings.redis_password_file + ": cannot read the password"};
  }
  if (target->topology != store::redis::Topology::standalone || target->tls) {
    return Error{"sluice keys works on one Redis server without TLS: name that which holds the keys"};
  }
  const store::redis::Address& address = target->nodes.front();
  const timeval limit{.tv_sec = patience.count() / 1'000, .tv_usec = patience.count() % 1'000 * 1'000};
  RedisConnection connection(address.host.empty() ? redisConnectUnixWithTimeout(address.path.c_str(), limit)
                                                  : redisConnectWithTimeout(address.host.c_str(), address.port, limit),
                             address.to_text());
  if (connection.context_ == nullptr) return Error{"Redis " + connection.server_ + ": no memory for a connection"};
  if (connection.context_->err != 0) return Error{"Redis " + connection.server_ + ": " + connection.context_->errstr};
  redisSetTimeout(connection.context_.get(), limit);
  if (!password.empty()) {
    std::vector<std::string> login{"AUTH"};
    if (!user.empty()) login.push_back(user);
    login.push_back(password);
    if (const auto answer = connection.command(login); !answer) return answer.error();
  }
  if (target->database != 0) {
    const auto answer = connection.command({"SELECT", std::to_string(target->database)});
    if (!answer) return answer.error();
  }
  return connection;
}

Result<Reply> RedisConnection::command(const std::vector<std::string>& words) {
  std::string bytes;
  store::redis::append_command(bytes, words.size());
  for (const std::string& word : words) store::redis::append_bulk(bytes, word);
  return raw(bytes);
}

Result<Reply> RedisConnection::raw(std::string_view bytes) {
  redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size());
  void* answer = nullptr;
  if (redisGetReply(context_.get(), &answer) != REDIS_OK) {
    return Error{"Redis " + server_ + ": " + context_->errstr};
  }
  Reply reply(static_cast<redisReply*>(answer));
  if (reply->type == REDIS_REPLY_ERROR) {
    return Error{"Redis " + server_ + ": " + std::string(store::redis::text_of(*reply))};
  }
  return reply;
}

}  // namespace sluice::cli
