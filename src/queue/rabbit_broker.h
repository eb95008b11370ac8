// Queues of RabbitMQ as one queue.
#pragma once

#include <memory>

#include "config/queue_settings.h"
#include "queue/broker.h"

namespace sluice::queue {

/// Starts to connect, and does not wait for that. Makes its queues: durable quorum queues "name.0", "name.1", …, over
/// which keys are spread, and one for dead letters. Messages are persistent, and confirmed by the server.
[[nodiscard]] std::unique_ptr<Broker> make_rabbit_broker(const config::QueueSettings& settings);

}  // namespace sluice::queue
