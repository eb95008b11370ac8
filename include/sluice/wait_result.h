// How a wait ended.
#pragma once

#include <cstdint>

#include "sluice/decision.h"

namespace sluice {

/// How a wait or a reservation ended. All but `granted` took nothing (or gave it back).
enum class WaitOutcome : std::uint8_t {
  granted,   ///< its tokens are taken
  never,     ///< it can never be: a cost above `limit`, a rate of 0, or more than 36 600 days to wait
  deadline,  ///< its time would come after the deadline (a reservation: after more than `max_wait`)
  full,      ///< too many wait already: a leaky bucket's `queue`, or the bound of AsyncWaits
  stopped    ///< given up: a stop request, a cancellation, or the end of the AsyncWaits
};

/// What a wait answers. A value; trivially copyable.
struct WaitResult {
  WaitOutcome outcome = WaitOutcome::granted;  ///< how it ended
  /// Granted: the state after the charge, when it was granted. Else the answer to the same cost by try_acquire.
  Decision decision{};  // NOLINT(readability-redundant-member-init): as in Decision
  /// Granted: the instant it was granted for, on the clock of Time::steady, in ns. It is exact; the thread or handler
  /// comes as much later as the machine takes to wake it.
  std::int64_t ready_at = 0;

  /// Was it granted?
  [[nodiscard]] explicit operator bool() const noexcept { return outcome == WaitOutcome::granted; }
};

}  // namespace sluice
