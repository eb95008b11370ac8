#include "queue/retry_pause.h"

#include <algorithm>

namespace sluice::queue {

using std::chrono::nanoseconds;

nanoseconds pause_after(const DrainerOptions& options, unsigned failures) {
  nanoseconds pause = options.first_pause;
  for (unsigned i = 1; i < failures && pause < options.longest_pause; ++i) pause *= 2;
  return std::min(pause, options.longest_pause);
}

std::optional<nanoseconds> pause_before_retry(const DrainerOptions& options, const FailedTry& failed) {
  if (failed.attempts >= options.attempts) return std::nullopt;
  const nanoseconds pause = pause_after(options, failed.attempts);
  nanoseconds most = kLongestAsked;
  if (options.longest_hold.count() > 0) {
    const nanoseconds patience = options.longest_hold - failed.held;
    if (pause > patience) return std::nullopt;
    most = std::min(most, patience);
  }
  // A tenth of the time is for the last try's turn.
  if (failed.left && *failed.left < kLongestAsked) most = std::min<nanoseconds>(most, *failed.left / 10 * 9);
  return std::max(pause, std::min(failed.asked, most));
}

}  // namespace sluice::queue
