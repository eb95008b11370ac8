#include "config/otel_environment.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sluice::config {
namespace {

constexpr std::array<std::string_view, 8> kUsed{"TRACING_ENABLED",
                                                "TRACING_EXPORTER_PROTOCOL",
                                                "TRACING_SERVICE_NAME",
                                                "TRACING_SAMPLING_RATE",
                                                "OTEL_EXPORTER_OTLP_ENDPOINT",
                                                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                                "OTEL_EXPORTER_OTLP_CERTIFICATE",
                                                "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE"};

}  // namespace

OtelEnvironment read_otel_environment(EnvironmentReader& reader, std::span<const std::string> environment) {
  OtelEnvironment read;
  // One line for all that are set, in the order of their names.
  const auto ignore = [&](const auto& is_idle, const std::string& why) {
    std::vector<std::string> names;
    for (const std::string& line : environment) {
      std::string name = line.substr(0, line.find('='));
      const bool is_of_tracing = name.starts_with("TRACING_") || name.starts_with("OTEL_");
      if (is_of_tracing && is_idle(name) && reader.has(name)) names.push_back(std::move(name));
    }
    if (names.empty()) return;
    std::ranges::sort(names);
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    read.warnings.push_back(all + (names.size() == 1 ? " has" : " have") + " no effect: " + why);
  };
  if (!reader.truth("TRACING_ENABLED")) {
    ignore([](std::string_view name) { return name != "TRACING_ENABLED"; }, "TRACING_ENABLED is not true");
    return read;
  }
  const std::string protocol = reader.text("TRACING_EXPORTER_PROTOCOL", "http");
  if (protocol != "http") {
    if (protocol != "grpc") reader.fail("TRACING_EXPORTER_PROTOCOL", "http or grpc");
    ignore([](std::string_view /*name*/) { return true; },
           "spans are sent by OTLP over HTTP alone (TRACING_EXPORTER_PROTOCOL=http, mostly to port 4318)");
    return read;
  }
  // What is not set is so because there is to be tracing.
  const auto say = [&](const char* setting, std::string value, const char* variable) {
    read.values.push_back({setting, std::move(value), reader.has(variable) ? variable : "TRACING_ENABLED"});
  };
  const auto first_of = [&](const char* one, const char* other) { return reader.has(one) ? one : other; };
  const char* const names_endpoint = first_of("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
  std::string endpoint = reader.text(names_endpoint, "https://localhost:4318");
  // Of spans alone it is told with the path, which is put behind an endpoint here.
  constexpr std::string_view path = "/v1/traces";
  if (endpoint.ends_with(path)) endpoint.resize(endpoint.size() - path.size());
  say("tracing.endpoint", std::move(endpoint), names_endpoint);
  const char* const names_ca = first_of("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE");
  if (reader.has(names_ca)) say("tracing.ca", reader.text(names_ca), names_ca);
  say("tracing.sample_ratio", reader.text("TRACING_SAMPLING_RATE", "1"), "TRACING_SAMPLING_RATE");
  say("tracing.service", reader.text("TRACING_SERVICE_NAME", "RateLimit"), "TRACING_SERVICE_NAME");
  ignore([](std::string_view name) { return std::ranges::find(kUsed, name) == kUsed.end(); },
         "spans tell of no more than tracing.endpoint, .ca, .sample_ratio and .service here");
  return read;
}

}  // namespace sluice::config
