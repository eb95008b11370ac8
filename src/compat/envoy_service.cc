#include "compat/envoy_service.h"

#include <utility>

#include "compat/statistics.h"
#include "policy/policy.h"

namespace sluice::compat {

using Kind = config::EnvoyOptions::Statistics;

EnvoyService::EnvoyService(const config::EnvoyOptions& options, metrics::Registry& registry)
    : options_(options),
      registry_(registry),
      debug_pages_(registry),
      metrics_pages_(registry, options),
      header_names_{
          .limit = options.limit_header, .remaining = options.remaining_header, .reset = options.reset_header} {
  registry.count_limit_stats(options.near_limit_ratio);
}

front::HeaderOptions EnvoyService::headers() const {
  front::HeaderOptions headers{.retry_after = false, .rate_limit = false, .x_rate_limit = false};
  if (options_.limit_headers) headers.plain = &header_names_;
  return headers;
}

std::function<bool(const policy::Policy* policy)> EnvoyService::health(std::function<bool()> is_store_up) const {
  return [needs_policy = options_.needs_policy, needs_store = options_.needs_store,
          is_store_up = std::move(is_store_up)](const policy::Policy* policy) {
    const bool has_policy = policy != nullptr && !policy->domain_names().empty();
    return (!needs_policy || has_policy) && (!needs_store || is_store_up());
  };
}

void EnvoyService::set_up(http::HttpContext& service, http::HttpContext& admin, http::HttpContext& metrics,
                          const std::function<bool()>& is_store_up) const {
  service.options.headers = headers();
  service.envoy = admin.envoy = http::EnvoyWays{.is_healthy = health(is_store_up)};
  admin.pages = &debug_pages_;
  metrics.pages = &metrics_pages_;
}

void EnvoyService::start(std::function<bool()> is_policy_loaded) {
  if (options_.statistics != Kind::statsd && options_.statistics != Kind::dogstatsd) return;
  statsd_ = std::make_unique<StatsdSink>(options_, [this, is_policy_loaded = std::move(is_policy_loaded)] {
    return read_statistics(registry_, is_policy_loaded());
  });
}

}  // namespace sluice::compat
