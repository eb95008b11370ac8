// Does the shared store answer? As all io threads together see it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "sluice/clock.h"
#include "store/failure.h"

namespace sluice::store {

/// What the fallback stores of a process share. Logs each change, once. Thread-safe.
class StoreHealth {
 public:
  /// Has the store ever answered?
  [[nodiscard]] bool has_answered() const { return answered_.load(std::memory_order_relaxed); }
  void set_answered() { answered_.store(true, std::memory_order_relaxed); }
  /// A request was answered (none), or not. Cost while all is well: two loads.
  void note(Failure failure, Time now) {
    if (failure != Failure::none) {
      failed(failure, now);
    } else if (!has_answered() || failing_.load(std::memory_order_relaxed)) {
      succeeded(now);
    }
  }

 private:
  void failed(Failure failure, Time now);
  void succeeded(Time now);

  std::atomic<bool> answered_{false};
  std::atomic<bool> failing_{false};
  std::atomic<std::uint64_t> rescued_{0};  ///< requests that failed since it does
  std::mutex mutex_;                       ///< for changes of failing_
  std::int64_t failing_since_ = 0;         ///< steady ns
};

}  // namespace sluice::store
