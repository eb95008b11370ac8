#include "config/envoy_listing.h"

#include <fmt/format.h>

#include <utility>

#include "base/duration.h"

namespace sluice::config {
namespace {

std::string join(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, value);
  return text;
}

}  // namespace

std::vector<ListedOption> list_options(const EnvoyOptions& options) {
  using Statistics = EnvoyOptions::Statistics;
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };
  std::vector<ListedOption> all{
      {"RUNTIME_ROOT", options.runtime_root},
      {"RUNTIME_SUBDIRECTORY", options.runtime_subdirectory},
      {"RUNTIME_APPDIRECTORY", options.runtime_app_directory},
      {"RUNTIME_IGNOREDOTFILES", truth(options.ignores_dot_files)},
      {"RUNTIME_WATCH_ROOT", truth(options.watches_root)},
      {"MERGE_DOMAIN_CONFIG", truth(options.merges_domains)},
      {"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", truth(options.needs_policy)},
      {"REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", truth(options.needs_store)},
      {"SHADOW_MODE", truth(options.shadow_mode)},
      {"QUOTA_MODE", truth(options.quota_mode)},
      {"RESPONSE_DYNAMIC_METADATA", truth(options.dynamic_metadata)},
      {"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", truth(options.stops_when_over)},
      {"NEAR_LIMIT_RATIO", fmt::format("{}", options.near_limit_ratio)},
      {"LIMIT_RESPONSE_HEADERS_ENABLED", truth(options.limit_headers)},
      {"LIMIT_LIMIT_HEADER", options.limit_header},
      {"LIMIT_REMAINING_HEADER", options.remaining_header},
      {"LIMIT_RESET_HEADER", options.reset_header},
      {"USE_STATSD", truth(options.statistics == Statistics::statsd)},
      {"USE_DOG_STATSD", truth(options.statistics == Statistics::dogstatsd)},
      {"USE_PROMETHEUS", truth(options.statistics == Statistics::prometheus)},
  };
  if (options.statistics == Statistics::none) return all;
  all.push_back({"EXTRA_TAGS", join(options.extra_tags)});
  if (options.statistics == Statistics::prometheus) {
    all.push_back({"PROMETHEUS_ADDR", options.prometheus_address});
    all.push_back({"PROMETHEUS_PATH", options.prometheus_path});
    all.push_back({"PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", truth(options.prometheus_milliseconds)});
    return all;
  }
  all.push_back({"STATSD_HOST", options.statsd_host});
  all.push_back({"STATSD_PORT", std::to_string(options.statsd_port)});
  all.push_back({"STATS_FLUSH_INTERVAL", sluice::to_text(options.flush_interval)});
  return all;
}

}  // namespace sluice::config
