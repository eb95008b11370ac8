#include "tests/integration/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace sluice::testing {

namespace {

std::uint16_t free_port() {
  const int socket_fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                     ::getsockname(socket_fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket_fd);
  if (!bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

std::string server_program() {
  const char* named = std::getenv("SLUICE_REDIS_SERVER");
  return named != nullptr ? named : "redis-server";
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> options, std::string config)
    : options_(std::move(options)), config_(std::move(config)) {
  std::signal(SIGPIPE, SIG_IGN);  // hiredis writes to connections that may have been closed
  std::string pattern = (std::filesystem::temp_directory_path() / "sluice-redis-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a directory for redis-server");
  directory_ = pattern;
  // Another process may take the port in between: then the server ends at once, and another port is tried.
  for (int attempt = 0;; ++attempt) {
    port_ = free_port();
    try {
      start();
      return;
    } catch (const std::runtime_error&) {
      if (attempt == 4) {
        std::filesystem::remove_all(directory_);
        throw;
      }
    }
  }
}

RedisServer::~RedisServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
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
  std::vector<std::string> words = {
      server_program(), "--port", std::to_string(port_), "--bind",      "127.0.0.1", "--dir",    directory_.string(),
      "--save",         "",       "--unixsocket",        socket_path(), "--logfile", "redis.log"};
  words.insert(words.end(), options_.begin(), options_.end());
  if (!config_.empty()) {
    const std::string file = (directory_ / "server.conf").string();
    // A sentinel keeps what it has learned there.
    if (!std::filesystem::exists(file)) std::ofstream(file) << config_;
    words.insert(words.begin() + 1, file);
  }
  words.insert(words.end(), more_options.begin(), more_options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    // Never outlives the test, however that ends.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int null = ::open("/dev/null", O_RDWR);
    ::dup2(null, 1);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  if (pid_ < 0) throw std::runtime_error("cannot start " + words[0]);
}

void RedisServer::wait_until_it_answers(std::string_view beginning) {
  const std::string program = server_program();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = 0;
      const bool missing = WIFEXITED(status) && WEXITSTATUS(status) == 127;
      throw std::runtime_error(program + (missing ? " is not installed" : " ended at once"));
    }
    if (answers(beginning)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill();
  throw std::runtime_error(program + " does not answer");
}

void RedisServer::kill() {
  context_.reset();
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void RedisServer::pause() const { ::kill(pid_, SIGSTOP); }
void RedisServer::resume() const { ::kill(pid_, SIGCONT); }

void RedisServer::connect() {
  if (context_ != nullptr && context_->err == 0) return;
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  context_.reset(redisConnectUnixWithTimeout(socket_path().c_str(), patience));
  if (context_ != nullptr && context_->err == 0) redisSetTimeout(context_.get(), patience);
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

}  // namespace sluice::testing
