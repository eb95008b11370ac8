// The variables by which envoyproxy/ratelimit is told of its Redis, so that its deployments need not be rewritten.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::config {

/// What REDIS_… variables come to.
struct RatelimitEnvironment {
  struct Value {
    std::string setting;   ///< as in the file: "store.redis.url"
    std::string value;     ///< as text
    std::string variable;  ///< who says so
    bool is_set = true;    ///< false: it is what holds without the variable
  };
  std::vector<Value> values;
  std::vector<std::string> errors;    ///< each one line, naming the variable
  std::vector<std::string> warnings;  ///< of those that have no meaning here
};

/// `environment` holds NAME=value lines. Without a REDIS_URL that says something nothing is read, unless
/// `with_defaults`: in the place of envoyproxy/ratelimit, whose default is a socket. Pure.
[[nodiscard]] RatelimitEnvironment read_ratelimit_environment(std::span<const std::string> environment,
                                                              bool with_defaults = false);
/// The same for the Redis of limits per second (REDIS_PERSECOND_…), with the TLS files of the other.
[[nodiscard]] RatelimitEnvironment read_per_second_environment(std::span<const std::string> environment);

}  // namespace sluice::config
