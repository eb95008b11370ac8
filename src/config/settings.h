// How the server runs: its settings, and the one table that names them for file, environment and command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "config/address.h"
#include "config/envoy_options.h"
#include "config/queue_settings.h"
#include "tls/server_options.h"

namespace sluice::config {

/// Do sentinels speak TLS?
enum class SentinelTls : std::uint8_t { same, on, off };

/// Whose place is taken?
enum class Compat : std::uint8_t { none, envoyproxy };

/// What POST /throttle answers a denial with.
enum class Throttle : std::uint8_t { off, ok, too_many };

/// How the log of denials shows keys.
enum class DenialKeys : std::uint8_t { plain, hashed, none };

/// One listener.
struct Listen {
  Address address;
  std::uint64_t max_connections = 0;  ///< 0: as many as all listeners together may have
  tls::ServerOptions tls;
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of the manual
struct Settings {
  Compat compat = Compat::none;
  Listen listen_grpc;
  Listen listen_http;
  Listen listen_resp;
  Listen listen_admin;
  std::string access_token_file;
  std::vector<std::string> listen_proxy_protocol;  ///< names of listeners behind balancers that speak it
  std::vector<std::string> policy;                 ///< files and directories
  bool policy_watch = true;
  std::string redis_url;  ///< empty: the state is in memory
  std::string redis_master;
  std::string redis_username;
  std::string redis_password;
  std::string redis_password_file;
  std::string redis_tls_ca;
  std::string redis_tls_cert;
  std::string redis_tls_key;
  std::string redis_tls_server_name;
  bool redis_tls_verify = true;
  bool redis_tls_verify_name = true;
  std::string redis_sentinel_username;
  std::string redis_sentinel_password;
  std::string redis_sentinel_password_file;
  SentinelTls redis_sentinel_tls = SentinelTls::same;
  std::string redis_sentinel_tls_ca;
  std::string redis_sentinel_tls_cert;
  std::string redis_sentinel_tls_key;
  std::string redis_sentinel_tls_server_name;
  bool redis_sentinel_tls_verify = true;
  bool redis_sentinel_tls_verify_name = true;
  std::uint64_t redis_cluster_groups = 0;  ///< 0: off
  bool redis_proxy = false;
  std::uint64_t redis_wait_replicas = 0;  ///< 0: none
  std::chrono::nanoseconds redis_wait_timeout{};
  std::chrono::nanoseconds redis_timeout{};
  std::string redis_prefix;
  std::uint64_t redis_failures = 0;
  std::chrono::nanoseconds redis_probe_interval{};
  std::chrono::nanoseconds redis_connection_max_age{};
  std::chrono::nanoseconds redis_denial_cache_max{};  ///< 0: no denial is remembered
  bool redis_literal_script = false;
  std::uint64_t memory_max_keys = 0;
  std::uint64_t threads = 0;  ///< 0: as many as the process may use cores
  std::uint64_t max_connections = 0;
  std::chrono::nanoseconds drain_timeout{};
  bool http_header_retry_after = false;
  bool http_header_rate_limit = false;
  bool http_header_x_rate_limit = false;
  bool http_headers_on_allowed = false;
  std::uint64_t http_deny_status = 0;
  std::uint64_t http_store_failure_status = 0;
  Throttle http_throttle = Throttle::off;
  std::chrono::nanoseconds http_max_hold{};
  std::chrono::nanoseconds http_idle_timeout{};
  bool grpc_header_retry_after = false;
  bool grpc_header_rate_limit = false;
  bool grpc_header_x_rate_limit = false;
  std::chrono::nanoseconds grpc_idle_timeout{};
  std::chrono::nanoseconds grpc_max_connection_age{};
  std::string resp_password;
  std::string resp_password_file;
  std::chrono::nanoseconds resp_idle_timeout{};  ///< 0: for ever
  std::vector<QueueSettings> queues;             ///< from the server file alone
  EnvoyOptions envoy;                            ///< with Compat::envoyproxy, from the environment alone
  /// With Compat::envoyproxy: these settings with the Redis that limits per second are kept in; null: in the same.
  std::shared_ptr<const Settings> per_second;
  log::Level log_level = log::Level::info;
  std::uint64_t log_denials = 0;  ///< one of so many is logged; 0: none
  DenialKeys log_denial_keys = DenialKeys::hashed;
  std::string tracing_endpoint;  ///< empty: no spans
  std::string tracing_ca;
  std::string tracing_service;
  double tracing_sample_ratio = 0;
  log::Format log_format = log::Format::text;
};

/// One row of the table.
struct Setting {
  std::string_view name;      ///< as in the file, levels joined by dots; the flag is --name
  std::string_view value;     ///< what the value looks like, for help
  std::string_view fallback;  ///< the default, as text; empty list or text when empty
  std::string_view help;      ///< one line
  bool is_list = false;       ///< a sequence in the file, comma-separated in the environment, a repeatable flag
  bool is_path = false;       ///< from the file: relative to the file's folder
  bool has_secret = false;    ///< a URL that may hold a password
  bool is_secret = false;     ///< never shown
  /// Stores values (one, unless is_list) or says what is wrong with them.
  std::optional<Error> (*set)(Settings& settings, std::span<const std::string> values) = nullptr;
};

/// Every setting of this version, in the order of the manual.
[[nodiscard]] std::span<const Setting> all_settings();
/// "store.redis.url" → "SLUICE_STORE_REDIS_URL".
[[nodiscard]] std::string environment_name(const Setting& setting);
/// The URL with its password replaced by "***".
[[nodiscard]] std::string without_password(std::string_view url);

}  // namespace sluice::config
