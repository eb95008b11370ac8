// Those who wait at one bucket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "algorithm/token_bucket.h"
#include "sluice/clock.h"
#include "sluice/decision.h"
#include "sluice/internal/waits.h"
#include "sluice/reservation.h"
#include "waiting/account.h"
#include "waiting/line.h"
#include "waiting/token_line.h"

namespace sluice::waiting {

/// Brings a line, a bucket and a clock together. Costs some 100 bytes until somebody waits. Thread-safe.
///
/// Its lock is taken before the bucket's. Waiters are told that they lead with the lock held, and that they are
/// finished without it. A clock's `listen` and `unlisten` are called without it, as a clock that is moved calls back
/// with locks of its own.
class Queue final : public internal::Waits, public internal::Reserver, private ClockListener {
 public:
  enum class Order : std::uint8_t { tokens, slots };

  Queue(Account& account, Order order) : account_(account), order_(order) {}
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  /// Precondition: nobody waits.
  ~Queue();

  /// The clock to go by; the machine's when null. Always the same one. Call before anything but the verbs.
  Queue& with_clock(const Clock* clock);

  std::optional<WaitResult> enqueue(internal::Waiter& waiter, std::uint64_t cost, const Deadline& deadline) override;
  bool withdraw(internal::Waiter& waiter) noexcept override;
  void withdraw_all(const void* owner) noexcept override;
  [[nodiscard]] WaitResult refuse(std::uint64_t cost, WaitOutcome outcome) noexcept override;
  void grant_due() noexcept override;
  [[nodiscard]] std::int64_t now() const noexcept override;

  /// Takes for the time at which it can be had, unless that is more than `max_wait` ns from now.
  [[nodiscard]] internal::Reserved reserve(std::uint64_t cost, std::int64_t max_wait, std::int64_t now);
  /// Gives back what `held` took, and ends it.
  Decision cancel(void* held, std::int64_t now) noexcept override;
  /// Ends it without giving anything back.
  void keep(void* held) noexcept override;

  /// Nobody waits, and no reservation is outstanding.
  [[nodiscard]] bool is_idle() noexcept;
  /// The bucket's numbers were `old` and are others now. Precondition: the caller keeps everybody else from the numbers
  /// (Account::keep_numbers). Those who have left by that are added to `left`.
  void renumber(const algorithm::TokenBucket& old, std::int64_t now, Left& left);

  /// The line's lock, and the numbers kept as they are.
  struct Lock {
    std::shared_lock<std::shared_mutex> numbers;
    std::unique_lock<std::mutex> line;
    void unlock() {
      line.unlock();
      if (numbers.owns_lock()) numbers.unlock();
    }
  };
  [[nodiscard]] Lock lock() {
    auto numbers = account_.keep_numbers();
    return {std::move(numbers), std::unique_lock(mutex_)};
  }

  /// A verb that is not a charge. Whoever carries one out has one of these meanwhile; it holds the lock.
  ///
  ///     Queue::Verb verb(queue, Kind::charge, now);
  ///     …change the bucket's state: state = verb.above(tokens, f(verb.beneath(state, at)), at)…
  ///
  /// So a verb changes what the bucket holds beside those who wait; and they find their times anew.
  class Verb {
   public:
    Verb(Queue& queue, Kind kind, std::int64_t now);
    Verb(const Verb&) = delete;
    Verb& operator=(const Verb&) = delete;
    ~Verb();

    [[nodiscard]] State beneath(const algorithm::TokenBucket& tokens, const State& state, std::int64_t at) const;
    [[nodiscard]] State above(const algorithm::TokenBucket& tokens, const State& base, std::int64_t at);

   private:
    Queue& queue_;
    Kind kind_;
    Lock lock_;
    Left left_;
    Scale scale_;
    Int128 base_ = 0;
    std::int64_t at_ = 0;
    bool changed_ = false;
  };

 private:
  void clock_moved() noexcept override { grant_due(); }

  Line& line();
  [[nodiscard]] TokenLine* tokens() const;
  // Grants what is due.
  void advance(std::int64_t now, Left& left);
  // The position is made what the order of the line says, to the part.
  void straighten(std::int64_t now);
  // Takes a waiter out of the line and gives back what it took.
  void remove(internal::Waiter& waiter, std::int64_t now, Left& left);
  // What those who failed are told.
  void explain(const Left& failed, std::int64_t now);
  void tell_first(bool again);

  Account& account_;
  const Order order_;
  std::mutex mutex_;
  std::unique_ptr<Line> line_;  // once somebody waits or reserves
  const internal::Waiter* leader_ = nullptr;
  std::int64_t leader_ready_ = 0;

  std::once_flag clock_known_;
  std::atomic<const Clock*> clock_{nullptr};
  std::atomic<bool> moved_by_hand_{false};
};

}  // namespace sluice::waiting
