// Whether, and in whose company, a request that was denied may wait.
#pragma once

#include <cstddef>
#include <string>

#include "limiter/call.h"
#include "policy/rule.h"
#include "queue/message.h"

namespace sluice::queue {

/// The limit with whose queue the request may wait: all that deny it must let it. Null: it may not.
[[nodiscard]] const policy::Rule* overflow_of(const limiter::Answer& answer);

/// With whom the request shares the rate fairly: those of its key, or else others that are over what descriptor number
/// `descriptor` names.
[[nodiscard]] std::string group_of(const Message& message, std::size_t descriptor);

}  // namespace sluice::queue
