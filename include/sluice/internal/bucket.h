// The one limiter behind TokenBucket and LeakyBucket: a bucket in one 64-bit word. Not for use outside of this library.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>

#include "sluice/clock.h"
#include "sluice/deadline.h"
#include "sluice/decision.h"
#include "sluice/internal/counter_clock.h"
#include "sluice/internal/export.h"
#include "sluice/internal/sync_point.h"
#include "sluice/internal/waits.h"
#include "sluice/reservation.h"
#include "sluice/verbs.h"
#include "sluice/wait.h"

namespace sluice::internal {

// Time is read on a clock that runs in tokens: with c/p = rate/period in lowest terms, tokens per ns, it reads V(now) =
// start + c·(now − origin), in 1/p of a token. The word holds the reading at which the bucket will be full; what is
// missing is the difference. A charge adds cost·p. Every step is a whole number; only shown figures are rounded.
//
// The numbers lie beside the word, in two slots: one is in use, the other is written before it is taken into use. Each
// has a generation, and so has the word, in its upper bits: a word and a slot of different generations don't belong
// together, and a compare-exchange on a word of an older generation fails. A reader loads a slot's generation, then its
// numbers, then the word; as a slot is written only when the word has gone on to another generation, a match proves
// that the numbers are whole. Generations come round again, the count of them, version_, does not: it is looked at
// before and after. A word comes again only if a thread was held up before its compare-exchange while 62 slots were
// taken into use and readings ran out of bits and began at 0 anew.
//
// Whatever doesn't fit the word (a bucket or a debt of more than 2^56 parts, a clock that ran out of bits, new numbers)
// goes through exact(), under a mutex: it answers by the algorithms in src/algorithm and, where it can, writes the word
// anew.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the word is alone in its cache line
class SLUICE_API Bucket {
 public:
  enum class Kind : std::uint8_t { tokens, queue };
  struct Numbers {
    std::uint64_t rate = 0;
    std::chrono::nanoseconds period{1'000'000'000};
    std::uint64_t capacity = 1;
  };
  static constexpr bool kNeverThrows = true;
  static constexpr bool kHasWindows = false;

  // Throws std::invalid_argument, naming each field and its range.
  Bucket(Kind kind, const Numbers& numbers);
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;
  ~Bucket();

  [[nodiscard]] static std::int64_t instant(Time now) noexcept { return now.steady; }
  [[nodiscard]] static std::int64_t machine_now() noexcept { return steady_now(); }

  Decision try_acquire(std::uint64_t cost, std::int64_t now) noexcept {
    for (;;) {
      const Look look = this->look(now);
      if (!look.fits_word) [[unlikely]]
        return exact_check(cost, now, true);
      if (!look.fits(cost)) return denied(look, cost);
      if (cost == 0 || swap(look, cost)) return allowed(look, cost);
    }
  }

  [[nodiscard]] Decision peek(std::uint64_t cost, std::int64_t now) const noexcept {
    const Look look = this->look(now);
    if (!look.fits_word) [[unlikely]]
      return exact_peek(cost, now);
    return look.fits(cost) ? allowed(look, cost) : denied(look, cost);
  }

  Granted acquire_up_to(std::uint64_t most, std::int64_t now) noexcept {
    for (;;) {
      const Look look = this->look(now);
      if (!look.fits_word) [[unlikely]]
        return exact_acquire_up_to(most, now);
      const std::uint64_t all = look.tokens(look.missing);
      const std::uint64_t cost = most < all ? most : all;
      if (cost == 0 || swap(look, cost)) return {cost, allowed(look, cost)};
    }
  }

  Decision refund(std::uint64_t cost, std::int64_t now) noexcept;
  Decision settle(std::uint64_t reserved, std::uint64_t actual, std::int64_t now) noexcept;
  Decision penalize(std::uint64_t cost, std::int64_t now) noexcept;
  Decision reset(std::int64_t now) noexcept;
  // Of a debt: `clock` is the one that all calls without `now` go by; the machine's when null.
  Reservation reserve(std::uint64_t cost, std::chrono::nanoseconds max_wait, std::int64_t now, const Clock* clock);
  WaitResult wait(std::uint64_t cost, const Deadline& deadline, std::stop_token stop, const Clock* clock);
  Waits& waits(const Clock* clock);
  // Throws std::invalid_argument and changes nothing when the numbers are out of range.
  Decision set_limit(const Numbers& numbers, std::int64_t now);

 private:
  // The bits of the word: 6 of generation, 58 of value. Readings stay below 2^57 and missing parts below 2^56.
  static constexpr unsigned kValueBits = 58;
  static constexpr std::uint64_t kValueMask = (std::uint64_t{1} << kValueBits) - 1;
  static constexpr std::uint64_t kGenerations = 62;                              // of slots in use, counted round
  static constexpr std::uint64_t kElsewhere = (kGenerations + 1) << kValueBits;  // the word when it isn't in use
  static constexpr std::uint64_t kNone = kGenerations << kValueBits;             // a slot not in use
  static constexpr std::uint64_t kMostReading = std::uint64_t{1} << 57U;
  static constexpr std::uint64_t kMostMissing = std::uint64_t{1} << 56U;

