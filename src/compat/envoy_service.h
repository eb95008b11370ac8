// What a daemon shows in the place of envoyproxy/ratelimit: its headers, pages and statistics.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "compat/envoy_pages.h"
#include "compat/statsd_sink.h"
#include "config/address.h"
#include "config/envoy_options.h"
#include "front/headers.h"
#include "front/http/http_context.h"
#include "front/plain_headers.h"
#include "metrics/metrics.h"

namespace sluice::compat {

/// Outlives the sessions of the listeners that it is set up for. One thread only, but for the pages.
class EnvoyService {
 public:
  /// From now on the registry's shards count by limits.
  EnvoyService(const config::EnvoyOptions& options, metrics::Registry& registry);

  /// The fields of an answer, over gRPC as on /json.
  [[nodiscard]] front::HeaderOptions headers() const;
  /// What /healthcheck and the health checks over gRPC need. `is_store_up` is asked on any thread.
  [[nodiscard]] std::function<bool(const policy::Policy* policy)> health(std::function<bool()> is_store_up) const;
  /// `service` answers /json and /healthcheck, `admin` is the debug port, `metrics` that of USE_PROMETHEUS.
  void set_up(http::HttpContext& service, http::HttpContext& admin, http::HttpContext& metrics,
              const std::function<bool()>& is_store_up) const;
  /// Where the metrics are shown; nothing: nowhere.
  [[nodiscard]] const std::optional<config::Address>& metrics_address() const { return options_.metrics; }
  /// Begins to send statistics, if they are to be sent. `is_policy_loaded` is asked on another thread.
  void start(std::function<bool()> is_policy_loaded);
  void stop() { statsd_.reset(); }

 private:
  const config::EnvoyOptions& options_;
  metrics::Registry& registry_;
  DebugPages debug_pages_;
  MetricsPages metrics_pages_;
  front::PlainHeaderNames header_names_;
  std::unique_ptr<StatsdSink> statsd_;
};

}  // namespace sluice::compat
