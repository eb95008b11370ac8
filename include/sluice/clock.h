// Time as a value. It enters at the top of a floor and is handed down; nothing below reads a clock.
#pragma once

#include <cstdint>

#include "sluice/internal/export.h"

namespace sluice {

/// One instant on the two clocks a decision may need, in whole nanoseconds.
/// `steady` never steps: buckets, `first_hit` windows, leases. `utc` is the system's clock since 1970: windows aligned
/// to the epoch or to a calendar. Tests set both freely (most set both to the same number).
struct Time {
  std::int64_t steady = 0;  ///< ns since some fixed instant (the machine's: CLOCK_MONOTONIC)
  std::int64_t utc = 0;     ///< ns since 1970-01-01 UTC
};

/// Somebody who waits by a clock that stands still until it is moved, as clocks of tests do.
class SLUICE_API ClockListener {
 public:
  /// The clock was moved. Called by the thread that moved it, which holds locks of the clock: `now` may be called from
  /// here, `listen`, `unlisten` and what moves the clock may not.
  virtual void clock_moved() noexcept = 0;

 protected:
  ~ClockListener() = default;
};

/// Source of time. Thread-safe: `now` may be called from any thread.
///
/// A clock that goes by itself need define `now` only, and goes at about the machine's pace: whoever waits by it sleeps
/// for as long as is left by it, then reads it again. One that stands still until it is moved also defines the other
/// two, so that those who wait by it wake up when it is moved.
class SLUICE_API Clock {
 public:
  virtual ~Clock() = default;
  /// The present time by this clock.
  [[nodiscard]] virtual Time now() const = 0;

  /// True: this clock goes only when it is moved, and calls listener.clock_moved() after each move, until `unlisten`.
  [[nodiscard]] virtual bool listen(ClockListener& /*listener*/) const { return false; }
  /// Once it has returned, the listener is not called any more.
  virtual void unlisten(ClockListener& /*listener*/) const {}
};

/// The machine's clocks (CLOCK_MONOTONIC and CLOCK_REALTIME). Cost: two clock reads, about 50 ns.
class SLUICE_API SystemClock final : public Clock {
 public:
  /// Reads both clocks.
  [[nodiscard]] Time now() const override;
};

}  // namespace sluice
