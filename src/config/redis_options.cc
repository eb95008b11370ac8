#include "config/redis_options.h"

namespace sluice::config {

store::redis::RedisOptions redis_options(const Settings& settings, std::chrono::nanoseconds timeout) {
  using OverTls = store::redis::Access::SentinelTls;
  store::redis::RedisOptions options;
  options.url = settings.redis_url;
  options.access.master = settings.redis_master;
  options.access.user = settings.redis_username;
  options.access.password = settings.redis_password;
  options.access.password_file = settings.redis_password_file;
  options.access.tls = {.ca = settings.redis_tls_ca,
                        .cert = settings.redis_tls_cert,
                        .key = settings.redis_tls_key,
                        .server_name = settings.redis_tls_server_name,
                        .verify = settings.redis_tls_verify,
                        .verify_name = settings.redis_tls_verify_name};
  options.access.sentinel_user = settings.redis_sentinel_username;
  options.access.sentinel_password = settings.redis_sentinel_password;
  options.access.sentinel_password_file = settings.redis_sentinel_password_file;
  switch (settings.redis_sentinel_tls) {
    case SentinelTls::same:
      options.access.sentinel_tls = OverTls::same;
      break;
    case SentinelTls::on:
      options.access.sentinel_tls = OverTls::on;
      break;
    case SentinelTls::off:
      options.access.sentinel_tls = OverTls::off;
      break;
  }
  options.access.sentinel_tls_files = {.ca = settings.redis_sentinel_tls_ca,
                                       .cert = settings.redis_sentinel_tls_cert,
                                       .key = settings.redis_sentinel_tls_key,
                                       .server_name = settings.redis_sentinel_tls_server_name,
                                       .verify = settings.redis_sentinel_tls_verify,
                                       .verify_name = settings.redis_sentinel_tls_verify_name};
  options.prefix = settings.redis_prefix;
  options.timeout = timeout;
  options.failures = static_cast<unsigned>(settings.redis_failures);
  options.probe_interval = settings.redis_probe_interval;
  options.connection_max_age = settings.redis_connection_max_age;
  if (settings.redis_literal_script) options.script_style = store::redis::ScriptStyle::literal;
  options.cluster_groups = static_cast<std::uint32_t>(settings.redis_cluster_groups);
  options.proxy = settings.redis_proxy;
  options.wait_replicas = static_cast<unsigned>(settings.redis_wait_replicas);
  // Up to the next whole ms.
  options.wait_timeout = std::chrono::ceil<std::chrono::milliseconds>(settings.redis_wait_timeout);
  return options;
}

}  // namespace sluice::config
