// Tokens taken ahead of their time.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/export.h"
#include "sluice/wait_result.h"

namespace sluice {

namespace internal {

class Reserver;

// What a bucket answers to `reserve`.
struct Reserved {
  WaitResult result;
  void* held = nullptr;  // by which it can be given back
};

// Who can take a reservation back.
class SLUICE_API Reserver {
 public:
  virtual Decision cancel(void* held, std::int64_t now) noexcept = 0;
  virtual void keep(void* held) noexcept = 0;
  [[nodiscard]] virtual std::int64_t now() const noexcept = 0;

 protected:
  ~Reserver() = default;
};

}  // namespace internal

/// What `reserve` got: tokens that are taken already and may be used from `ready_at` on; or a refusal, which took
/// nothing.
///
///     if (auto slot = bucket.reserve(1, 500ms)) {
///       std::this_thread::sleep_for(slot.delay());
///       slot.commit();
///       …act…
///     }
///
/// Say `commit` when you act or are going to. A reservation that is destroyed without gives its tokens back, so an
/// early return or an exception leaks none.
///
/// What is given back. Other reservations keep their instants, so a token bucket takes back as much as keeps this
/// promise: whatever is cancelled, no more than burst + rate·w of what is not is ever for instants within any window w.
/// That is all of it when no other reservation is outstanding behind this one, or when burst leaves room for it beside
/// the largest of those; what flows past a full bucket while they wait is lost, as always. After `ready_at` it is at
/// most what has not flowed back by itself. After a reset nothing. A leaky bucket takes nothing back: its slots are
/// given away, and one given back could be given twice.
///
/// Move-only; not thread-safe by itself; must not outlive its limiter.
class Reservation {
 public:
  /// For the library's own use.
  Reservation(const internal::Reserved& reserved, internal::Reserver* owner) noexcept
      : owner_(reserved.held != nullptr ? owner : nullptr), held_(reserved.held), result_(reserved.result) {}
  /// Takes over what `other` holds, which then holds nothing and reads as stopped, so not granted.
  Reservation(Reservation&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)),
        held_(other.held_),
        result_(std::exchange(other.result_, kMovedFrom)) {}
  /// Gives back what it holds, and takes over what `other` holds.
  Reservation& operator=(Reservation&& other) noexcept {
    if (this != &other) {
      release();
      owner_ = std::exchange(other.owner_, nullptr);
      held_ = other.held_;
      result_ = std::exchange(other.result_, kMovedFrom);
    }
    return *this;
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation() { release(); }

  /// Was it granted?
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(result_); }
  /// granted, or why not: never, deadline (more than `max_wait`), full (leaky bucket), stopped (moved from).
  [[nodiscard]] WaitOutcome outcome() const noexcept { return result_.outcome; }
  /// The state after it was taken, with the `delay` until it may be used; refused: a denial whose `retry_after` tells
  /// when it wouldn't be.
  [[nodiscard]] const Decision& decision() const noexcept { return result_.decision; }
  /// When the tokens may be used, on the clock of Time::steady, in ns. Precondition: granted.
  [[nodiscard]] std::int64_t ready_at() const noexcept { return result_.ready_at; }
  /// How long that was from the call of `reserve` on. Precondition: granted.
  [[nodiscard]] std::chrono::nanoseconds delay() const noexcept { return result_.decision.delay.value(); }

  /// The tokens are used, at `ready_at` or later: they stay taken.
  void commit() noexcept {
    if (owner_ != nullptr) std::exchange(owner_, nullptr)->keep(held_);
  }
  /// Gives them back. Answers what try_acquire(0) then says; after commit or cancel, or refused: the decision again.
  Decision cancel(Time now) noexcept {
    if (owner_ != nullptr) result_.decision = std::exchange(owner_, nullptr)->cancel(held_, now.steady);
    return result_.decision;
  }
  /// The same, at the present time.
  Decision cancel() noexcept { return owner_ != nullptr ? cancel(Time{.steady = owner_->now()}) : result_.decision; }

 private:
  /// The same, at the present time.
  void release() noexcept {
    if (owner_ != nullptr) cancel();
  }

  static constexpr WaitResult kMovedFrom{.outcome = WaitOutcome::stopped, .decision = {.allowed = false}};

  internal::Reserver* owner_;  // null: nothing to give back
  void* held_;
  WaitResult result_;
};

}  // namespace sluice
