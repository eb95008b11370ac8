// A limit on calls in flight that is found from how long the calls take.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/export.h"
#include "sluice/internal/span.h"

namespace sluice {

/// How AdaptiveConcurrency moves its limit: additive increase, multiplicative decrease. The limit grows while calls end
/// in time, and falls when too many are dropped or slower than `timeout`. It knows no latency but that one, so without
/// drops and with a timeout that is never reached it grows to `max`.
struct Aimd {
  std::chrono::nanoseconds timeout{5'000'000'000};  ///< a slower call counts as dropped: whole µs, 1 µs … 15 min
  std::uint32_t increase = 1;                       ///< calls added a window: 1 … 1000
  friend bool operator==(const Aimd&, const Aimd&) = default;
};

/// How AdaptiveConcurrency moves its limit: by the gradient, the ratio of the latency without queueing (`long_rtt`) to
/// the present one (`short_rtt`). While calls take at most `tolerance` times as long as they do without a queue, the
/// limit grows; beyond, it falls in proportion. The latency without a queue is measured in probes: every so often the
/// limit is cut for the length of a few calls. docs/adaptive.md has the formulas.
struct Gradient {
  std::uint32_t tolerance_permille = 1'500;  ///< latency that is put up with, of that without a queue: 1000 … 10000
  std::uint32_t smoothing_permille = 200;    ///< share of the way to its aim that the limit goes a window: 1 … 1000
  std::uint32_t queue = 0;  ///< calls aimed at on top, at least; the square root of the limit if more: 0 … 10000
  std::uint32_t probe_every = 300;  ///< windows from one probe to the next, ± a quarter by `seed`: 1 … 1000000
  std::uint64_t seed = 0;           ///< give each process another one, so that they don't probe at the same time
  friend bool operator==(const Gradient&, const Gradient&) = default;
};

/// At most `limit` calls in flight, where the limit is found by itself, within min … max, from measured latencies. For
/// a client, so that it doesn't drown a service; for a server, so that it sheds what it couldn't answer in time.
///
///     sluice::AdaptiveConcurrency limit{{.min = 4, .max = 500}};
///     auto permit = limit.try_acquire();
///     if (!permit) return busy();
///     if (call()) permit.success(); else permit.drop();
///
/// A call that ended as it should is a success(), and its latency counts; one that shows overload (timed out, refused
/// for lack of capacity) is a drop(); one that tells nothing (cancelled, a bad request, an answer from a cache) is to
/// be ignored, and a permit that is destroyed without a verdict is. So none is ever lost.
///
/// The limit moves once a window: after at least `window` and `samples` ended calls, and twice as many as were in
/// flight. It grows only when at least half of it was used. No thread and no timer; everything follows from the times
/// and verdicts given: the same calls in the same order lead to the same limit.
///
/// Goes by `now.steady`; an end older than its start is a latency of 0. Thread-safe. try_acquire is lock-free (one
/// compare-exchange); a verdict is a handful of atomic additions and, once a window, takes a mutex that nobody waits
/// for. Never allocates after construction. Calls longer than 2^40 ns (18 minutes) count as of that length.
///
/// In a denial, `retry_after` is an estimate (latency / calls in flight): nobody knows when a call will end.
/// `reset_after` estimates when those in flight will have ended.
class SLUICE_API AdaptiveConcurrency {
 public:
  /// Where the limit may be, and what moves it.
  struct Numbers {
    std::uint64_t initial = 0;                     ///< the limit at first: min … max; 0: as near to 20 as these allow
    std::uint64_t min = 1;                         ///< 1 … 1000000
    std::uint64_t max = 1'000;                     ///< min … 1000000
    std::chrono::nanoseconds window{100'000'000};  ///< shortest time from one move to the next: whole µs, 1 µs … 60 s
    std::uint32_t samples = 20;                    ///< fewest ended calls from one move to the next: 1 … 100000
    std::uint32_t tolerated_drops_permille = 10;   ///< a larger share of drops lowers the limit: 0 … 1000
    std::uint32_t backoff_permille = 900;          ///< what is left of the limit then: 1 … 999
    /// How the limit moves.
    // Without the braces gcc warns of designated initializers that leave it out.
    std::variant<Gradient, Aimd> method{};  // NOLINT(readability-redundant-member-init)
    friend bool operator==(const Numbers&, const Numbers&) = default;
  };

