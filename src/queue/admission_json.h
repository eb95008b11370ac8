// JSON of a request that waits.
#pragma once

#include <string>

#include "queue/desk.h"

namespace sluice::queue {

/// Its ticket, place and expected time, in seconds to the millisecond, rounded up. Precondition: it is stored.
void encode_admission(const Admission& admission, std::string& out);

}  // namespace sluice::queue
