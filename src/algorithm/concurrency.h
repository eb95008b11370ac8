// Concurrency: at most `rate` leases held at once, each until it is released or its time is up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"

namespace sluice::algorithm {

/// The compiled numbers of a semaphore with leases. Immutable.
///
/// Every `now` is in ticks, within 146 years of 0; one older than the state's newest change is answered as that time.
/// Cost: amortised constant for acquire; O(log of the leases) for release; a denial also looks at the leases whose end
/// it waits for. May allocate when a lease is taken.
class Concurrency {
 public:
  /// 24 bytes for each lease.
  class State {
   public:
    [[nodiscard]] std::int64_t last() const noexcept { return last_; }
    /// Bytes held beyond the state itself.
    [[nodiscard]] std::size_t memory() const noexcept { return leases_.capacity() * sizeof(Lease); }
    /// The next lease gets an id greater than `used`.
    void skip_ids(std::uint64_t used) noexcept { ids_ = used > ids_ ? used : ids_; }

   private:
    friend class Concurrency;
    struct Lease {
      std::uint64_t id = 0;
      std::int64_t end = 0;    // held before it
      std::uint64_t cost = 0;  // 0: released
    };
    std::vector<Lease> leases_;  // by id
    std::size_t first_ = 0;      // those before it are over
    std::size_t released_ = 0;   // among the others
    std::uint64_t held_ = 0;     // cost of the others
    std::uint64_t ids_ = 0;      // the last one given out
    bool by_end_ = true;         // is leases_ in the order of their ends, too?
    std::int64_t last_ = kNeverSeen;
  };

  /// `rate` 0 … 10^12; leases last `ttl` ticks, 1 … 366 days.
  Concurrency(std::uint64_t rate, std::int64_t ttl) noexcept : rate_(rate), ttl_(ttl) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return rate_; }

  /// Would `cost` fit? Cost 0 always does. `retry_after` is when enough leases will have timed out.
  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const;
  /// Takes a cost that judge() found to fit at this `now`. The lease's id, counted from 1; 0 for cost 0.
  std::uint64_t take(State& state, std::int64_t now, std::uint64_t cost) const;
  /// The id that the next lease gets.
  [[nodiscard]] static std::uint64_t next_lease(const State& state) noexcept { return state.ids_ + 1; }
  /// False, and no change, when the lease is not held: unknown, released, or timed out.
  [[nodiscard]] bool release(State& state, std::int64_t now, std::uint64_t lease) const;
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept;
  /// The verdict on `cost`, and the view after it was taken; changes and copies nothing.
  [[nodiscard]] Outcome peek(const State& state, std::int64_t now, std::uint64_t cost) const;
  /// All leases are over; ids go on.
  static void reset(State& state) noexcept;

  /// Leases keep their ends, so there is nothing to convert under new numbers.
  void convert(State& /*state*/, const Concurrency& /*old*/, std::int64_t /*now*/) const noexcept {}

  /// Does the state equal one never seen, but for the ids given out?
  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept {
    return view(state, now).reset_after == 0;
  }
  /// First instant at which it will, if nothing else comes. May lie in the past.
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept;

 private:
  [[nodiscard]] static std::uint64_t held_at(const State& state, std::int64_t now) noexcept;
  static void drop(State& state, std::int64_t now);

  std::uint64_t rate_;
  std::int64_t ttl_;
};

}  // namespace sluice::algorithm
