// What a store is asked to count.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/limit.h"

namespace sluice::store {

/// What a store worked out of a limit's numbers. Shared; thread-safe.
class Derived {
 public:
  Derived(const Derived&) = delete;
  Derived& operator=(const Derived&) = delete;
  /// One who shared it does so no longer.
  virtual void release() const noexcept = 0;

 protected:
  Derived() = default;
  ~Derived() = default;
};

/// The place beside a limit where the memory store keeps what it derived, so that no call has to look it up. A copy is
/// empty: it is filled again on first use. Thread-safe but for assignment.
class DerivedSlot {
 public:
  DerivedSlot() = default;
  DerivedSlot(const DerivedSlot& /*other*/) noexcept {}
  DerivedSlot& operator=(const DerivedSlot& other) noexcept {
    if (this != &other) clear();
    return *this;
  }
  ~DerivedSlot() { clear(); }

  [[nodiscard]] const Derived* get() const { return derived_.load(std::memory_order_acquire); }
  /// Takes over one share of `derived`; if another thread was first, releases it. Returns what the slot holds.
  const Derived* fill(const Derived* derived) const {
    const Derived* before = nullptr;
    if (derived_.compare_exchange_strong(before, derived, std::memory_order_acq_rel)) return derived;
    derived->release();
    return before;
  }

 private:
  void clear() {
    if (const Derived* derived = derived_.exchange(nullptr, std::memory_order_acq_rel)) derived->release();
  }
  mutable std::atomic<const Derived*> derived_{nullptr};
};

/// Of limits that the store judges itself.
inline constexpr std::uint64_t kNoThreshold = UINT64_MAX;

/// A limit with an identity: what all its keys have in common. Immutable once made; a policy snapshot owns it.
struct CountedLimit {
  Limit numbers;
  /// Domain and path in the policy, as printable text without spaces or braces; unique in the process for one limit,
  /// and the same after a reload that changed only numbers, so that the state is kept.
  std::string identity;
  /// Small number that stands for `identity` for the life of the process (see limit_ids.h).
  std::uint32_t id = 0;
  OnStoreFailure on_store_failure = OnStoreFailure::local;
  /// Of a limit that stores only count (its rate is then the largest): what its charges are judged by afterwards.
  std::uint64_t threshold = kNoThreshold;
  /// Of a counter that goes with that of a limit per second, such as a ban's: both are in one place.
  bool goes_with_seconds = false;
  /// Filled by the store; holds for the numbers at first use, so don't change them after it.
  DerivedSlot derived{};  // NOLINT(readability-redundant-member-init): gcc warns of initializers that leave it out
};

/// Is it of those that envoyproxy/ratelimit may keep in a Redis of their own?
[[nodiscard]] inline bool is_of_seconds(const CountedLimit& limit) {
  const Limit& numbers = limit.numbers;
  return limit.goes_with_seconds || (numbers.algorithm == Algorithm::fixed_window && numbers.align == Align::epoch &&
                                     numbers.period == std::chrono::seconds(1));
}

/// How a charge that does not fit acts on its request.
enum class Enforcement : std::uint8_t {
  enforce,  ///< denies the request
  shadow,   ///< never denies; it is charged when it fits and the request is allowed
  quota,    ///< denies only when every quota charge of the request does not fit
};

/// A cost that fits no limit, as no limit can have more than kMaxTokens. What the costs of one key in one request add
/// up to is at most this.
inline constexpr std::uint64_t kNeverFits = kMaxTokens + 1;

/// One (limit, key, cost). `limit` and `key` must outlive the call to the store and, when it is pending, its
/// completion.
struct Charge {
  const CountedLimit* limit = nullptr;
  /// The descriptor's values, encoded by policy/key_encoding: printable, no spaces; the first value stands before the
  /// first '|'. At most 200 bytes. (The memory store takes any bytes.)
  std::string_view key{};  // NOLINT(readability-redundant-member-init): as above
  std::uint64_t cost = 1;  ///< 0 … kNeverFits
  Enforcement enforcement = Enforcement::enforce;
};

}  // namespace sluice::store
