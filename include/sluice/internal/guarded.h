// The one limiter behind FixedWindow, SlidingWindow and SlidingLog: a state under a mutex. Not for use outside of this
// library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/export.h"
#include "sluice/limit.h"
#include "sluice/verbs.h"

namespace sluice::internal {

class SLUICE_API Guarded {
 public:
  static constexpr bool kNeverThrows = false;
  static constexpr bool kHasWindows = true;

  // Throws std::invalid_argument, naming each field and its range.
  explicit Guarded(const Limit& limit);
  ~Guarded();

  Decision try_acquire(std::uint64_t cost, Time now);
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const;
  Granted acquire_up_to(std::uint64_t most, Time now);
  Decision refund(std::uint64_t cost, Time now, std::optional<Time> charged = std::nullopt);
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged = std::nullopt);
  Decision penalize(std::uint64_t cost, Time now);
  // Throws std::invalid_argument and changes nothing when the numbers are out of range.
  Decision set_limit(const Limit& limit, Time now);
  Decision reset(Time now);

  [[nodiscard]] static Time instant(Time now) noexcept { return now; }
  // The machine's time, of the clock that this limiter goes by; the other one is 0.
  [[nodiscard]] Time machine_now() const;

 private:
  struct SLUICE_HIDDEN State;
  template <typename Function>
  Decision change(Time now, Function function);

  std::unique_ptr<State> state_;
};

}  // namespace sluice::internal
