#include "config/ratelimit_environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "base/duration.h"
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
       {.why = "limits per second are kept in the same Redis as all others, but with --compat envoyproxy",
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

  RatelimitEnvironment read(std::string_view default_url) && {
    if (value_of("REDIS_URL").empty()) variables_["REDIS_URL"] = default_url;
    if (value_of("REDIS_URL").empty()) return {};
    // A URL of our own forms says it by itself.
    const std::string url = value_of("REDIS_URL");
    const bool is_tls_url = url.starts_with("rediss") && url.find("://") != std::string::npos;
    const bool over_tls = truth_of("REDIS_TLS") || is_tls_url;
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
    take_timeout();
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
  // There it may be any time, and 0 is for ever.
  void take_timeout() {
    constexpr std::chrono::nanoseconds longest = std::chrono::seconds(10);
    const std::string value = value_of("REDIS_TIMEOUT");
    // Below 0 as 0.
    const bool is_negative = value.starts_with('-');
    const auto read = parse_duration(value == "0" ? "0s" : value.substr(is_negative ? 1 : 0));
    if (read && (is_negative || read->count() == 0 || *read > longest)) {
      say("store.redis.timeout", sluice::to_text(longest), "REDIS_TIMEOUT");
      result_.warnings.push_back("REDIS_TIMEOUT: '" + value + "' counts as " + sluice::to_text(longest) +
                                 ", the longest that a request waits for Redis here");
    } else {
      take("REDIS_TIMEOUT", "store.redis.timeout");
    }
  }
  void fail(std::string message) { result_.errors.push_back(std::move(message)); }

  // One line for all that are set.
  void ignore(const std::vector<std::string_view>& names, std::string_view why) {
    std::string set;
    std::size_t count = 0;
    for (const std::string_view name : names) {
      if (value_of(name).empty()) continue;
      if (count++ != 0) set += ", ";
      set += name;
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
        if (over_tls && text.starts_with("unix://")) {
          fail("REDIS_TLS: a socket's path, '" + without_password(text) +
               "', is not spoken to over TLS; leave one of them out");
          return;
        }
        say("store.redis.url", gets_tls ? "rediss" + text.substr(sizeof("redis") - 1) : text, "REDIS_URL");
      }
      return;
    }
    if (type != Type::single && (socket_type() == "unix" || text.starts_with('/') || text.find(",/") != text.npos)) {
      fail("REDIS_URL: with REDIS_TYPE " + value_of("REDIS_TYPE") +
           " expected addresses HOST:PORT, as only one server (SINGLE) is reached by a socket's path, found '" +
           without_password(text) + "'" + (socket_type() == "unix" ? " and REDIS_SOCKET_TYPE unix" : ""));
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
        const bool has_name = comma != std::string::npos && comma > 0 && text.find(':') > comma;
        if (!has_name || comma + 1 == text.size()) {
          fail(
              "REDIS_URL: with REDIS_TYPE SENTINEL expected NAME,HOST:PORT[,HOST:PORT…], of which NAME is the "
              "master's, "
              "found '" +
              text + "'");
          return;
        }
        say("store.redis.url", scheme + "-sentinel://" + text.substr(comma + 1) + "/" + text.substr(0, comma),
            "REDIS_URL");
        break;
      }
    }
  }

  [[nodiscard]] std::string socket_type() const {
    std::string socket = value_of("REDIS_SOCKET_TYPE");
    std::ranges::transform(socket, socket.begin(), [](unsigned char c) { return std::tolower(c); });
    return socket;
  }

  void take_one(const std::string& text, const std::string& scheme) {
    std::string socket = socket_type();
    if (socket.empty()) socket = text.starts_with('/') ? "unix" : "tcp";
    if (socket == "unix") {
      if (text.starts_with('/') && scheme == "rediss") {
        fail("REDIS_TLS: a socket's path, '" + text + "', is not spoken to over TLS; leave one of them out");
      } else if (text.starts_with('/')) {
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

RatelimitEnvironment read_ratelimit_environment(std::span<const std::string> environment, bool with_defaults) {
  std::vector<std::string> known(environment.begin(), environment.end());
  if (with_defaults) {
    // These mean something there.
    std::erase_if(known, [](const std::string& line) {
      return line.starts_with("REDIS_PERSECOND") || line.starts_with("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=");
    });
  }
  return Reader(known).read(with_defaults ? "/var/run/nutcracker/ratelimit.sock" : "");
}

RatelimitEnvironment read_per_second_environment(std::span<const std::string> environment) {
  constexpr std::string_view any = "REDIS_";
  constexpr std::string_view prefix = "REDIS_PERSECOND_";
  constexpr std::string_view shared = "REDIS_TLS_";
  std::vector<std::string> renamed;
  for (const std::string& line : environment) {
    if (line.starts_with(prefix)) renamed.push_back("REDIS_" + line.substr(prefix.size()));
    if (line.starts_with(shared)) renamed.push_back(line);
  }
  RatelimitEnvironment read = Reader(renamed).read("/var/run/nutcracker/ratelimitpersecond.sock");
  for (RatelimitEnvironment::Value& value : read.values) {
    if (!value.variable.starts_with(shared)) value.variable.insert(any.size(), prefix.substr(any.size()));
  }
  for (std::string& error : read.errors) {
    if (error.starts_with(any)) error.insert(any.size(), prefix.substr(any.size()));
  }
  // Of those that both share the first has been told.
  std::erase_if(read.warnings, [&](const std::string& warning) { return warning.starts_with(shared); });
  for (std::string& warning : read.warnings) {
    for (std::size_t at = warning.find(any); at != std::string::npos; at = warning.find(any, at + prefix.size())) {
      warning.replace(at, any.size(), prefix);
    }
  }
  return read;
}

}  // namespace sluice::config
