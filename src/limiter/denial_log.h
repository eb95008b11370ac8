// A sample of what was denied, in the log: who was it?
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "policy/rule.h"
#include "sluice/decision.h"

namespace sluice::limiter {

/// One for the process. Thread-safe.
class DenialLog {
 public:
  /// How keys are shown: as they are, as a digest that only this process can make again, or not at all.
  enum class Keys : std::uint8_t { plain, hashed, none };
  /// Most lines a second, whatever the share.
  static constexpr std::int64_t kMostPerSecond = 100;

  /// Before any check. One of `every` denials of each thread is logged; 0: none.
  static void configure(std::uint64_t every, Keys keys);
  /// Is the next denial of this thread one to be logged? Cost while off: one load.
  [[nodiscard]] static bool wants() {
    const std::uint64_t every = every_.load(std::memory_order_relaxed);
    if (every == 0) return false;
    thread_local std::uint64_t seen = 0;
    return seen++ % every == 0;
  }
  /// A key as it is to be shown; empty: not at all.
  [[nodiscard]] static std::string shown(std::string_view key);
  static void write(const policy::Rule& rule, std::string_view key, std::uint64_t cost, const Decision& decision);

 private:
  static inline std::atomic<std::uint64_t> every_{0};
  static inline std::atomic<Keys> keys_{Keys::hashed};
};

}  // namespace sluice::limiter
