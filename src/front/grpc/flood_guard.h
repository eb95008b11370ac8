// Bounds what a peer can make this end do without asking for a decision.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::front::grpc {

/// A budget of frames that are not calls. It comes back with time and, as calls bring such frames along (window
/// updates, keepalive pings), with each call answered. Not thread-safe.
class FloodGuard {
 public:
  struct Budget {
    std::int64_t most = 0;
    std::int64_t per_second = 0;
    std::int64_t per_call = 0;
  };

  FloodGuard(const Budget& budget, std::int64_t now) : budget_(budget), left_(budget.most), filled_(now) {}

  /// What this earns beyond the most is lost with the next take() only, as the frames that came with the call may be
  /// taken after it.
  void call_answered() { left_ += budget_.per_call; }
  /// Takes `frames` at `now` (ns on a steady clock); false: the budget is spent and the peer is to be dropped.
  [[nodiscard]] bool take(std::int64_t now, std::int64_t frames = 1) {
    left_ -= frames;
    if (left_ < 0) refill(now);
    const bool fits = left_ >= 0;
    left_ = std::clamp<std::int64_t>(left_, 0, budget_.most);
    return fits;
  }

 private:
  void refill(std::int64_t now) {
    constexpr std::int64_t second = 1'000'000'000;
    const std::int64_t frame = second / budget_.per_second;
    const std::int64_t earned = std::min((now - filled_) / frame, budget_.most);
    if (earned <= 0) return;
    left_ += earned;
    filled_ = now;
  }

  Budget budget_;
  std::int64_t left_;
  std::int64_t filled_;  ///< when time was last turned into budget
};

}  // namespace sluice::front::grpc
