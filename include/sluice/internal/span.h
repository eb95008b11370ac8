// Times around an instant. Not for use outside of this library.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::internal {

// What lies outside is over, whether the clock has gone on or, after a time that was far ahead, come back.
struct Span {
  std::int64_t from = 0;
  std::uint64_t length = 0;

  [[nodiscard]] static Span around(std::int64_t instant, std::int64_t ns) noexcept {
    const auto half = static_cast<std::uint64_t>(ns);
    return {static_cast<std::int64_t>(static_cast<std::uint64_t>(instant) - half), 2 * half};
  }
  [[nodiscard]] bool holds(std::int64_t now) const noexcept {
    return static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(from) < length;
  }
};

// One that is read while it is written: what is read may be of both. For a hint only.
class SharedSpan {
 public:
  void store(const Span& span) noexcept {
    from_.store(span.from, std::memory_order_relaxed);
    length_.store(span.length, std::memory_order_relaxed);
  }
  [[nodiscard]] Span load() const noexcept {
    return {from_.load(std::memory_order_relaxed), length_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::int64_t> from_{0};
  std::atomic<std::uint64_t> length_{0};
};

}  // namespace sluice::internal
