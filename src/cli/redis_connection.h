// A blocking connection to one Redis server, for commands that a person waits for.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "store/redis/reply_reader.h"

struct redisContext;

namespace sluice::cli {

/// Not thread-safe.
class RedisConnection {
 public:
  /// Connects and logs in to the server that settings name; one server, without TLS. Each step takes `patience` at
  /// most.
  [[nodiscard]] static Result<RedisConnection> open(const config::Settings& settings,
                                                    std::chrono::milliseconds patience);

  /// The answer to one command; the server's errors, and a broken connection, are errors.
  [[nodiscard]] Result<store::redis::Reply> command(const std::vector<std::string>& words);
  /// The same of a command in the protocol's form.
  [[nodiscard]] Result<store::redis::Reply> raw(std::string_view bytes);
  /// host:port, or the socket's path.
  [[nodiscard]] const std::string& server() const { return server_; }

 private:
  struct Close {
    void operator()(redisContext* context) const;
  };
  RedisConnection(redisContext* context, std::string server) : context_(context), server_(std::move(server)) {}

  std::unique_ptr<redisContext, Close> context_;
  std::string server_;
};

}  // namespace sluice::cli
