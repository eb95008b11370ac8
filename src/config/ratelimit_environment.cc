#include "config/ratelimit_environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>

#include "config/settings.h"

namespace sluice::config {
namespace {

enum class Type : unsigned char { single, sentinel, cluster };

/// Why a variable says nothing here, and which do.
struct Idle {
  std::string_view why;
  std::vector<std::string_view> names;
};

const std::array<Idle, 4>& idle_variables() {
  static const std::array<Idle, 4> all{
      {{.why = "each I/O thread has one pipelined connection to a server, and calls are filled without a timer",
        .names = {"REDIS_POOL_SIZE", "REDIS_POOL_ON_EMPTY_BEHAVIOR", "REDIS_PIPELINE_WINDOW", "REDIS_PIPELINE_LIMIT",
                  "REDIS_CLUSTER_PIPELINE_PARALLELISM"}},
       {.why = "the daemon starts without Redis, and is ready when it has reached it",
        .names = {"REDIS_STARTUP_INITIAL_INTERVAL", "REDIS_STARTUP_MAX_INTERVAL", "REDIS_STARTUP_MAX_ELAPSED_TIME"}},
       {.why = "/healthcheck says by itself whether Redis has been reached",
        .names = {"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION"}},
       {.why = "limits per second are kept in the same Redis as all others",
        .names = {"REDIS_PERSECOND", "REDIS_PERSECOND_AUTH", "REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
                  "REDIS_PERSECOND_PIPELINE_LIMIT", "REDIS_PERSECOND_PIPELINE_WINDOW",
                  "REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "REDIS_PERSECOND_POOL_SIZE",
                  "REDIS_PERSECOND_SENTINEL_AUTH", "REDIS_PERSECOND_SOCKET_TYPE", "REDIS_PERSECOND_TIMEOUT",
                  "REDIS_PERSECOND_TLS", "REDIS_PERSECOND_TYPE", "REDIS_PERSECOND_URL"}}}};
  return all;
}

class Reader {
 public:
  explicit Reader(std::span<const std::string> environment) {
    for (const std::string& line : environment) {
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos || !line.starts_with("REDIS_")) continue;
      variables_[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }

  RatelimitEnvironment read() && {
    if (value_of("REDIS_URL").empty()) return {};
    const bool over_tls = truth_of("REDIS_TLS");
    const Type type = type_of();
    take_url(type, over_tls);
    take_credentials("REDIS_AUTH", "store.redis.");
    if (type == Type::sentinel) {
      take_credentials("REDIS_SENTINEL_AUTH", "store.redis.sentinel.");
    } else {
      ignore({"REDIS_SENTINEL_AUTH"}, "REDIS_TYPE is not SENTINEL");
    }
    if (over_tls) {
      take("REDIS_TLS_CACERT", "store.redis.tls.ca");
      take("REDIS_TLS_CLIENT_CERT", "store.redis.tls.cert");
      take("REDIS_TLS_CLIENT_KEY", "store.redis.tls.key");
      if (truth_of("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION")) {
        say("store.redis.tls.verify_name", "false", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION");
      }
    } else {
      ignore(
          {"REDIS_TLS_CACERT", "REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION"},
          "REDIS_TLS is not true");
    }
    take("REDIS_TIMEOUT", "store.redis.timeout");
    for (const Idle& idle : idle_variables()) ignore(idle.names, idle.why);
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::string value_of(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? std::string() : found->second;
  }
  void say(std::string setting, std::string value, std::string variable) {
    result_.values.push_back({std::move(setting), std::move(value), std::move(variable)});
  }
  void take(const char* variable, const char* setting) {
    if (std::string value = value_of(variable); !value.empty()) say(setting, std::move(value), variable);
  }
  void fail(std::string message) { result_.errors.push_back(std::move(message)); }

  // One line for all that are set.
  void ignore(const std::vector<std::string_view>& names, std::string_view why) {
    std::string set;
    std::size_t count = 0;
    for (const std::string_view name : names) {
      if (value_of(name).empty()) continue;
      set += (count++ == 0 ? "" : ", ") + std::string(name);
    }
    if (count != 0)
      result_.warnings.push_back(set + (count == 1 ? " has" : " have") + " no effect: " + std::string(why));
  }

  // As Go reads one.
  bool truth_of(const char* name) {
    const std::string value = value_of(name);
    constexpr std::array<std::string_view, 6> yes{"1", "t", "T", "TRUE", "true", "True"};
    constexpr std::array<std::string_view, 7> no{"", "0", "f", "F", "FALSE", "false", "False"};
    if (std::ranges::find(yes, value) != yes.end()) return true;
    if (std::ranges::find(no, value) == no.end()) {
      fail(std::string(name) + ": expected true or false, found '" + value + "'");
    }
    return false;
  }

  Type type_of() {
    std::string value = value_of("REDIS_TYPE");
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    if (value.empty() || value == "single") return Type::single;
    if (value == "sentinel") return Type::sentinel;
    if (value == "cluster") return Type::cluster;
    fail("REDIS_TYPE: expected SINGLE, SENTINEL or CLUSTER, found '" + value_of("REDIS_TYPE") + "'");
    return Type::single;
  }

  void take_credentials(const char* variable, const std::string& group) {
    const std::string value = value_of(variable);
    if (value.empty()) return;
    const std::size_t colon = value.find(':');
    if (colon != std::string::npos && colon > 0) say(group + "username", value.substr(0, colon), variable);
    say(group + "password", colon == std::string::npos ? value : value.substr(colon + 1), variable);
  }

  void take_url(Type type, bool over_tls) {
    const std::string text = value_of("REDIS_URL");
    const std::string scheme = over_tls ? "rediss" : "redis";
    if (text.find("://") != std::string::npos) {
      if (type != Type::single) {
        fail("REDIS_URL: with REDIS_TYPE " + value_of("REDIS_TYPE") + " expected addresses without a scheme, found '" +
             without_password(text) + "'");
      } else {
        const bool gets_tls = over_tls && text.starts_with("redis://");
        say("store.redis.url", gets_tls ? "rediss" + text.substr(sizeof("redis") - 1) : text, "REDIS_URL");
      }
      return;
    }
    switch (type) {
      case Type::single:
        take_one(text, scheme);
        break;
      case Type::cluster:
        say("store.redis.url", scheme + "+cluster://" + text, "REDIS_URL");
        break;
      case Type::sentinel: {
        const std::size_t comma = text.find(',');
        if (comma == std::string::npos || comma == 0 || comma + 1 == text.size()) {
          fail("REDIS_URL: with REDIS_TYPE SENTINEL expected NAME,HOST:PORT[,HOST:PORT…], found '" + text + "'");
          return;
        }
        say("store.redis.url", scheme + "-sentinel://" + text.substr(comma + 1) + "/" + text.substr(0, comma),
            "REDIS_URL");
        break;
      }
    }
  }

  void take_one(const std::string& text, const std::string& scheme) {
    std::string socket = value_of("REDIS_SOCKET_TYPE");
    std::ranges::transform(socket, socket.begin(), [](unsigned char c) { return std::tolower(c); });
    if (socket.empty()) socket = text.starts_with('/') ? "unix" : "tcp";
    if (socket == "unix") {
      if (text.starts_with('/')) {
        say("store.redis.url", "unix://" + text, "REDIS_URL");
      } else {
        fail("REDIS_URL: with REDIS_SOCKET_TYPE unix expected the socket's absolute path, found '" + text + "'");
      }
    } else if (socket != "tcp") {
      fail("REDIS_SOCKET_TYPE: expected tcp or unix, found '" + value_of("REDIS_SOCKET_TYPE") + "'");
    } else if (text.find(',') != std::string::npos) {
      fail("REDIS_URL: several addresses are those of a cluster (REDIS_TYPE=CLUSTER) or of sentinels, found '" + text +
           "'");
    } else {
      say("store.redis.url", scheme + "://" + text, "REDIS_URL");
    }
  }

  std::map<std::string, std::string, std::less<>> variables_;
  RatelimitEnvironment result_;
};

}  // namespace

RatelimitEnvironment read_ratelimit_environment(std::span<const std::string> environment) {
  return Reader(environment).read();
}

}  // namespace sluice::config
