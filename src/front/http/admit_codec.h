// JSON of requests that may wait: POST /v1/admit, tickets and queues. See docs/overflow.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "front/http/check_codec.h"
#include "front/http/request_batch.h"
#include "queue/desk.h"
#include "queue/message.h"
#include "queue/tickets.h"

namespace sluice::http {

/// Decodes a check (one, no array) that has the request itself beside it: key, method, path, headers, and one of body,
/// body_base64 and body_reference. `batch` holds the check; `message` all but ticket, times and group.
[[nodiscard]] bool decode_admit(std::string_view text, RequestBatch& batch, queue::Message& message,
                                DecodeFault& fault);

void encode_ticket(std::string_view id, const queue::Ticket& ticket, std::int64_t now_us, std::string& out);
void encode_queues(std::span<const queue::QueueFigures> queues, std::string& out);

}  // namespace sluice::http
