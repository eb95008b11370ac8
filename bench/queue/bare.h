// What the queues are compared with: loops that publish with confirms and consume with acknowledgements, and do nothing
// else.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "config/queue_settings.h"

namespace sluice::bench {

/// What a loop found.
struct Loop {
  double per_second = 0;
  double p50_ms = 0;  ///< of a confirm; 0: it has none
  double p99_ms = 0;
};

/// The payloads and where each goes, made beforehand.
struct Load {
  std::vector<std::string> payloads;
  std::vector<std::string> keys;
};

/// Publishes all, at most `in_flight` unconfirmed, and waits for the last confirm. Topic or queues must be there.
/// Throws std::runtime_error when one is not confirmed.
[[nodiscard]] Loop publish_bare(const config::QueueSettings& settings, const Load& load, std::size_t in_flight);
/// Takes `count` messages and acknowledges each, by itself (RabbitMQ) or by storing its offset, which the library
/// commits twice a second (Kafka). The rate is that between the first and the last.
[[nodiscard]] Loop consume_bare(const config::QueueSettings& settings, std::size_t count);

/// The same for each kind of broker.
[[nodiscard]] Loop publish_kafka(const config::QueueSettings& settings, const Load& load, std::size_t in_flight);
[[nodiscard]] Loop consume_kafka(const config::QueueSettings& settings, std::size_t count);
[[nodiscard]] Loop publish_rabbit(const config::QueueSettings& settings, const Load& load, std::size_t in_flight);
[[nodiscard]] Loop consume_rabbit(const config::QueueSettings& settings, std::size_t count);

/// Of latencies in ms, for so many seconds.
[[nodiscard]] Loop summary_of(std::vector<double> latencies, double seconds);

}  // namespace sluice::bench
