#include "compat/statistics.h"

#include <algorithm>

namespace sluice::compat {

Statistics read_statistics(const metrics::Registry& registry, bool is_policy_loaded) {
  using metrics::Counter;
  const metrics::LimitStats::Sums sums = registry.limit_stats();
  Statistics all;
  const auto add = [&all](std::string name, std::uint64_t value) {
    all.counters.push_back({.name = std::move(name), .value = value});
  };
  const std::string limits = "ratelimit.service.rate_limit.";
  for (const auto& [name, hits] : sums.limits) {
    add(limits + name + ".total_hits", hits.total);
    add(limits + name + ".over_limit", hits.over);
    add(limits + name + ".near_limit", hits.near);
    add(limits + name + ".over_limit_with_local_cache", 0);
    add(limits + name + ".within_limit", hits.within);
    add(limits + name + ".shadow_mode", hits.shadow);
  }
  for (const auto& [domain, count] : sums.unknown_domains) add(limits + domain + ".domain_not_found", count);
  add("ratelimit.service.call.should_rate_limit.redis_error", registry.total(Counter::fallback_local) +
                                                                  registry.total(Counter::fallback_allow) +
                                                                  registry.total(Counter::fallback_deny));
  add("ratelimit.service.call.should_rate_limit.service_error", sums.service.service_errors);
  add("ratelimit.service.config_load_success", registry.total(Counter::policy_reloads) + (is_policy_loaded ? 1 : 0));
  add("ratelimit.service.config_load_error", registry.total(Counter::policy_reloads_refused));
  add("ratelimit.service.global_shadow_mode", sums.service.shadowed);
  add("ratelimit_server.ShouldRateLimit.total_requests", sums.service.calls);
  std::ranges::sort(all.counters, {}, &Statistic::name);
  all.service = sums.service;
  return all;
}

}  // namespace sluice::compat
