#include "limiter/redis_options.h"

namespace sluice::limiter {
namespace {

store::redis::TlsFiles files_of(const RedisTls& tls) {
  return {.ca = tls.ca,
          .cert = tls.cert,
          .key = tls.key,
          .server_name = tls.server_name,
          .verify = tls.verify,
          .verify_name = tls.verify_name};
}

store::redis::Access::SentinelTls mode_of(RedisSentinel::OverTls mode) {
  using Mode = store::redis::Access::SentinelTls;
  switch (mode) {
    case RedisSentinel::OverTls::on:
      return Mode::on;
    case RedisSentinel::OverTls::off:
      return Mode::off;
    case RedisSentinel::OverTls::same:
      break;
  }
  return Mode::same;
}

}  // namespace

store::redis::RedisOptions redis_options(const LimiterOptions& options) {
  store::redis::RedisOptions redis;
  redis.url = options.redis_url;
  redis.access = {.master = options.redis_master,
                  .user = options.redis_username,
                  .password = options.redis_password,
                  .password_file = options.redis_password_file,
                  .tls = files_of(options.redis_tls),
                  .sentinel_user = options.redis_sentinel.username,
                  .sentinel_password = options.redis_sentinel.password,
                  .sentinel_password_file = options.redis_sentinel.password_file,
                  .sentinel_tls = mode_of(options.redis_sentinel.over_tls),
                  .sentinel_tls_files = files_of(options.redis_sentinel.tls)};
  redis.cluster_groups = options.redis_cluster_groups;
  redis.proxy = options.redis_proxy;
  redis.wait_replicas = options.redis_wait_replicas;
  // Up to the next whole ms.
  redis.wait_timeout = std::chrono::ceil<std::chrono::milliseconds>(options.redis_wait_timeout);
  redis.prefix = options.redis_prefix;
  redis.timeout = options.redis_timeout;
  redis.failures = options.redis_failures;
  redis.probe_interval = options.redis_probe_interval;
  redis.connection_max_age = options.redis_connection_max_age;
  if (options.redis_script_style == RedisScriptStyle::literal) redis.script_style = store::redis::ScriptStyle::literal;
  return redis;
}

}  // namespace sluice::limiter
