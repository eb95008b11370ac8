// A Kafka topic as a queue.
#pragma once

#include <memory>

#include "base/result.h"
#include "config/queue_settings.h"
#include "queue/broker.h"

namespace sluice::queue {

/// Starts to connect, and does not wait for that. The topic must be there. The error names what of the settings
/// librdkafka refuses.
///
/// Messages are produced idempotently with acks=all; equal `spread` goes to one partition. The length is what the
/// consumer group has yet to commit. One thread serves the producer, one asks for the length.
[[nodiscard]] Result<std::unique_ptr<Broker>> make_kafka_broker(const config::QueueSettings& settings);

}  // namespace sluice::queue
