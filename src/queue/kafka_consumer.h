// Takes messages out of a Kafka topic as one of a consumer group.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "config/queue_settings.h"
#include "queue/broker.h"

namespace sluice::queue {

/// A thread of its own polls without end, so that the group never throws this consumer out, however slowly messages are
/// worked off: a partition of which too much is unfinished is paused. An offset is committed once all before it are
/// finished. When a partition goes to another consumer, what of it was begun may end first, for some seconds.
[[nodiscard]] Result<std::unique_ptr<Consumer>> make_kafka_consumer(const config::QueueSettings& settings,
                                                                    const ConsumerOptions& options);

}  // namespace sluice::queue
