// The limiter behind WarmUp: a token bucket whose rate rises, under a mutex. Not for use outside of this library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/counter_clock.h"
#include "sluice/internal/export.h"
#include "sluice/verbs.h"

namespace sluice::internal {

class SLUICE_API WarmingBucket {
 public:
  struct Numbers {
    std::uint64_t rate = 0;
    std::chrono::nanoseconds period{0};
    std::uint64_t burst = 0;
    std::chrono::nanoseconds warm_up{0};
    std::chrono::nanoseconds cool_down{0};
    std::uint64_t cold_factor = 0;
    friend bool operator==(const Numbers&, const Numbers&) = default;
  };
  static constexpr bool kNeverThrows = true;
  static constexpr bool kHasWindows = false;

  // Throws std::invalid_argument, naming each field and its range.
  explicit WarmingBucket(const Numbers& numbers);
  ~WarmingBucket();

  [[nodiscard]] static std::int64_t instant(Time now) noexcept { return now.steady; }
  [[nodiscard]] static std::int64_t machine_now() noexcept { return steady_now(); }

  Decision try_acquire(std::uint64_t cost, std::int64_t now) noexcept;
  [[nodiscard]] Decision peek(std::uint64_t cost, std::int64_t now) const noexcept;
  Granted acquire_up_to(std::uint64_t most, std::int64_t now) noexcept;
  Decision refund(std::uint64_t cost, std::int64_t now) noexcept;
  Decision settle(std::uint64_t reserved, std::uint64_t actual, std::int64_t now) noexcept;
  Decision penalize(std::uint64_t cost, std::int64_t now) noexcept;
  Decision reset(std::int64_t now) noexcept;
  // Throws std::invalid_argument and changes nothing when the numbers are out of range.
  Decision set_limit(const Numbers& numbers, std::int64_t now);

 private:
  struct SLUICE_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::internal
