// A lock of one word, for sections of some ten nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace sluice::store::memory {

/// Not recursive, not fair. A waiter spins a little and then yields, as the holder may have lost its CPU. Satisfies
/// Lockable.
class SpinLock {
 public:
  void lock() {
    if (!try_lock()) wait();
  }
  [[nodiscard]] bool try_lock() { return word_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { word_.store(0, std::memory_order_release); }

 private:
  void wait() {
    constexpr int kSpins = 64;
    for (int spins = 0;; ++spins) {
      if (word_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
      if (spins < kSpins) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace sluice::store::memory
