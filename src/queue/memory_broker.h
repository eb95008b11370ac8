// A bounded queue in this process: what is in it ends with the process.
#pragma once

#include <cstddef>
#include <memory>

#include "queue/broker.h"

namespace sluice::queue {

/// Holds at most `most` messages, and as many dead letters, of which the oldest go.
[[nodiscard]] std::unique_ptr<Broker> make_memory_broker(std::size_t most);

}  // namespace sluice::queue
