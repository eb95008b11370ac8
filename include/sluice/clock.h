// Time as a value. It enters at the top of a floor and is handed down; nothing below reads a clock.
#pragma once

#include <cstdint>

#include "sluice/internal/export.h"

namespace sluice {

/// One instant on the two clocks a decision may need, in whole nanoseconds.
/// `steady` never steps: buckets, `first_hit` windows, leases. `utc` is the system's clock since 1970: windows aligned
/// to the epoch or to a calendar. Tests set both freely (most set both to the same number).
struct Time {
  std::int64_t steady = 0;
  std::int64_t utc = 0;
};

/// Source of time. Thread-safe: `now` may be called from any thread.
class SLUICE_API Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const = 0;
};

/// The machine's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME). Cost: two clock reads, about 50 ns.
class SLUICE_API SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override;
};

}  // namespace sluice