  struct alignas(64) Slot {
    std::atomic<std::uint64_t> start{kNone};  // the reading at `origin`, as a word
    std::atomic<std::uint64_t> horizon{0};    // ns after origin up to which readings fit
    std::atomic<std::int64_t> origin{0};
    std::atomic<std::uint64_t> c{0};
    std::atomic<std::uint64_t> p{1};
    std::atomic<std::uint64_t> burst{1};
    std::atomic<std::uint64_t> capacity{1};  // burst·p
  };

  // What a call works on: the numbers, and the state at `now`.
  struct Look {
    bool fits_word = false;
    std::uint64_t word = 0;
    std::uint64_t full_at = 0;  // as a word
    std::uint64_t missing = 0;
    std::uint64_t c = 0;
    std::uint64_t p = 1;
    std::uint64_t burst = 1;
    std::uint64_t capacity = 1;

    [[nodiscard]] bool fits(std::uint64_t cost) const noexcept {
      return cost == 0 || (cost <= burst && missing + cost * p <= capacity);
    }
    [[nodiscard]] std::uint64_t tokens(std::uint64_t lacking) const noexcept {
      return lacking < capacity ? (capacity - lacking) / p : 0;
    }
    [[nodiscard]] Wait refill(std::uint64_t parts) const noexcept {
      if (parts == 0) return {};
      if (c == 0) return Wait::never();
      const std::uint64_t ticks = c == 1 ? parts : (parts - 1) / c + 1;
      const std::chrono::nanoseconds duration(static_cast<std::int64_t>(ticks));
      return Wait(duration);
    }
  };

  [[nodiscard]] Look look(std::int64_t now) const noexcept {
    const std::uint64_t version = version_.load(std::memory_order_acquire);
    const Slot& slot = slots_[version % 2];
    Look look;
    const std::uint64_t start = slot.start.load(std::memory_order_acquire);
    const std::uint64_t elapsed =
        static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(slot.origin.load(std::memory_order_acquire));
    const std::uint64_t horizon = slot.horizon.load(std::memory_order_acquire);
    look.c = slot.c.load(std::memory_order_acquire);
    const std::uint64_t reading = start + elapsed * look.c;
    look.p = slot.p.load(std::memory_order_acquire);
    look.burst = slot.burst.load(std::memory_order_acquire);
    look.capacity = slot.capacity.load(std::memory_order_acquire);
    SLUICE_SYNC_POINT("bucket.look");
    look.word = word_.load(std::memory_order_acquire);
    look.fits_word =
        (look.word ^ start) <= kValueMask && elapsed <= horizon && version_.load(std::memory_order_relaxed) == version;
    // Of one generation, words compare like values.
    look.full_at = std::max(look.word, reading);
    look.missing = look.full_at - reading;
    return look;
  }

  bool swap(const Look& look, std::uint64_t cost) noexcept {
    SLUICE_SYNC_POINT("bucket.swap");
    std::uint64_t expected = look.word;
    return word_.compare_exchange_weak(expected, look.full_at + cost * look.p, std::memory_order_acq_rel,
                                       std::memory_order_relaxed);
  }

  [[nodiscard]] Decision allowed(const Look& look, std::uint64_t cost) const noexcept {
    const std::uint64_t missing = look.missing + cost * look.p;
    return {.limit = look.burst,
            .remaining = look.tokens(missing),
            .reset_after = look.refill(missing),
            .delay = kind_ == Kind::queue ? look.refill(look.missing) : Wait()};
  }
  [[nodiscard]] static Decision denied(const Look& look, std::uint64_t cost) noexcept {
    return {
        .allowed = false,
        .limit = look.burst,
        .remaining = look.tokens(look.missing),
        .retry_after = cost > look.burst ? Wait::never() : look.refill(look.missing + cost * look.p - look.capacity),
        .reset_after = look.refill(look.missing)};
  }

  struct SLUICE_HIDDEN Exact;
  template <typename Change>
  Decision exact(std::int64_t now, Change change) noexcept;
  template <typename VerbKind, typename Change>
  Decision verb(VerbKind kind, std::int64_t now, Change change) noexcept;
  Decision exact_check(std::uint64_t cost, std::int64_t now, bool take) noexcept;
  [[nodiscard]] Decision exact_peek(std::uint64_t cost, std::int64_t now) const noexcept;
  Granted exact_acquire_up_to(std::uint64_t most, std::int64_t now) noexcept;

  // The word alone in its cache line: all else is read by every thread and stays in each one's cache.
  std::unique_ptr<Exact> exact_;
  std::atomic<std::uint64_t> version_{0};  // times that a slot was taken into use; slots_[version_ % 2] is
  const Kind kind_;
  std::array<Slot, 2> slots_;
  alignas(64) std::atomic<std::uint64_t> word_{kElsewhere};
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

}  // namespace sluice::internal
