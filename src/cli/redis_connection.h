// A blocking connection to one Redis server, for commands that a person waits for.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/redis/credentials.h"
#include "store/redis/reply_reader.h"
#include "store/redis/tls.h"
#include "store/redis/url.h"
#include "store/redis/wire.h"

namespace sluice::cli {

/// Each step – to connect, to be answered – takes `patience` at most. Not thread-safe.
class RedisConnection final : private store::redis::Wire::Owner {
 public:
  /// How a server is spoken to.
  struct Options {
    std::string user;
    std::string password;  ///< empty: no AUTH
    int database = 0;
    bool wants_alone = false;          ///< refuses what is not one master that works alone
    store::redis::Tls* tls = nullptr;  ///< null: in the clear. Must outlive open()
    std::chrono::milliseconds patience{5'000};
  };

  /// Connects and logs in.
  [[nodiscard]] static Result<std::unique_ptr<RedisConnection>> open(const store::redis::Address& address,
                                                                     const Options& options);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// The reply to one command, errors of the server's included. An error: there is none, and the connection is of no
  /// use any more.
  [[nodiscard]] Result<store::redis::Reply> ask(const std::vector<std::string>& words);
  /// The replies to `count` commands in the protocol's form.
  [[nodiscard]] Result<std::vector<store::redis::Reply>> ask_raw(std::string_view bytes, std::size_t count);
  /// host:port, or the socket's path.
  [[nodiscard]] const std::string& server() const { return server_; }

 private:
  RedisConnection(const store::redis::Address& address, const Options& options);

  store::redis::Wire::Owner& owner() { return *this; }
  void wire_opened() override { is_open_ = true; }
  void wire_read(std::string_view bytes) override;
  void wire_written() override { is_writing_ = false; }
  void wire_failed(std::string_view why) override;

  /// Until `done`, or an error.
  template <typename Done>
  [[nodiscard]] std::optional<Error> run_until(Done done);
  [[nodiscard]] Error broken(std::string_view why);
  [[nodiscard]] std::optional<Error> greet(const Options& options);
  [[nodiscard]] std::optional<Error> judge_hello(const redisReply& reply) const;

  const std::string server_;
  const std::chrono::milliseconds patience_;
  boost::asio::io_context io_{1};
  std::shared_ptr<store::redis::Wire> wire_;
  store::redis::ReplyReader reader_;
  std::deque<store::redis::Reply> replies_;
  bool is_open_ = false;
  bool has_heard_ = false;  ///< anything of the server
  bool is_writing_ = false;
  std::optional<std::string> failed_;  ///< why
};

/// A command in the protocol's form.
[[nodiscard]] std::string command_bytes(const std::vector<std::string>& words);
/// What a server said, and what to look at: "Redis 127.0.0.1:6379: NOPERM …".
[[nodiscard]] Error server_error(const RedisConnection& connection, const redisReply& reply);

}  // namespace sluice::cli
