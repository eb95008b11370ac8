// A token bucket for one key that many threads use at the same time, in this process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/bucket.h"
#include "sluice/internal/export.h"
#include "sluice/verbs.h"

namespace sluice {

/// A TokenBucket of which each processor holds a share in advance, so that threads don't wait for one another's cache
/// line: a decision costs a few ns and no look at the clock, however many threads decide. Worth it from some ten
/// million decisions a second on; below, use TokenBucket, whose figures are exact.
///
///     sluice::ShardedTokenBucket bucket{{.rate = 50'000'000, .burst = 1'000'000}};
///     if (!bucket.try_acquire().allowed) …
///
/// It never admits more than a token bucket of these numbers: in any time w at most burst + rate × w, to the token. All
/// of the burst can be had by any thread, as one whose share is used up takes from the rest, and from the others'
/// shares at last. What it costs:
/// - An eighth of the burst lies in the shares, which are filled when they are used. As long as some are not, that much
///   of the burst may be missing after an idle time.
/// - While a thread gathers tokens out of several shares, another may be refused what is under way.
/// - Of an allowed answer, `remaining` is what is left in the processor's share (there are at least as many), and
///   `reset_after` the time in which an empty bucket fills. Denials and peek count all shares, one after the other.
///
/// There are no debts: no settle, no penalize. Nor does it take new numbers. Thread-safe. Memory: 64 bytes a share.
class SLUICE_API ShardedTokenBucket {
 public:
  /// The numbers of this limit.
  struct Numbers {
    std::uint64_t rate = 0;                          ///< tokens per period: 0 … 10^12; 0: nothing ever comes back
    std::chrono::nanoseconds period{1'000'000'000};  ///< whole µs, 1 µs … 366 days
    std::uint64_t burst = 1;   ///< 1 … 10^15; below 8 × shares there are no shares, and all threads use one word
    std::uint32_t shares = 0;  ///< up to 1024, rounded up to a power of two; 0: one a processor
  };
  /// What acquire_up_to answers.
  using Granted = sluice::Granted;

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the bucket.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit ShardedTokenBucket(const Numbers& numbers, const Clock* clock = nullptr);
  ShardedTokenBucket(const ShardedTokenBucket&) = delete;
  ShardedTokenBucket& operator=(const ShardedTokenBucket&) = delete;
  ~ShardedTokenBucket();

  /// Takes `cost` tokens if there are as many; else takes nothing and says when there will be, if no other thread takes
  /// them. Cost 0 asks only.
  Decision try_acquire(std::uint64_t cost, Time now) noexcept {
    std::uint64_t left = 0;
    return spend(cost, left) ? allowed(left) : gather(cost, now.steady);
  }
  /// The same, at the present time.
  Decision try_acquire(std::uint64_t cost = 1) noexcept {
    std::uint64_t left = 0;
    return spend(cost, left) ? allowed(left) : gather(cost, at());
  }

  /// What try_acquire would answer, with all shares counted; changes nothing.
  [[nodiscard]] Decision peek(std::uint64_t cost, Time now) const noexcept { return look(cost, now.steady); }
  /// The same, at the present time.
  [[nodiscard]] Decision peek(std::uint64_t cost = 1) const noexcept { return look(cost, at()); }

  /// Takes as many tokens as there are, at most `most`.
  Granted acquire_up_to(std::uint64_t most, Time now) noexcept { return gather_up_to(most, now.steady); }
  /// The same, at the present time.
  Granted acquire_up_to(std::uint64_t most) noexcept { return gather_up_to(most, at()); }

  /// Gives tokens back, never above full. Answers what peek(0) then says, as reset does.
  Decision refund(std::uint64_t cost, Time now) noexcept { return give_back(cost, now.steady); }
  /// The same, at the present time.
  Decision refund(std::uint64_t cost) noexcept { return give_back(cost, at()); }

  /// As never used.
  Decision reset(Time now) noexcept { return fill(now.steady); }
  /// The same, at the present time.
  Decision reset() noexcept { return fill(at()); }

 private:
  struct alignas(64) Share {
    std::atomic<std::uint64_t> tokens{0};
  };

  // The processor that the thread runs on, or lately did: asking each time would cost as much as the rest.
  [[nodiscard]] static std::uint32_t processor() noexcept {
    if (calls_left_-- == 0) look_for_processor();
    return processor_;
  }
  static void look_for_processor() noexcept;
  [[nodiscard]] Share& own() const noexcept { return shares_[processor() & (count_ - 1)]; }
  [[nodiscard]] std::int64_t at() const noexcept {
    return clock_ != nullptr ? clock_->now().steady : internal::steady_now();
  }

  // Out of the processor's own share. Cost 0 is not for it: it asks for figures.
  bool spend(std::uint64_t cost, std::uint64_t& left) noexcept {
    std::atomic<std::uint64_t>& tokens = own().tokens;
    std::uint64_t there = tokens.load(std::memory_order_relaxed);
    while (cost <= there && cost != 0) {
      left = there - cost;
      if (tokens.compare_exchange_weak(there, left, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  [[nodiscard]] Decision allowed(std::uint64_t left) const noexcept {
    return {.limit = burst_, .remaining = left, .reset_after = fills_in_};
  }

  [[nodiscard]] Decision gather(std::uint64_t cost, std::int64_t now) noexcept;
  [[nodiscard]] Granted gather_up_to(std::uint64_t most, std::int64_t now) noexcept;
  [[nodiscard]] std::uint64_t take(std::uint64_t most, std::uint64_t more, std::int64_t now) noexcept;
  void put(std::uint64_t tokens, std::int64_t now) noexcept;
  [[nodiscard]] Decision look(std::uint64_t cost, std::int64_t now) const noexcept;
  [[nodiscard]] Decision give_back(std::uint64_t cost, std::int64_t now) noexcept;
  [[nodiscard]] Decision fill(std::int64_t now) noexcept;

  static constinit thread_local std::uint32_t processor_;
  static constinit thread_local std::uint32_t calls_left_;  // until it is asked for again

  const Clock* clock_;
  std::uint64_t burst_;
  std::uint32_t count_;  // a power of two
  std::uint64_t share_;  // most tokens in a share
  Wait fills_in_;
  std::unique_ptr<Share[]> shares_;  // NOLINT(modernize-avoid-c-arrays): the number is known at construction only
  internal::Bucket rest_;            // what lies in no share: at most burst_ - count_ · share_
};

}  // namespace sluice
