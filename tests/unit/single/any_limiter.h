// A limiter of any algorithm, of those that include/sluice gives a program, behind one interface: for laws that hold
// for all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sluice/concurrency.h"
#include "sluice/fixed_window.h"
#include "sluice/leaky_bucket.h"
#include "sluice/limit.h"
#include "sluice/sliding_log.h"
#include "sluice/sliding_window.h"
#include "sluice/token_bucket.h"
#include "tests/numbers_of.h"

namespace sluice {

/// Verbs that an algorithm doesn't have change nothing. Leases stay held.
class AnyLimiter {
 public:
  virtual ~AnyLimiter() = default;
  virtual Decision check(std::uint64_t cost, Time now) = 0;
  [[nodiscard]] virtual Decision peek(std::uint64_t cost, Time now) const = 0;
  virtual std::uint64_t acquire_up_to(std::uint64_t most, Time now) = 0;
  virtual void refund(std::uint64_t cost, Time now, std::optional<Time> charged) = 0;
  virtual void settle(std::uint64_t reserved, std::uint64_t actual, Time now) = 0;
  virtual void penalize(std::uint64_t cost, Time now) = 0;
  /// Concurrency: gives back the lease that was given last, and is still held.
  virtual void release(Time now) = 0;
  virtual void set_limit(const Limit& limit, Time now) = 0;
  virtual void reset(Time now) = 0;
};

template <typename Limiter>
class AnyLimiterOf final : public AnyLimiter {
 public:
  explicit AnyLimiterOf(const Limit& limit) : limiter_(numbers_of<Limiter>(limit)) {}

  Decision check(std::uint64_t cost, Time now) override {
    if constexpr (kLeases) {
      auto lease = limiter_.try_acquire(cost, now);
      const Decision decision = lease.decision();
      if (lease.id() != 0) last_lease_ = lease.detach();
      return decision;
    } else {
      return limiter_.try_acquire(cost, now);
    }
  }
  Decision peek(std::uint64_t cost, Time now) const override { return limiter_.peek(cost, now); }
  std::uint64_t acquire_up_to(std::uint64_t most, Time now) override {
    if constexpr (requires { limiter_.acquire_up_to(most, now); }) return limiter_.acquire_up_to(most, now).tokens;
    return 0;
  }
  void refund(std::uint64_t cost, Time now, std::optional<Time> charged) override {
    if constexpr (requires { limiter_.refund(cost, now, charged); }) {
      limiter_.refund(cost, now, charged);
    } else if constexpr (requires { limiter_.refund(cost, now); }) {
      limiter_.refund(cost, now);
    }
  }
  void settle(std::uint64_t reserved, std::uint64_t actual, Time now) override {
    if constexpr (!kLeases) limiter_.settle(reserved, actual, now);
  }
  void penalize(std::uint64_t cost, Time now) override {
    if constexpr (!kLeases) limiter_.penalize(cost, now);
  }
  void release(Time now) override {
    if constexpr (kLeases) static_cast<void>(limiter_.release(last_lease_, now));
  }
  void set_limit(const Limit& limit, Time now) override { limiter_.set_limit(numbers_of<Limiter>(limit), now); }
  void reset(Time now) override { limiter_.reset(now); }

 private:
  static constexpr bool kLeases = std::is_same_v<Limiter, Concurrency>;
  Limiter limiter_;
  std::atomic<std::uint64_t> last_lease_ = 0;
};

inline std::unique_ptr<AnyLimiter> any_limiter(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::token_bucket:
      return std::make_unique<AnyLimiterOf<TokenBucket>>(limit);
    case Algorithm::leaky_bucket:
      return std::make_unique<AnyLimiterOf<LeakyBucket>>(limit);
    case Algorithm::fixed_window:
      return std::make_unique<AnyLimiterOf<FixedWindow>>(limit);
    case Algorithm::sliding_window:
      return std::make_unique<AnyLimiterOf<SlidingWindow>>(limit);
    case Algorithm::sliding_log:
      return std::make_unique<AnyLimiterOf<SlidingLog>>(limit);
    case Algorithm::concurrency:
      return std::make_unique<AnyLimiterOf<Concurrency>>(limit);
  }
  throw std::invalid_argument("unknown algorithm");
}

}  // namespace sluice
