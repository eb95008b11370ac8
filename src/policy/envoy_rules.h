// What changes in judging when the daemon stands in the place of envoyproxy/ratelimit.
#pragma once

#include "store/charge.h"

namespace sluice::policy {

/// Its settings that change decisions. The defaults are its own.
struct EnvoyRules {
  bool merge_domains = false;     ///< a domain may be spread over several files
  bool stops_when_over = false;   ///< of a request of which a part is over its limit, only that part is counted
  bool quota_mode = false;        ///< every limit has `quota_mode`
  bool shadow_mode = false;       ///< requests are always allowed; the verdicts of their parts are told as they are
  bool dynamic_metadata = false;  ///< answers tell the request and what `metadata` its limits have

  /// Is each descriptor counted whatever becomes of the others?
  [[nodiscard]] bool counts_each() const { return !stops_when_over; }
};

/// Makes a limit of its files (a fixed window aligned to the epoch) count denied charges, too: by itself with the
/// largest rate, judged by its threshold afterwards (compat::CountingStore), unless `stops_when_over`. Any other limit
/// stays as it is.
void count_as_envoy(store::CountedLimit& limit, const EnvoyRules& rules);

}  // namespace sluice::policy
