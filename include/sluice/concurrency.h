// A semaphore with leases for one key, in this process.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/export.h"

namespace sluice {

/// At most `rate` tokens held at once. A lease is held until it is released or, so that none is lost for good, until
/// its `ttl` is over (held at t + ttl − 1 ns, free at t + ttl).
///
///     sluice::Concurrency limit{{.rate = 10}};
///     if (auto lease = limit.try_acquire()) { /* work; released at the end of the block */ }
///
/// `retry_after` of a denial is when enough leases will have timed out: an upper bound, as releases come sooner.
/// Goes by `now.steady`; an older `now` is answered as the newest that changed something. Thread-safe, by a mutex; a
/// decision costs some tens of ns. Memory: 24 bytes for each lease held, and at most as much again for growth; that of
/// leases that are over is given back as others are taken or released.
class SLUICE_API Concurrency {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                        ///< tokens held at once: 0 … 10^12
    std::chrono::nanoseconds ttl{60'000'000'000};  ///< whole µs, 1 µs … 366 days
  };

  /// What try_acquire got: a lease, or nothing. Move-only; gives the lease back when it is destroyed. Must not outlive
  /// its Concurrency.
  class Lease {
   public:
    /// Takes over what `other` holds, which then holds nothing and is as if denied.
    Lease(Lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          id_(std::exchange(other.id_, 0)),
          decision_(std::exchange(other.decision_, {.allowed = false})) {}
    /// Gives back what it holds, and takes over what `other` holds.
    Lease& operator=(Lease&& other) noexcept;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();

    /// Was it granted?
    [[nodiscard]] explicit operator bool() const noexcept { return decision_.allowed; }
    /// Granted or denied, and the figures.
    [[nodiscard]] const Decision& decision() const noexcept { return decision_; }
    /// A number that no other lease of this limiter has; 0 when there is no lease (denied, or of cost 0).
    [[nodiscard]] std::uint64_t id() const noexcept { return id_; }
    /// Gives the lease back now. False when it isn't held any more: given back before, or timed out.
    bool release(Time now) noexcept;
    /// The same, at the present time.
    bool release() noexcept;
    /// Leaves the lease held: it is given back by Concurrency::release(id) or when its time is up.
    std::uint64_t detach() noexcept;

   private:
    friend class Concurrency;
    Lease(Concurrency* owner, std::uint64_t id, const Decision& decision) noexcept
        : owner_(owner), id_(id), decision_(decision) {}
    Concurrency* owner_;  // null: nothing to give back
    std::uint64_t id_;
    Decision decision_;
  };

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit Concurrency(const Numbers& numbers, const Clock* clock = nullptr);
  ~Concurrency();
  Concurrency(const Concurrency&) = delete;
  Concurrency& operator=(const Concurrency&) = delete;

  /// A lease of `cost` tokens, if as many are free. Cost 0 asks only, and is always granted.
  [[nodiscard]] Lease try_acquire(std::uint64_t cost, Time now);
  /// The same, at the present time.
  [[nodiscard]] Lease try_acquire(std::uint64_t cost = 1);

  /// The decision that try_acquire would give; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const;
  /// The same, at the present time.
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const;

  /// Gives a detached lease back. False, and no change, when it isn't held: unknown, given back before, or timed out.
  bool release(std::uint64_t id, Time now) noexcept;
  /// The same, at the present time.
  bool release(std::uint64_t id) noexcept;

  /// New numbers while running. Leases keep their ends. Throws std::invalid_argument, and changes nothing, when they
  /// are out of range. Answers what peek(0) then says, like reset.
  Decision set_limit(const Numbers& numbers, Time now);
  /// The same, at the present time.
  Decision set_limit(const Numbers& numbers);

  /// All leases are over.
  Decision reset(Time now);
  /// The same, at the present time.
  Decision reset();

 private:
  struct SLUICE_HIDDEN State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
