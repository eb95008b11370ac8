// Those who wait for a limiter, as a line: the interface between the line, in the library, and those who stand in it.
// Not for use outside of this library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>

#include "sluice/clock.h"
#include "sluice/deadline.h"
#include "sluice/internal/export.h"
#include "sluice/wait_result.h"

namespace sluice::internal {

// Somebody in a line. What is private is the line's.
class SLUICE_API Waiter {
 public:
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // It is the first in the line, and its time will come at `ready`, by the limiter's clock: wake up then and call
  // Waits::grant_due. Called with the line locked, again whenever that time changes. Not called when the clock goes
  // only as it is moved. False when it can't for lack of memory: it is called again with the next change of the line.
  [[nodiscard]] virtual bool lead(std::int64_t ready) noexcept = 0;
  // It has left the line. Called once, without locks, by any thread; the line doesn't touch the waiter any more.
  virtual void finish(const WaitResult& result) noexcept = 0;

 protected:
  explicit Waiter(const void* owner = nullptr) : owner_(owner) {}
  ~Waiter() = default;

 public:
  // The line's own notes.
  struct Place {
    Waiter* before = nullptr;
    Waiter* behind = nullptr;
    bool in_line = false;
    std::uint64_t turn = 0;  // order of coming
    std::uint64_t cost = 0;
    std::int64_t deadline = 0;
    std::int64_t ready = 0;      // as it was when it came
    std::uint64_t fraction = 0;  // parts of a token that rounding to whole ticks cost
    std::uint64_t run = 0;       // leaky bucket: slots that follow each other without a gap
    WaitResult result;
  };
  Place place_;
  const void* const owner_;
};

// The line of one limiter. Thread-safe.
class SLUICE_API Waits {
 public:
  // Takes the cost now, and stands the waiter in line until its time comes; or answers at once: granted or refused.
  // Throws std::bad_alloc when there is no memory for the line, or to lead it; then nothing was taken.
  virtual std::optional<WaitResult> enqueue(Waiter& waiter, std::uint64_t cost, const Deadline& deadline) = 0;
  // Leaves the line and gives back what was taken; then finish(stopped). False when it isn't in the line any more.
  virtual bool withdraw(Waiter& waiter) noexcept = 0;
  // The same for all of one owner.
  virtual void withdraw_all(const void* owner) noexcept = 0;
  // What somebody is told who isn't let into the line.
  [[nodiscard]] virtual WaitResult refuse(std::uint64_t cost, WaitOutcome outcome) noexcept = 0;
  // Finishes those whose time has come, and tells the first of the others to lead.
  virtual void grant_due() noexcept = 0;
  // The limiter's clock.
  [[nodiscard]] virtual std::int64_t now() const noexcept = 0;

 protected:
  ~Waits() = default;
};

// Waits in the calling thread.
SLUICE_API WaitResult wait_in_line(Waits& waits, std::uint64_t cost, const Deadline& deadline, std::stop_token stop);

}  // namespace sluice::internal