  /// What the limiter knows at an instant.
  struct Figures {
    std::uint64_t limit = 0;                ///< most calls in flight, at present
    std::uint64_t in_flight = 0;            ///< calls that hold a permit
    std::chrono::nanoseconds short_rtt{0};  ///< mean latency of the successes of the last window; 0: none yet
    std::chrono::nanoseconds long_rtt{0};   ///< Gradient: latency without a queue, as last measured; 0: none yet
    bool probing = false;                   ///< Gradient: `limit` is cut to measure `long_rtt`
  };

  /// What try_acquire got: leave to make a call, or nothing. Move-only. Only the first verdict counts; a denied
  /// permit's does nothing. Must not outlive its limiter. One thread at a time.
  class [[nodiscard]] Permit {
   public:
    /// Takes over the other's, which is then as if denied.
    Permit(Permit&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          started_(other.started_),
          decision_(std::exchange(other.decision_, {.allowed = false})) {}
    /// Ignores its own and takes over the other's.
    Permit& operator=(Permit&& other) noexcept {
      if (this != &other) {
        ignore();
        owner_ = std::exchange(other.owner_, nullptr);
        started_ = other.started_;
        decision_ = std::exchange(other.decision_, {.allowed = false});
      }
      return *this;
    }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    ~Permit() { ignore(); }

    /// Was it granted?
    [[nodiscard]] explicit operator bool() const noexcept { return decision_.allowed; }
    /// What try_acquire answered.
    [[nodiscard]] const Decision& decision() const noexcept { return decision_; }

    /// The call has ended as it should: its latency, from try_acquire to `now`, is a sample.
    void success(Time now) noexcept {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->ended(started_, now.steady, false);
    }
    /// The same, now.
    void success() noexcept {
      if (owner_ != nullptr) success(owner_->time());
    }
    /// The call has failed for lack of capacity.
    void drop(Time now) noexcept {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->ended(started_, now.steady, true);
    }
    /// The same, now.
    void drop() noexcept {
      if (owner_ != nullptr) drop(owner_->time());
    }
    /// The call is over, and tells nothing. Reads no clock.
    void ignore() noexcept {
      if (owner_ != nullptr) std::exchange(owner_, nullptr)->word_.fetch_sub(1, std::memory_order_release);
    }

   private:
    friend class AdaptiveConcurrency;
    Permit(AdaptiveConcurrency* owner, std::int64_t started, const Decision& decision) noexcept
        : owner_(owner), started_(started), decision_(decision) {}
    AdaptiveConcurrency* owner_;  // null: nothing to give back
    std::int64_t started_;
    Decision decision_;
  };

  /// `clock`: what calls without `now` go by; the machine's when null. It must live as long as the limiter.
  /// Throws std::invalid_argument, naming each field that is out of range.
  explicit AdaptiveConcurrency(const Numbers& numbers, const Clock* clock = nullptr);
  /// Precondition: no permit is held.
  ~AdaptiveConcurrency();
  AdaptiveConcurrency(const AdaptiveConcurrency&) = delete;
  AdaptiveConcurrency& operator=(const AdaptiveConcurrency&) = delete;

  /// Leave to make a call that starts now, if fewer than the limit are in flight.
  Permit try_acquire(Time now) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    for (;;) {
      if (low_half(word) >= high_half(word)) [[unlikely]] {
        if (!probe_is_over(now.steady)) return {nullptr, now.steady, decision(word, false)};
        word = word_.load(std::memory_order_relaxed);
      } else if (word_.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
        return {this, now.steady, decision(word + 1, true)};
      }
    }
  }
  /// The same, now.
  Permit try_acquire() noexcept { return try_acquire(time()); }

