#include "store/redis/target.h"

#include <utility>

namespace sluice::store::redis {

namespace {

bool names_any(const TlsFiles& files) {
  return !files.ca.empty() || !files.cert.empty() || !files.key.empty() || !files.server_name.empty() ||
         !files.verify || !files.verify_name;
}

}  // namespace

Result<Resolved> resolve_target(std::string_view url, const Access& options) {
  auto target = parse_url(url, options.master);
  if (!target) return target.error();
  if (!options.password.empty() && !options.password_file.empty()) {
    return Error{"Redis password: give the password or the file that holds it, not both"};
  }
  if (!options.sentinel_password.empty() && !options.sentinel_password_file.empty()) {
    return Error{"Redis sentinel's password: give the password or the file that holds it, not both"};
  }
  const bool in_options = !options.password.empty() || !options.password_file.empty();
  if (in_options && !target->password.empty()) {
    return Error{"Redis password: it is in the URL and beside it; leave one of them out"};
  }
  const bool has_password = in_options || !target->password.empty();
  if (!target->user.empty() && !has_password) {
    return Error{
        "Redis URL: what stands before '@' is a user without a password: write user:password or :password there, or "
        "give store.redis.password or .password_file"};
  }
  if (!options.user.empty() && !has_password) {
    return Error{"Redis user: a user needs a password: store.redis.password or .password_file"};
  }
  if (!options.user.empty() && !target->user.empty() && options.user != target->user) {
    return Error{"Redis user: another one is in the URL; leave one of them out"};
  }
  if (!target->tls && names_any(options.tls)) {
    return Error{"Redis TLS: the URL does not ask for TLS; write rediss:// (or rediss-sentinel://, rediss+cluster://)"};
  }
  const bool is_sentinel = target->topology == Topology::sentinel;
  const bool of_sentinel = !options.sentinel_user.empty() || !options.sentinel_password.empty() ||
                           !options.sentinel_password_file.empty() || names_any(options.sentinel_tls_files) ||
                           options.sentinel_tls != Access::SentinelTls::same;
  if (of_sentinel && !is_sentinel) return Error{"Redis sentinel: the URL names no sentinels"};
  if (!options.sentinel_user.empty() && options.sentinel_password.empty() && options.sentinel_password_file.empty()) {
    return Error{"Redis sentinel's user: a user needs a password"};
  }
  Resolved resolved;
  resolved.credentials = {.user = options.user.empty() ? target->user : options.user,
                          .password = options.password.empty() ? target->password : options.password,
                          .password_file = options.password_file};
  resolved.sentinel_credentials = {.user = options.sentinel_user,
                                   .password = options.sentinel_password,
                                   .password_file = options.sentinel_password_file};
  resolved.sentinel_over_tls = is_sentinel && (options.sentinel_tls == Access::SentinelTls::same
                                                   ? target->tls
                                                   : options.sentinel_tls == Access::SentinelTls::on);
  if (!resolved.sentinel_over_tls && names_any(options.sentinel_tls_files)) {
    return Error{"Redis sentinel's TLS: it is off, but files or names for it are given"};
  }
  resolved.sentinel_tls = options.tls;
  if (names_any(options.sentinel_tls_files)) {
    resolved.sentinel_tls = options.sentinel_tls_files;
    resolved.sentinel_tls.setting = "store.redis.sentinel.tls";
  }
  resolved.target = *std::move(target);
  return resolved;
}

}  // namespace sluice::store::redis
