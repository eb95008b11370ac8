// A ticket as Redis keeps it: one line that the script changes without reading it all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "queue/tickets.h"

namespace sluice::queue {

/// "f 0000000002 500 orders 1764540000000000 1764540000200000 17 answered 500": the first letter of its state, attempts
/// in ten digits, status in three or more, queue, when it was created and when it was expected to be worked off (µs
/// since 1970 UTC), place, and the reason, if there is one.
[[nodiscard]] std::string to_line(const Ticket& ticket);
/// What stands there for the status of a ticket that has not ended.
inline constexpr std::string_view kOpenStatus = "000";
/// The parts of a line that its end changes.
[[nodiscard]] std::string status_text(int status);
[[nodiscard]] std::string reason_text(std::string_view reason);
/// Nothing: it is none.
[[nodiscard]] std::optional<Ticket> parse_ticket(std::string_view line);

/// Each state has another letter.
[[nodiscard]] char letter_of(TicketState state);
[[nodiscard]] std::optional<TicketState> state_of(char letter);

}  // namespace sluice::queue
