// Which header fields of a request are kept with it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "queue/message.h"

namespace sluice::queue {

/// Takes out what belongs to one connection (RFC 9110 section 7.6.1, and what `Connection` names), what the delivery
/// says itself (Host, Content-Length, Idempotency-Key, Sluice-…), and secrets (Authorization, Cookie and their kin) but
/// for those in `kept`, which are in lower case.
void drop_unstored(Pairs& headers, std::span<const std::string> kept);

/// Is it one of Sluice-…, by which a delivery tells of itself? For whoever takes '_' for '-', too; in any case.
[[nodiscard]] bool tells_of_delivery(std::string_view name);

}  // namespace sluice::queue
