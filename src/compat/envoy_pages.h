// What the debug port and the metrics port of envoyproxy/ratelimit show.
#pragma once

#include <string>
#include <string_view>

#include "config/envoy_options.h"
#include "front/http/http_context.h"
#include "metrics/metrics.h"

namespace sluice::compat {

/// /, /stats, /rlconfig, and for its profiler's paths why there is none.
class DebugPages final : public http::ExtraPages {
 public:
  explicit DebugPages(const metrics::Registry& registry) : registry_(registry) {}
  [[nodiscard]] bool has(std::string_view path) const override;
  [[nodiscard]] std::string_view write(std::string_view path, const policy::Policy* policy,
                                       std::string& body) const override;

 private:
  const metrics::Registry& registry_;
};

/// PROMETHEUS_PATH.
class MetricsPages final : public http::ExtraPages {
 public:
  MetricsPages(const metrics::Registry& registry, const config::EnvoyOptions& options)
      : registry_(registry), options_(options) {}
  [[nodiscard]] bool has(std::string_view path) const override { return path == options_.prometheus_path; }
  [[nodiscard]] std::string_view write(std::string_view path, const policy::Policy* policy,
                                       std::string& body) const override;

 private:
  const metrics::Registry& registry_;
  const config::EnvoyOptions& options_;
};

/// One line a limit, in the order of the policy: domain.key[_value]…: unit=…
[[nodiscard]] std::string describe_limits(const policy::Policy* policy);

}  // namespace sluice::compat
