// A redis-server of one's own, for tests.
#pragma once

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/reply_reader.h"
#include "tests/integration/support/server.h"

namespace sluice::testing {

/// How a server is reached, beside its options, and what it takes for the time.
struct ServerSetup {
  bool over_tls = false;                    ///< the port speaks TLS alone; with which files the options say
  std::string password;                     ///< of the default user, by which command() gets in; empty: none
  std::chrono::milliseconds clock_ahead{};  ///< of its wall clock, before the machine's
};

/// Runs redis-server (or what SLUICE_REDIS_SERVER names) on a free port of 127.0.0.1 with a directory of its own;
/// both end with the object. Throws std::runtime_error when it cannot be started.
class RedisServer {
 public:
  /// `config`: lines of a file that is given to it, too; empty: none.
  explicit RedisServer(std::vector<std::string> options = {}, std::string config = {}, ServerSetup setup = {});

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url() const {
    return (setup_.over_tls ? "rediss" : "redis") + std::string("://127.0.0.1:") + std::to_string(port_);
  }
  [[nodiscard]] std::string socket_path() const { return (folder_.path() / "redis.sock").string(); }

  void kill();   ///< SIGKILL, and waits for its end
  void start();  ///< again, on the same port, with the same directory; waits until it serves
  void start_loading(const std::vector<std::string>& options);  ///< the same, but waits only until it says LOADING
  [[nodiscard]] bool is_running() { return !process_.has_ended(); }
  void pause() const;   ///< stopped when this returns
  void resume() const;  ///< SIGCONT

  /// One command on a blocking connection of the tests' own.
  store::redis::Reply command(const std::vector<std::string>& words);
  /// A command already in the Redis protocol.
  store::redis::Reply raw_command(std::string_view bytes);
  /// The integer that a command answers; throws when it answers something else.
  long long integer(const std::vector<std::string>& words);
  /// What INFO says of a field; empty: nothing.
  std::string info(const std::string& section, const std::string& field);
  /// How often it has carried out a command, by whomever.
  std::uint64_t calls(const std::string& name);
  /// The names of those that it has carried out, "script|load", before this.
  std::set<std::string> commands();
  /// Of Redis that it says it is: "7.0.15".
  std::string version() { return info("server", "redis_version"); }

 private:
  struct ContextDeleter {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  void launch(const std::vector<std::string>& more_options);
  void wait_until_it_answers(std::string_view beginning);
  [[nodiscard]] bool answers(std::string_view beginning);
  void connect();

  std::vector<std::string> options_;
  std::string config_;
  ServerSetup setup_;
  ServerFolder folder_{"redis"};
  ServerProcess process_;
  std::uint16_t port_ = 0;
  std::unique_ptr<redisContext, ContextDeleter> context_;
};

}  // namespace sluice::testing
