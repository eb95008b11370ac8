// The verbs of the limiters for one key: the same for all of them, so told once.
#pragma once

#include <cstdint>
#include <optional>

#include "sluice/clock.h"
#include "sluice/decision.h"

namespace sluice {

/// How many tokens acquire_up_to took, and the state after that.
struct Granted {
  std::uint64_t tokens = 0;  ///< how many were taken
  Decision decision;         ///< the state after that
};

/// What TokenBucket, LeakyBucket, FixedWindow, SlidingWindow and SlidingLog can do. Base of these; not for use by
/// itself.
///
/// Each verb comes twice: with the present time `now`, which reads no clock, and without, by the limiter's own. Costs
/// are 0 … 10^15 tokens; a larger one, like any above `limit`, can never fit. The verbs throw nothing but as said (the
/// first charge of a sliding window and a charge to a sliding log may fail to allocate), and may be called from any
/// thread.
template <typename Core, bool kGivesBack = true>
class Verbs {
 public:
  Verbs(const Verbs&) = delete;
  Verbs& operator=(const Verbs&) = delete;

  /// Takes `cost` tokens if there are as many; else takes nothing and says when there will be. Cost 0 asks only.
  Decision try_acquire(std::uint64_t cost, Time now) noexcept(kSafe) { return core_.try_acquire(cost, at(now)); }
  /// The same, at the present time.
  Decision try_acquire(std::uint64_t cost = 1) noexcept(kSafe) { return core_.try_acquire(cost, at()); }

  /// What try_acquire would answer; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const noexcept(kSafe) { return core_.peek(cost, at(now)); }
  /// The same, at the present time.
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const noexcept(kSafe) { return core_.peek(cost, at()); }

  /// Takes as many tokens as there are, at most `most`. Not for leaky buckets.
  Granted acquire_up_to(std::uint64_t most, Time now) noexcept(kSafe)
    requires kGivesBack
  {
    return core_.acquire_up_to(most, at(now));
  }
  /// The same, at the present time.
  Granted acquire_up_to(std::uint64_t most) noexcept(kSafe)
    requires kGivesBack
  {
    return core_.acquire_up_to(most, at());
  }

  // The verbs below answer what try_acquire(0) then says.

  /// Gives tokens back: a bucket's never above full, a debt first; a window's or log's newest first, never below 0
  /// taken. Not for leaky buckets: a slot given away could be given twice.
  Decision refund(std::uint64_t cost, Time now) noexcept(kSafe)
    requires kGivesBack
  {
    return core_.refund(cost, at(now));
  }
  /// The same, at the present time.
  Decision refund(std::uint64_t cost) noexcept(kSafe)
    requires kGivesBack
  {
    return core_.refund(cost, at());
  }
  /// With the time `charged` of the charge (windows and log): nothing once that charge no longer counts.
  Decision refund(std::uint64_t cost, Time now, std::optional<Time> charged) noexcept(kSafe)
    requires(Core::kHasWindows)
  {
    return core_.refund(cost, at(now), charged);
  }

  /// For a cost known only afterwards: charges actual − reserved now, at most 10^15 tokens into debt (requests are then
  /// denied until it is paid) or above a window's rate, or refunds the difference (a leaky bucket: gives nothing back).
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now) noexcept(kSafe) {
    return core_.settle(reserved, actual, at(now));
  }
  /// The same, at the present time.
  Decision settle(std::uint64_t reserved, std::uint64_t actual) noexcept(kSafe) {
    return core_.settle(reserved, actual, at());
  }
  /// With the time `charged` of the charge (windows and log): a refund does nothing once that charge no longer counts.
  Decision settle(std::uint64_t reserved, std::uint64_t actual, Time now, std::optional<Time> charged) noexcept(kSafe)
    requires(Core::kHasWindows)
  {
    return core_.settle(reserved, actual, at(now), charged);
  }

  /// Takes without asking: into a debt at most `limit` deep, of a window or log at most to twice the rate.
  Decision penalize(std::uint64_t cost, Time now) noexcept(kSafe) { return core_.penalize(cost, at(now)); }
  /// The same, at the present time.
  Decision penalize(std::uint64_t cost) noexcept(kSafe) { return core_.penalize(cost, at()); }

  /// As never used.
  Decision reset(Time now) noexcept(kSafe) { return core_.reset(at(now)); }
  /// The same, at the present time.
  Decision reset() noexcept(kSafe) { return core_.reset(at()); }

 protected:
  /// Do the verbs throw nothing at all?
  static constexpr bool kSafe = Core::kNeverThrows;

  /// `clock` as of the limiter's constructor; the rest is for the core.
  template <typename... Arguments>
  explicit Verbs(const Clock* clock, const Arguments&... arguments) : clock_(clock), core_(arguments...) {}
  ~Verbs() = default;

  /// `now` as the core goes by it.
  [[nodiscard]] static auto at(Time now) noexcept { return Core::instant(now); }
  /// The present time as the core goes by it.
  [[nodiscard]] auto at() const noexcept(kSafe) {
    return clock_ != nullptr ? Core::instant(clock_->now()) : core_.machine_now();
  }

  const Clock* clock_;  ///< null: the machine's
  Core core_;           ///< state and algorithm
};

}  // namespace sluice
