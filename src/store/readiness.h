// Has the shared store ever answered? As all io threads together see it.
#pragma once

#include <atomic>

namespace sluice::store {

/// What the fallback stores of a process share. Thread-safe.
class Readiness {
 public:
  [[nodiscard]] bool has_answered() const { return answered_.load(std::memory_order_relaxed); }
  /// Cost once it has: a load.
  void set_answered() {
    if (!has_answered()) answered_.store(true, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> answered_{false};
};

}  // namespace sluice::store
