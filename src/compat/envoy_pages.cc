#include "compat/envoy_pages.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "compat/prometheus_page.h"
#include "compat/statistics.h"
#include "policy/policy.h"

namespace sluice::compat {
namespace {

constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kIndex =
    "/debug/pprof/: profiles are not kept here: use perf\n"
    "/debug/pprof/profile: profiles are not kept here: use perf\n"
    "/debug/pprof/trace: traces are not kept here: use perf\n"
    "/healthcheck: 200 while this process can decide\n"
    "/metrics: counters of Sluice in the Prometheus text format\n"
    "/rlconfig: print out the currently loaded configuration for debugging\n"
    "/stats: print out stats\n";
constexpr std::array<std::string_view, 8> kUnits{"UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR", "WEEK"};

}  // namespace

bool DebugPages::has(std::string_view path) const {
  return path == "/" || path == "/stats" || path == "/rlconfig" || path.starts_with("/debug/pprof");
}

std::string_view DebugPages::write(std::string_view path, const policy::Policy* policy, std::string& body) const {
  if (path == "/stats") {
    body.clear();
    for (const Statistic& counter : read_statistics(registry_, policy != nullptr).counters) {
      body += fmt::format("{}: {}\n", counter.name, counter.value);
    }
  } else if (path == "/rlconfig") {
    body = describe_limits(policy);
  } else if (path == "/") {
    body = kIndex;
  } else {
    body = "profiles are not kept here: use perf\n";
  }
  return kText;
}

std::string_view MetricsPages::write(std::string_view /*path*/, const policy::Policy* policy, std::string& body) const {
  body = to_prometheus(read_statistics(registry_, policy != nullptr), options_);
  // Sluice's own, which have other names.
  body += registry_.expose(policy);
  return kMetricsText;
}

std::string describe_limits(const policy::Policy* policy) {
  std::string text;
  if (policy == nullptr) return text;
  for (const policy::Rule* rule : policy->rules()) {
    text +=
        fmt::format("{}.{}: unit={} requests_per_unit={}, shadow_mode: {}, quota_mode: {}\n", rule->domain,
                    rule->metric_path, kUnits[static_cast<std::size_t>(rule->unit)], rule->requests_per_unit,
                    rule->enforcement == store::Enforcement::shadow, rule->enforcement == store::Enforcement::quota);
  }
  return text;
}

}  // namespace sluice::compat
