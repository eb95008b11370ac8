// Sliding window log: at most `rate` tokens in any interval of `period`, exactly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithm/ticks.h"
#include "algorithm/verdict.h"

namespace sluice::algorithm {

/// The compiled numbers of a sliding log. Immutable.
///
/// Every `now` is in ticks, within 146 years of 0; one older than the state's newest change is answered as that time.
/// Cost: O(log of the entries); a charge is appended in amortised constant time and may allocate.
class SlidingLog {
 public:
  /// 16 bytes for each instant at which something was charged; what has left the log is dropped as new entries come.
  class State {
   public:
    [[nodiscard]] std::int64_t last() const noexcept { return last_; }
    /// Bytes held beyond the state itself.
    [[nodiscard]] std::size_t memory() const noexcept { return entries_.capacity() * sizeof(Entry); }

   private:
    friend class SlidingLog;
    struct Entry {
      std::int64_t at = 0;
      std::uint64_t total = 0;  // tokens charged up to and including this entry, modulo 2^64
    };
    std::vector<Entry> entries_;  // by time; those before first_ have left
    std::size_t first_ = 0;
    std::uint64_t gone_ = 0;  // total of all entries before first_
    std::int64_t last_ = kNeverSeen;
  };

  /// `rate` 0 … 10^12 per `period` of ticks.
  SlidingLog(std::uint64_t rate, std::int64_t period) noexcept : rate_(rate), period_(period) {}

  [[nodiscard]] std::uint64_t limit() const noexcept { return rate_; }

  /// Would `cost` fit? Cost 0 always does.
  [[nodiscard]] Verdict judge(const State& state, std::int64_t now, std::uint64_t cost) const noexcept;
  /// Takes a cost that judge() found to fit at this `now`.
  void take(State& state, std::int64_t now, std::uint64_t cost) const;
  [[nodiscard]] View view(const State& state, std::int64_t now) const noexcept;
  /// judge(), take() when it fits, and view(), in one.
  [[nodiscard]] Outcome decide(State& state, std::int64_t now, std::uint64_t cost) const;

  /// What decide() would answer; changes and copies nothing.
  [[nodiscard]] Outcome peek(const State& state, std::int64_t now, std::uint64_t cost) const noexcept;

  /// Gives back up to `cost`, newest entries first. With the time `at` of the charge: nothing once it has left the log.
  void refund(State& state, std::int64_t now, std::uint64_t cost, std::optional<std::int64_t> at = std::nullopt) const;
  /// Charges actual − reserved, at most 10^15 above `rate`, or refunds the difference.
  void settle(State& state, std::int64_t now, std::uint64_t reserved, std::uint64_t actual,
              std::optional<std::int64_t> at = std::nullopt) const;
  /// Takes without asking, at most to twice the rate.
  void penalize(State& state, std::int64_t now, std::uint64_t cost) const;
  /// Turns a state of `old` numbers into one of these. What has left the log does not come back.
  void convert(State& state, const SlidingLog& old, std::int64_t now) const;

  /// Does the state equal one never seen?
  [[nodiscard]] bool is_initial(const State& state, std::int64_t now) const noexcept;
  /// First instant at which it will, if nothing else comes. May lie in the past.
  [[nodiscard]] std::int64_t expires_at(const State& state) const noexcept;

  friend bool operator==(const SlidingLog&, const SlidingLog&) = default;

 private:
  // The entries that count at a moment.
  struct Now {
    std::int64_t at = 0;
    std::size_t first = 0;
    std::uint64_t before = 0;  // total before the first
    std::uint64_t used = 0;
  };

  [[nodiscard]] Now look(const State& state, std::int64_t now) const noexcept;
  [[nodiscard]] Verdict judge_in(const State& state, const Now& current, std::uint64_t cost) const noexcept;
  static void drop(State& state, const Now& current);
  static void put(State& state, const Now& current, std::uint64_t cost);
  void force(State& state, std::int64_t now, std::uint64_t cost, std::uint64_t room) const;

  std::uint64_t rate_;
  std::int64_t period_;
};

}  // namespace sluice::algorithm
