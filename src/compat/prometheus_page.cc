#include "compat/prometheus_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/text_format.h"

namespace sluice::compat {
namespace {

constexpr std::string_view kLimits = "ratelimit.service.rate_limit.";
constexpr std::array<std::string_view, 5> kKinds{"near_limit", "over_limit", "total_hits", "within_limit",
                                                 "shadow_mode"};

std::vector<std::string_view> levels_of(std::string_view name) {
  std::vector<std::string_view> levels;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t dot = std::min(name.find('.', begin), name.size());
    levels.push_back(name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return levels;
}

/// A letter, digit or `_` for each character; for one that is none of them, `_`.
std::string escape_name(std::string_view name) {
  std::string escaped;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) == 0x80U) continue;  // of a character that has begun
    const bool is_plain = byte < 0x80U && (std::isalnum(byte) != 0 || c == '_');
    escaped += is_plain ? c : '_';
  }
  if (escaped.empty() || std::isdigit(static_cast<unsigned char>(escaped.front())) != 0) escaped.insert(0, "_");
  return escaped;
}

/// `,name="value"` for each of EXTRA_TAGS. One that is named as a label of the mapping gets `exported_` before it, as
/// Prometheus does.
std::string labels_of(const std::vector<std::pair<std::string, std::string>>& tags) {
  constexpr std::array<std::string_view, 6> taken{"domain", "key1", "key2", "err_type", "grpc_method", "le"};
  std::map<std::string, std::string> labels;
  for (const auto& [name, value] : tags) {
    std::string label = escape_name(name);
    if (std::ranges::find(taken, label) != taken.end()) label.insert(0, "exported_");
    labels[std::move(label)] = value;
  }
  std::string text;
  for (const auto& [name, value] : labels) text += fmt::format(",{}=\"{}\"", name, metrics::escape_label(value));
  return text;
}

std::string labels_of(const std::vector<std::string_view>& levels) {
  std::string labels =
      fmt::format(R"(domain="{}",key1="{}")", metrics::escape_label(levels[0]), metrics::escape_label(levels[1]));
  if (levels.size() > 2) labels += fmt::format(",key2=\"{}\"", metrics::escape_label(levels[2]));
  return labels;
}

/// By family, and in it by labels: hits of levels that are folded away add up.
using Families = std::map<std::string, std::map<std::string, std::uint64_t>>;

void add_limit(std::string_view name, std::uint64_t value, Families& families) {
  const std::size_t dot = name.rfind('.');
  const std::string_view kind = name.substr(dot + 1);
  if (kind == "domain_not_found") {
    families[escape_name(fmt::format("{}{}", kLimits, name))][""] += value;
    return;
  }
  const auto levels = levels_of(name.substr(0, dot));
  if (levels.size() < 2) return;
  for (const std::string_view known : kKinds) {
    if (kind == known) families[fmt::format("ratelimit_service_rate_limit_{}", kind)][labels_of(levels)] += value;
  }
}

void add_times(const metrics::ServiceHits& service, bool milliseconds, std::string_view tags, std::string& out) {
  using metrics::ServiceHits;
  constexpr std::string_view name = "ratelimit_service_response_time_seconds";
  const std::string method = fmt::format("grpc_method=\"ShouldRateLimit\"{}", tags);
  constexpr std::array<double, 11> bounds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};
  const double scale = milliseconds ? 1 : 0.001;
  out += fmt::format("# TYPE {} histogram\n", name);
  for (const double bound : bounds) {
    std::uint64_t within = 0;
    for (std::size_t i = 0; i < ServiceHits::kBounds.size(); ++i) {
      if (static_cast<double>(ServiceHits::kBounds[i]) * scale <= bound * (1 + 1e-9)) within += service.took[i];
    }
    out += fmt::format("{}_bucket{{{},le=\"{}\"}} {}\n", name, method, bound, within);
  }
  out += fmt::format("{}_bucket{{{},le=\"+Inf\"}} {}\n", name, method, service.calls);
  out += fmt::format("{}_sum{{{}}} {}\n", name, method, static_cast<double>(service.milliseconds) * scale);
  out += fmt::format("{}_count{{{}}} {}\n", name, method, service.calls);
}

}  // namespace

std::string to_prometheus(const Statistics& statistics, const config::EnvoyOptions& options) {
  const std::string tags = labels_of(options.extra_tags);
  Families families;
  for (const Statistic& counter : statistics.counters) {
    const std::string_view name = counter.name;
    constexpr std::string_view errors = "ratelimit.service.call.should_rate_limit.";
    if (name.starts_with(kLimits)) {
      add_limit(name.substr(kLimits.size()), counter.value, families);
    } else if (name.starts_with(errors)) {
      families["ratelimit_service_should_rate_limit_error"]
              [fmt::format("err_type=\"{}\"", name.substr(errors.size()))] = counter.value;
    } else if (name == "ratelimit.service.config_load_success" || name == "ratelimit.service.config_load_error") {
      families[fmt::format("ratelimit_service_{}", name.substr(name.rfind('.') + 1))][""] = counter.value;
    } else if (name == "ratelimit_server.ShouldRateLimit.total_requests") {
      families["ratelimit_service_total_requests"]["grpc_method=\"ShouldRateLimit\""] = counter.value;
    } else if (name == "ratelimit.service.global_shadow_mode") {
      families["ratelimit_service_global_shadow_mode"][""] = counter.value;
    }
  }
  std::string out;
  for (const auto& [family, samples] : families) {
    out += fmt::format("# TYPE {} counter\n", family);
    for (const auto& [own, value] : samples) {
      const std::string labels = own.empty() && !tags.empty() ? tags.substr(1) : own + tags;
      out +=
          labels.empty() ? fmt::format("{} {}\n", family, value) : fmt::format("{}{{{}}} {}\n", family, labels, value);
    }
  }
  add_times(statistics.service, options.prometheus_milliseconds, tags, out);
  return out;
}

}  // namespace sluice::compat
