// How long a failed delivery waits until it is tried again.
#pragma once

#include <chrono>
#include <optional>

#include "queue/drainer.h"

namespace sluice::queue {

/// That a receiver's wish is obeyed, at most.
inline constexpr std::chrono::seconds kLongestAsked = std::chrono::hours(1);

/// What is known of it when it has failed.
struct FailedTry {
  unsigned attempts = 1;             ///< that it has had
  std::chrono::nanoseconds asked{};  ///< the receiver wants no other try before; 0: it does not say
  std::chrono::nanoseconds held{};   ///< since its first try
  /// Until it expires; nothing: it does not.
  // NOLINTNEXTLINE(readability-redundant-member-init): gcc warns of initializers that leave it out
  std::optional<std::chrono::microseconds> left{};
};

/// The drainer's pause, doubled each time, after `failures` in a row; from 1.
[[nodiscard]] std::chrono::nanoseconds pause_after(const DrainerOptions& options, unsigned failures);

/// That pause, or longer when the receiver asks for it: as long as a last try still comes
/// before the message expires or the broker loses patience. Nothing: it has been tried for long enough.
[[nodiscard]] std::optional<std::chrono::nanoseconds> pause_before_retry(const DrainerOptions& options,
                                                                         const FailedTry& failed);

}  // namespace sluice::queue
