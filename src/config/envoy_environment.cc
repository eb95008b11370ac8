#include "config/envoy_environment.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <regex>
#include <string_view>
#include <utility>

#include "base/duration.h"
#include "config/address.h"
#include "config/environment_reader.h"
#include "config/envoy_listing.h"
#include "config/otel_environment.h"

namespace sluice::config {
namespace {

/// Variables that have no effect, and why.
struct Idle {
  std::string_view name;
  std::string_view why;
};

constexpr std::string_view kDefault = "default of --compat envoyproxy";
constexpr std::string_view kNoXds = "policies are files here (CONFIG_TYPE=FILE)";
constexpr std::string_view kNoMemcached = "there is no memcached here (BACKEND_TYPE=redis)";

constexpr auto kIdle = std::to_array<Idle>({
    {"GRPC_MAX_CONNECTION_AGE_GRACE", "a connection that has reached its age ends when its calls are answered"},
    {"EXPIRATION_JITTER_MAX_SECONDS", "keys expire with their windows, and Redis spreads that work by itself"},
    {"LOCAL_CACHE_SIZE_IN_BYTES", "every request is counted, as calls are batched and cost Redis little"},
    {"PROMETHEUS_MAPPER_YAML", "the names are those of the default mapping"},
    {"CONFIG_GRPC_XDS_NODE_ID", kNoXds},
    {"CONFIG_GRPC_XDS_NODE_METADATA", kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_URL", kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_USE_TLS", kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_CERT", kNoXds},
    {"CONFIG_GRPC_XDS_CLIENT_TLS_KEY", kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_TLS_CACERT", kNoXds},
    {"CONFIG_GRPC_XDS_SERVER_TLS_SAN", kNoXds},
    {"XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", kNoXds},
    {"XDS_CLIENT_BACKOFF_MAX_INTERVAL", kNoXds},
    {"XDS_CLIENT_BACKOFF_RANDOM_FACTOR", kNoXds},
    {"XDS_CLIENT_BACKOFF_JITTER", kNoXds},
    {"XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", kNoXds},
    {"MEMCACHE_HOST_PORT", kNoMemcached},
    {"MEMCACHE_SRV", kNoMemcached},
    {"MEMCACHE_SRV_REFRESH", kNoMemcached},
    {"MEMCACHE_MAX_IDLE_CONNS", kNoMemcached},
    {"MEMCACHE_TLS", kNoMemcached},
    {"MEMCACHE_TLS_CLIENT_CERT", kNoMemcached},
    {"MEMCACHE_TLS_CLIENT_KEY", kNoMemcached},
    {"MEMCACHE_TLS_CACERT", kNoMemcached},
    {"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", kNoMemcached},
});

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return std::ranges::all_of(name, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || others.find(c) != std::string_view::npos;
  });
}

/// What a prefix of keys may hold is left of it; the rest is written as %XX, and a long one is cut short with its
/// digest behind it. Other prefixes stay other ones.
std::string prefix_of(const std::string& given) {
  constexpr std::size_t most = 40;
  std::string prefix;
  for (const char c : given) {
    const bool is_plain = c > ' ' && c < 0x7f && c != '{' && c != '}' && c != '%';
    prefix += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (prefix.size() <= most) return prefix;
  return fmt::format("{}%{:016x}:", prefix.substr(0, most / 2), XXH3_64bits(given.data(), given.size()));
}

class Reading {
 public:
  explicit Reading(std::span<const std::string> environment) : reader_(environment), environment_(environment) {}

  EnvoyEnvironment run() && {
    read_listeners();
    read_log();
    read_policy();
    read_decisions();
    read_headers();
    read_statistics();
    result_.has_per_second = reader_.truth("REDIS_PERSECOND");
    if (const std::string backend = lower(reader_.text("BACKEND_TYPE", "redis")); backend != "redis") {
      reader_.fail("BACKEND_TYPE", backend == "memcache" ? "redis, as there is no memcached here" : "redis");
    }
    read_tracing();
    warn_of_idle();
    list();
    for (std::string& error : reader_.take_errors()) result_.errors.push_back(std::move(error));
    for (std::string& warning : reader_.take_warnings()) result_.warnings.push_back(std::move(warning));
    return std::move(result_);
  }

 private:
  void say(std::string setting, std::string value, std::string_view variable) {
    result_.values.push_back({std::move(setting), std::move(value),
                              std::string(reader_.has(variable) ? variable : kDefault), reader_.has(variable)});
  }

  void address(const char* setting, const char* host_name, const char* port_name, std::uint64_t port) {
    std::string host = reader_.text(host_name, "0.0.0.0");
    if (host.find(':') != std::string::npos && !host.starts_with('[')) host = "[" + host + "]";
    constexpr std::uint64_t most = 65535;
    say(setting, host + ":" + std::to_string(reader_.number(port_name, port, most)),
        reader_.has(port_name) ? port_name : host_name);
  }

  void read_listeners() {
    constexpr std::uint64_t http = 8080;
    constexpr std::uint64_t debug = 6070;
    constexpr std::uint64_t grpc = 8081;
    address("listen.http", "HOST", "PORT", http);
    address("listen.admin", "DEBUG_HOST", "DEBUG_PORT", debug);
    if (const std::string socket = reader_.text("GRPC_UDS"); socket.empty()) {
      address("listen.grpc", "GRPC_HOST", "GRPC_PORT", grpc);
    } else {
      say("listen.grpc", "unix:" + socket, "GRPC_UDS");
    }
    constexpr std::chrono::hours longest(24 * 366);
    auto age = reader_.duration("GRPC_MAX_CONNECTION_AGE", std::chrono::hours(24));
    if (age.count() == 0 || age > longest) {
      age = longest;  // there 0 is for ever
      result_.warnings.push_back("GRPC_MAX_CONNECTION_AGE: '" + reader_.text("GRPC_MAX_CONNECTION_AGE") +
                                 "' counts as 366 days, the longest here");
    }
    say("grpc.max_connection_age", sluice::to_text(age), "GRPC_MAX_CONNECTION_AGE");
    if (reader_.truth("GRPC_SERVER_USE_TLS")) {
      read_grpc_tls();
    } else {
      for (const char* name :
           {"GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY", "GRPC_CLIENT_TLS_CACERT", "GRPC_CLIENT_TLS_SAN"}) {
        if (!reader_.has(name)) continue;
        result_.warnings.push_back(std::string(name) + " has no effect: GRPC_SERVER_USE_TLS is not true");
      }
    }
  }

  void read_grpc_tls() {
    const auto take = [&](const char* setting, const char* name) {
      if (std::string value = reader_.text(name); !value.empty()) say(setting, std::move(value), name);
    };
    if (reader_.text("GRPC_SERVER_TLS_CERT").empty()) {
      reader_.fail("GRPC_SERVER_TLS_CERT", "the file of a certificate, as GRPC_SERVER_USE_TLS is true");
    }
    take("listen.grpc.tls.cert", "GRPC_SERVER_TLS_CERT");
    take("listen.grpc.tls.key", "GRPC_SERVER_TLS_KEY");
    take("listen.grpc.tls.client_ca", "GRPC_CLIENT_TLS_CACERT");
    take("listen.grpc.tls.client_names", "GRPC_CLIENT_TLS_SAN");
  }

  void read_log() {
    constexpr auto levels = std::to_array<std::pair<std::string_view, std::string_view>>({{"trace", "debug"},
                                                                                          {"debug", "debug"},
                                                                                          {"info", "info"},
                                                                                          {"warn", "warn"},
                                                                                          {"warning", "warn"},
                                                                                          {"error", "error"},
                                                                                          {"fatal", "error"},
                                                                                          {"panic", "error"}});
    const std::string level = lower(reader_.text("LOG_LEVEL", "warn"));
    const auto* const found = std::ranges::find(levels, level, &std::pair<std::string_view, std::string_view>::first);
    if (found == levels.end()) {
      reader_.fail("LOG_LEVEL", "trace, debug, info, warn, error, fatal or panic");
    } else {
      say("log.level", std::string(found->second), "LOG_LEVEL");
    }
    const std::string format = lower(reader_.text("LOG_FORMAT", "text"));
    if (format != "text" && format != "json") reader_.warn("LOG_FORMAT", "text");
    say("log.format", format == "json" ? format : "text", "LOG_FORMAT");
  }

  void read_policy() {
    EnvoyOptions& options = result_.options;
    if (reader_.text("CONFIG_TYPE", "FILE") != "FILE") {
      reader_.fail("CONFIG_TYPE", "FILE, as policies do not come over xDS here");
    }
    result_.names_policy = reader_.has("RUNTIME_ROOT");
    options.runtime_root = reader_.text("RUNTIME_ROOT", options.runtime_root);
    options.runtime_subdirectory = reader_.text("RUNTIME_SUBDIRECTORY");
    // An empty one is no folder at all, not the one that holds without the variable.
    options.runtime_app_directory =
        reader_.is_there("RUNTIME_APPDIRECTORY") ? reader_.text("RUNTIME_APPDIRECTORY") : options.runtime_app_directory;
    options.ignores_dot_files = reader_.truth("RUNTIME_IGNOREDOTFILES");
    options.watches_root = reader_.truth("RUNTIME_WATCH_ROOT", true);
    options.merges_domains = reader_.truth("MERGE_DOMAIN_CONFIG");
    options.needs_policy = reader_.truth("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED");
    options.needs_store = reader_.truth("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION");
    if (reader_.truth("FORCE_START_WITHOUT_INITIAL_CONFIG")) {
      result_.warnings.emplace_back(
          "FORCE_START_WITHOUT_INITIAL_CONFIG has no effect: the daemon starts without a policy in any case");
    }
  }

  void read_decisions() {
    EnvoyOptions& options = result_.options;
    options.stops_when_over = reader_.truth("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT");
    options.shadow_mode = reader_.truth("SHADOW_MODE");
    options.quota_mode = reader_.truth("QUOTA_MODE");
    options.dynamic_metadata = reader_.truth("RESPONSE_DYNAMIC_METADATA");
    options.near_limit_ratio = reader_.ratio("NEAR_LIMIT_RATIO", options.near_limit_ratio);
    if (const std::string prefix = reader_.text("CACHE_KEY_PREFIX"); !prefix.empty()) {
      // Not the prefix alone: both may run on one Redis while one takes the other's place.
      const std::string ours = prefix_of(prefix);
      if (ours != prefix)
        reader_.warn("CACHE_KEY_PREFIX", "'" + ours + "', as keys of Redis begin with plain characters");
      say("store.redis.prefix", ours + "sluice:", "CACHE_KEY_PREFIX");
    }
  }

  std::string header(const char* name, const std::string& fallback) {
    std::string value = reader_.text(name, fallback);
    if (!is_header_name(value)) reader_.fail(name, "the name of a header field");
    return value;
  }

  void read_headers() {
    EnvoyOptions& options = result_.options;
    options.limit_headers = reader_.truth("LIMIT_RESPONSE_HEADERS_ENABLED");
    options.limit_header = header("LIMIT_LIMIT_HEADER", options.limit_header);
    options.remaining_header = header("LIMIT_REMAINING_HEADER", options.remaining_header);
    options.reset_header = header("LIMIT_RESET_HEADER", options.reset_header);
  }

  void read_statistics() {
    using Statistics = EnvoyOptions::Statistics;
    EnvoyOptions& options = result_.options;
    const bool statsd = reader_.truth("USE_STATSD", true);
    const bool dogstatsd = reader_.truth("USE_DOG_STATSD");
    const bool prometheus = reader_.truth("USE_PROMETHEUS");
    if (static_cast<int>(statsd) + static_cast<int>(dogstatsd) + static_cast<int>(prometheus) > 1) {
      result_.errors.emplace_back(
          "USE_STATSD (true unless it is set to false), USE_DOG_STATSD and USE_PROMETHEUS: only one of them may be "
          "true");
    }
    options.statistics = Statistics::none;
    if (prometheus) options.statistics = Statistics::prometheus;
    if (dogstatsd) options.statistics = Statistics::dogstatsd;
    if (statsd && !dogstatsd && !prometheus) options.statistics = Statistics::statsd;
    if (reader_.truth("DISABLE_STATS")) options.statistics = Statistics::none;
    options.statsd_host = reader_.text("STATSD_HOST", options.statsd_host);
    constexpr std::uint64_t most_port = 65535;
    options.statsd_port = static_cast<std::uint16_t>(reader_.number("STATSD_PORT", options.statsd_port, most_port));
    options.flush_interval = reader_.duration("STATS_FLUSH_INTERVAL", options.flush_interval);
    constexpr std::chrono::milliseconds least(10);
    if (options.flush_interval.count() == 0) {
      reader_.fail("STATS_FLUSH_INTERVAL", "a duration above 0");
    } else if (options.flush_interval < least) {
      reader_.warn("STATS_FLUSH_INTERVAL", sluice::to_text(least));
      options.flush_interval = least;
    }
    options.extra_tags = reader_.pairs("EXTRA_TAGS");
    options.prometheus_address = reader_.text("PROMETHEUS_ADDR", options.prometheus_address);
    if (options.statistics == Statistics::prometheus) {
      auto address = parse_address(options.prometheus_address);
      if (address) {
        options.metrics = *std::move(address);
      } else {
        result_.errors.push_back("PROMETHEUS_ADDR: " + address.error().message);
      }
    }
    options.prometheus_path = reader_.text("PROMETHEUS_PATH", options.prometheus_path);
    if (!options.prometheus_path.starts_with('/')) reader_.fail("PROMETHEUS_PATH", "a path that begins with /");
    options.prometheus_milliseconds = reader_.truth("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS");
    for (const std::string& name : reader_.list("USE_DOG_STATSD_MOGRIFIERS")) read_mogrifier(name);
  }

  void read_mogrifier(const std::string& name) {
    const std::string prefix = "DOG_STATSD_MOGRIFIER_" + name;
    Mogrifier mogrifier{.pattern = reader_.text(prefix + "_PATTERN"),
                        .name = reader_.text(prefix + "_NAME"),
                        .tags = reader_.pairs(prefix + "_TAGS")};
    if (mogrifier.pattern.empty()) reader_.fail(prefix + "_PATTERN", "a regular expression");
    if (mogrifier.name.empty()) reader_.fail(prefix + "_NAME", "a name");
    for (const auto& [tag, value] : mogrifier.tags) {
      if (value.empty()) reader_.fail(prefix + "_TAGS", "a value for " + tag);
    }
    try {
      (void)std::regex(mogrifier.pattern);
    } catch (const std::regex_error&) {
      reader_.fail(prefix + "_PATTERN", "a regular expression");
    }
    result_.options.mogrifiers.push_back(std::move(mogrifier));
  }

  void warn_of_idle() {
    for (const Idle& idle : kIdle) {
      if (reader_.has(idle.name)) {
        result_.warnings.push_back(std::string(idle.name) + " has no effect: " + std::string(idle.why));
      }
    }
  }

  void read_tracing() {
    OtelEnvironment read = read_otel_environment(reader_, environment_);
    std::ranges::move(read.values, std::back_inserter(result_.values));
    std::ranges::move(read.warnings, std::back_inserter(result_.warnings));
  }

  void list() {
    for (ListedOption& option : list_options(result_.options)) {
      const bool is_set = reader_.is_there(option.variable);
      result_.listing.push_back({.setting = std::string(option.variable),
                                 .value = std::move(option.value),
                                 .variable = is_set ? "environment" : std::string(kDefault),
                                 .is_set = is_set});
    }
  }

  EnvironmentReader reader_;
  std::span<const std::string> environment_;
  EnvoyEnvironment result_;
};

}  // namespace

EnvoyEnvironment read_envoy_environment(std::span<const std::string> environment) {
  EnvoyEnvironment read = Reading(environment).run();
  return read;
}

}  // namespace sluice::config
