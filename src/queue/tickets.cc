#include "queue/tickets.h"

#include <algorithm>
#include <array>

namespace sluice::queue {
namespace {

constexpr std::array<std::string_view, 6> kStates{"queued", "running", "done", "failed", "expired", "cancelled"};

}  // namespace

std::optional<std::chrono::milliseconds> life_of_ended(std::int64_t expires_us, std::int64_t now_us) {
  // It was to live for kTicketAfterlife from expires_us on.
  const std::chrono::microseconds longer(expires_us - now_us);
  if (expires_us != 0 && longer.count() >= 0 && longer <= kTicketAfterlife) return std::nullopt;
  return kTicketAfterlife;
}

std::string_view to_text(TicketState state) { return kStates[static_cast<std::size_t>(state)]; }

std::optional<TicketState> ticket_state(std::string_view text) {
  const auto* const found = std::ranges::find(kStates, text);
  if (found == kStates.end()) return std::nullopt;
  return static_cast<TicketState>(found - kStates.begin());
}

}  // namespace sluice::queue
