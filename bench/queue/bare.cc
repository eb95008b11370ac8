#include "queue/bare.h"

#include <algorithm>

namespace sluice::bench {

Loop summary_of(std::vector<double> latencies, double seconds) {
  std::ranges::sort(latencies);
  const auto at = [&](double part) {
    return latencies.empty() ? 0
                             : latencies[static_cast<std::size_t>(part * static_cast<double>(latencies.size() - 1))];
  };
  return {.per_second = static_cast<double>(latencies.size()) / seconds, .p50_ms = at(0.5), .p99_ms = at(0.99)};
}

Loop publish_bare(const config::QueueSettings& settings, const Load& load, std::size_t in_flight) {
  const bool is_kafka = settings.kind == config::QueueSettings::Kind::kafka;
  return is_kafka ? publish_kafka(settings, load, in_flight) : publish_rabbit(settings, load, in_flight);
}

Loop consume_bare(const config::QueueSettings& settings, std::size_t count) {
  const bool is_kafka = settings.kind == config::QueueSettings::Kind::kafka;
  return is_kafka ? consume_kafka(settings, count) : consume_rabbit(settings, count);
}

}  // namespace sluice::bench
