#include "tests/integration/redis_server.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace sluice::testing {

namespace {

std::string server_program() {
  const char* named = std::getenv("SLUICE_REDIS_SERVER");
  return named != nullptr ? named : "redis-server";
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> options, std::string config, ServerSetup setup)
    : options_(std::move(options)), config_(std::move(config)), setup_(std::move(setup)) {
  std::signal(SIGPIPE, SIG_IGN);  // hiredis writes to connections that may have been closed
  // Another program may take the port in between: then the server ends at once, and another port is tried.
  for (int attempt = 0;; ++attempt) {
    port_ = free_tcp_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 4) throw;
    }
  }
}

void RedisServer::start() {
  launch({});
  wait_until_it_answers("PONG");
}

void RedisServer::start_loading(const std::vector<std::string>& options) {
  launch(options);
  wait_until_it_answers("LOADING");
}

void RedisServer::launch(const std::vector<std::string>& more_options) {
  const std::string port = std::to_string(port_);
  std::vector<std::string> words = {server_program(),
                                    "--bind",
                                    "127.0.0.1",
                                    "--dir",
                                    folder_.path().string(),
                                    "--save",
                                    "",
                                    "--unixsocket",
                                    socket_path(),
                                    "--port",
                                    setup_.over_tls ? "0" : port};
  if (!setup_.password.empty()) words.insert(words.end(), {"--requirepass", setup_.password});
  if (setup_.over_tls) words.insert(words.end(), {"--tls-port", port});
  words.insert(words.end(), options_.begin(), options_.end());
  if (!config_.empty()) {
    const std::filesystem::path file = folder_.path() / "server.conf";
    // A sentinel keeps what it has learned there.
    if (!std::filesystem::exists(file)) folder_.write("server.conf", config_);
    words.insert(words.begin() + 1, file.string());
  }
  words.insert(words.end(), more_options.begin(), more_options.end());
  std::vector<std::string> environment;
  if (setup_.clock_ahead.count() != 0) {
    environment = {"LD_PRELOAD=" SLUICE_CLOCK_AHEAD,
                   "SLUICE_CLOCK_AHEAD_MS=" + std::to_string(setup_.clock_ahead.count())};
  }
  process_.start(words, environment, folder_.path() / "redis.log");
}

void RedisServer::wait_until_it_answers(std::string_view beginning) {
  wait_until_ready(process_, server_program(), folder_.path() / "redis.log", [&] { return answers(beginning); });
}

void RedisServer::kill() {
  context_.reset();
  process_.kill();
}

void RedisServer::pause() const { process_.pause(); }
void RedisServer::resume() const { process_.signal(SIGCONT); }

void RedisServer::connect() {
  if (context_ != nullptr && context_->err == 0) return;
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  context_.reset(redisConnectUnixWithTimeout(socket_path().c_str(), patience));
  if (context_ == nullptr || context_->err != 0) return;
  redisSetTimeout(context_.get(), patience);
  if (!setup_.password.empty()) {
    const store::redis::Reply reply(
        static_cast<redisReply*>(redisCommand(context_.get(), "AUTH %s", setup_.password.c_str())));
  }
}

bool RedisServer::answers(std::string_view beginning) {
  connect();
  if (context_ == nullptr || context_->err != 0) return false;
  const store::redis::Reply reply(static_cast<redisReply*>(redisCommand(context_.get(), "PING")));
  if (reply == nullptr) return false;
  const std::string_view text = store::redis::text_of(*reply);
  // One that wants a password serves.
  return text.starts_with(beginning) || text.starts_with("NOAUTH");
}

store::redis::Reply RedisServer::command(const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  store::redis::Reply reply;
  // A connection that the server has closed, as when a sentinel has made it a replica, is found out only by using it.
  for (int attempt = 0; attempt < 2 && reply == nullptr; ++attempt) {
    connect();
    reply.reset(static_cast<redisReply*>(
        redisCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data())));
  }
  if (reply == nullptr) throw std::runtime_error(words[0] + ": no reply");
  return reply;
}

store::redis::Reply RedisServer::raw_command(std::string_view bytes) {
  connect();
  void* reply = nullptr;
  if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK ||
      redisGetReply(context_.get(), &reply) != REDIS_OK) {
    throw std::runtime_error("no reply");
  }
  return store::redis::Reply(static_cast<redisReply*>(reply));
}

long long RedisServer::integer(const std::vector<std::string>& words) {
  const auto reply = command(words);
  if (reply->type != REDIS_REPLY_INTEGER) throw std::runtime_error(words[0] + ": not an integer");
  return reply->integer;
}

std::string RedisServer::info(const std::string& section, const std::string& field) {
  const auto reply = command({"INFO", section});
  const std::string text(store::redis::text_of(*reply));
  const std::string name = "\n" + field + ":";
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size();
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

std::uint64_t RedisServer::calls(const std::string& name) {
  constexpr std::string_view before = "calls=";
  const std::string figures = info("commandstats", "cmdstat_" + name);
  return figures.starts_with(before) ? std::strtoull(figures.c_str() + before.size(), nullptr, 10) : 0;
}

std::set<std::string> RedisServer::commands() {
  const auto reply = command({"INFO", "commandstats"});
  const std::string_view text = store::redis::text_of(*reply);
  constexpr std::string_view before = "cmdstat_";
  std::set<std::string> names;
  for (std::size_t at = text.find(before); at != std::string_view::npos; at = text.find(before, at)) {
    at += before.size();
    names.emplace(text.substr(at, text.find(':', at) - at));
  }
  return names;
}

}  // namespace sluice::testing
