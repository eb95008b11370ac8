// Spans of decisions on their way to a collector, as the settings have it.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "config/settings.h"
#include "http_client/upstream.h"
#include "metrics/metrics.h"
#include "sluice/clock.h"
#include "tracing/exporter.h"
#include "tracing/tracer.h"

namespace sluice::server {

/// Nothing at all without tracing.endpoint. Used by the thread that owns it.
class SpanExport {
 public:
  /// Both must outlive it.
  SpanExport(const config::Settings& settings, const Clock& clock) : settings_(settings), clock_(clock) {}

  /// What is wrong with the settings; nothing: start() may be called.
  [[nodiscard]] std::optional<Error> prepare();
  /// Once prepared; null: no spans are wanted.
  [[nodiscard]] tracing::Tracer* tracer() const { return tracer_.get(); }
  /// Before the first span. Throws std::system_error when there can be no thread.
  void start(metrics::Registry& registry);
  /// After the last span: sends what is left, if that is soon done.
  void stop() { exporter_.reset(); }

 private:
  const config::Settings& settings_;
  const Clock& clock_;
  http_client::Upstream collector_;
  http_client::TrustPtr trust_;
  std::unique_ptr<tracing::Tracer> tracer_;
  std::unique_ptr<tracing::Exporter> exporter_;
};

}  // namespace sluice::server
