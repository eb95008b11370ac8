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

namespace sluice::internal {

class SLUICE_API Guarded {
 public:
  struct Granted {
    std::uint64_t tokens = 0;
    Decision decision;
  };

  // Throws std::invalid_argument, naming each field and its range.
  explicit Guarded(const Limit& limit);
  ~Guarded();

  Decision try_acquire(std::uint64_t cost, Time now);
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const;
  Granted acquire_up_to(std::uint64_t most, Time now);
  Decision refund(std::uint64_t cost, Time now, std::optional<Time> charged);
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged);
  Decision penalize(std::uint64_t cost, Time now);
  // Throws std::invalid_argument and changes nothing when the numbers are out of range.
  Decision set_limit(const Limit& limit, Time now);
  Decision reset(Time now);

  // The present time of the clock that this limiter goes by; the other one is 0.
  [[nodiscard]] Time clock() const;

 private:
  struct State;
  template <typename Function>
  Decision change(Time now, Function function);

  std::unique_ptr<State> state_;
};

}  // namespace sluice::internal
