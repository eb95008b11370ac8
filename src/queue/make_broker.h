// The broker that a queue's settings name.
#pragma once

#include <memory>

#include "base/result.h"
#include "config/queue_settings.h"
#include "queue/broker.h"

namespace sluice::queue {

/// Starts to connect, and does not wait for that. The error says what is wrong with the settings, or that this build
/// has no such broker.
[[nodiscard]] Result<std::unique_ptr<Broker>> make_broker(const config::QueueSettings& settings);

}  // namespace sluice::queue
