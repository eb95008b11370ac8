#include "server/span_export.h"

#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace sluice::server {
namespace {

constexpr std::string_view kVersion = SLUICE_VERSION;

/// What tells this process from others of the same service.
std::string instance_name() {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  return std::string(host.data()) + ":" + std::to_string(::getpid());
}

}  // namespace

std::optional<Error> SpanExport::prepare() {
  if (settings_.tracing_endpoint.empty()) {
    if (!settings_.tracing_ca.empty()) return Error{"tracing.ca: does nothing without tracing.endpoint: set that, too"};
    return std::nullopt;
  }
  auto collector = http_client::parse_upstream(settings_.tracing_endpoint);
  if (!collector) return Error{"tracing.endpoint: " + collector.error().message};
  if (collector->is_over_tls) {
    auto trust = http_client::make_trust(settings_.tracing_ca);
    if (!trust) return Error{"tracing.ca: " + trust.error().message};
    trust_ = *std::move(trust);
  } else if (!settings_.tracing_ca.empty()) {
    return Error{"tracing.ca: only for a tracing.endpoint of https://…"};
  }
  collector_ = *std::move(collector);
  tracer_ = std::make_unique<tracing::Tracer>(settings_.tracing_sample_ratio, clock_);
  return std::nullopt;
}

void SpanExport::start(metrics::Registry& registry) {
  if (tracer_ == nullptr) return;
  tracing::Sender sender{
      .service = settings_.tracing_service, .version = std::string(kVersion), .instance = instance_name()};
  exporter_ =
      std::make_unique<tracing::Exporter>(*tracer_, collector_, trust_, std::move(sender), registry.add_shard());
  log::info("spans go to " + settings_.tracing_endpoint);
}

}  // namespace sluice::server