  /// Would try_acquire be granted? Figures of the present state; changes nothing.
  [[nodiscard]] Decision peek() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    return decision(word, low_half(word) < high_half(word));
  }

  /// All figures at this instant. Takes the mutex.
  [[nodiscard]] Figures figures() const noexcept;

  /// New numbers while running. The limit stays, cut to the new min … max (`initial` counts at reset only); calls in
  /// flight stay, even if they are more than the limit now; a window that was under way begins anew. The same numbers
  /// change nothing. Throws std::invalid_argument, and changes nothing, when they are out of range. Answers like peek.
  Decision set_limit(const Numbers& numbers, Time now);
  /// The same, now.
  Decision set_limit(const Numbers& numbers) { return set_limit(numbers, time()); }

  /// Forgets all that was measured; the limit is `initial` again. Calls in flight stay.
  Decision reset() noexcept;

 private:
  // The word: the limit in the upper half, the calls in flight in the lower, so that no call is let in by an old limit.
  static constexpr std::uint64_t high_half(std::uint64_t word) noexcept { return word >> 32U; }
  static constexpr std::uint64_t low_half(std::uint64_t word) noexcept { return word & 0xffff'ffffU; }

  [[nodiscard]] Decision decision(std::uint64_t word, bool allowed) const noexcept {
    const std::uint64_t limit = high_half(word);
    const std::uint64_t in_flight = low_half(word);
    Decision decision{
        .allowed = allowed, .limit = limit, .remaining = in_flight < limit ? limit - in_flight : 0, .retry_after = {}};
    const std::int64_t rtt = short_rtt_.load(std::memory_order_relaxed);
    if (in_flight != 0) decision.reset_after = Wait(std::chrono::nanoseconds(rtt));
    // A denial means that at least the limit, so at least one call, is in flight.
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
    if (!allowed) decision.retry_after = Wait(std::chrono::nanoseconds(rtt / static_cast<std::int64_t>(in_flight) + 1));
    return decision;
  }

  [[nodiscard]] Time time() const noexcept;
  void ended(std::int64_t started, std::int64_t now, bool dropped) noexcept;
  [[nodiscard]] bool probing_too_long(std::int64_t now) const noexcept;
  bool probe_is_over(std::int64_t now) noexcept;
  [[nodiscard]] bool enough_calls(std::uint64_t needed) const noexcept;
  bool look(std::int64_t now) noexcept;
  void forget_window() noexcept;
  void publish() noexcept;

  struct SLUICE_HIDDEN State;

  alignas(64) std::atomic<std::uint64_t> word_{0};
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const Clock* const clock_;
  const std::unique_ptr<State> state_;

  // The window under way, as counted by verdicts; and what they need for that.
  static constexpr std::uint64_t kOneDropped = (std::uint64_t{1} << 32U) + 1;
  alignas(64) std::atomic<std::uint64_t> ended_{0};  // successes and drops; drops in the upper half
  std::atomic<std::uint64_t> sum_{0};                // of the successes' latencies, in ns
  std::atomic<std::uint64_t> peak_{0};               // most calls in flight, seen at the end of each
  std::atomic<std::uint64_t> needed_{0};             // ended calls that make a window
  std::atomic<std::int64_t> slowest_{0};             // slower successes are drops

  // Written by who holds the mutex, once a window.
  alignas(64) std::atomic<std::int64_t> short_rtt_{0};
  std::atomic<std::int64_t> counts_from_{0};  // calls that started earlier are not counted
  internal::SharedSpan window_;               // holds while the window is not over
  internal::SharedSpan patience_;             // holds while a probe may last
  std::atomic<bool> probing_{false};
};

}  // namespace sluice
