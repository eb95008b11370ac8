// The line at a token bucket.
#pragma once

#include <cstdint>
#include <list>

#include "waiting/line.h"

namespace sluice::waiting {

/// Each is granted at the first tick at which try_acquire would succeed if it were called at every tick by the first in
/// the line, and the bucket is charged as try_acquire would charge it then. All costs are taken from the bucket as
/// their owners join, so that nobody overtakes.
///
/// Reservations stand in the line, too, but keep their instants: when somebody ahead of them leaves, they don't move
/// up. So what was taken comes back only as far as the bucket could still hold it at each of those instants. A
/// reservation of cost n for the instant v makes of a position P max(P, c·v) + n·p. Were the position lower after all
/// of them, then more than burst + rate·w could be had in some window w.
///
/// Join, grant and leave are O(1) while no reservation is outstanding and, if a tick refills more than one part, costs
/// are smaller than the burst; else O(length).
class TokenLine final : public Line {
 public:
  /// A reservation. Its address stays.
  struct Held {
    std::uint64_t turn = 0;
    std::uint64_t cost = 0;
    std::int64_t ready = 0;
    Int128 charge = 0;       ///< by how much it moves the position; 0 once its time has come
    Int128 end = 0;          ///< the position after it, without what is for later instants; not more than it is
    bool pending = true;     ///< its time is to come
    bool owned = true;       ///< it may still be cancelled
    bool forgotten = false;  ///< the bucket was reset
  };

  [[nodiscard]] Offer offer(const Book& book, State& state, std::int64_t at, std::uint64_t cost,
                            std::int64_t deadline) const override;
  void join(Waiter& waiter, const Offer& offer) override;
  Int128 grant_first() override;
  [[nodiscard]] Int128 position_without(const Waiter& waiter, Int128 position, std::int64_t at) const override;
  void leave(Waiter& waiter, std::int64_t at) override;
  [[nodiscard]] Int128 beneath(Int128 position) const override;
  [[nodiscard]] Int128 above(const Scale& scale, Int128 base, std::int64_t at, Kind kind) const override;
  void rearrange(const Scale& scale, Int128 base, std::int64_t at, Kind kind, Left& failed) override;

  /// Does it hold the bucket's position by its own count?
  [[nodiscard]] bool is_engaged() const { return first_ != nullptr || pending_ != 0; }
  /// That count. Precondition: it is engaged, or was before somebody was granted or a reservation's time came.
  [[nodiscard]] Int128 end() const { return base_ + waiting_parts_ + held_parts_; }

  /// Others may charge the bucket while reservations are outstanding, when what was cancelled left room before them.
  /// The position as it is after that, with what they took taken by `at`. Precondition: is_engaged().
  [[nodiscard]] Int128 position_after_others(Int128 position, std::int64_t at) const;
  /// `position`: the one before position_after_others().
  void count_others(Int128 position, std::int64_t at);

  /// The position isn't quite what the order of the line makes it: rearrange before somebody joins.
  [[nodiscard]] bool is_stale() const { return stale_ && first_ != nullptr; }

  using Reservations = std::list<Held>;
  /// Makes `one`, a list of one, a reservation with what was offered.
  Held& hold(Reservations& one, std::uint64_t cost, const Offer& offer);
  [[nodiscard]] bool has_reservations() const { return pending_ != 0; }
  /// Has the time come of the first reservation that is outstanding?
  [[nodiscard]] bool has_due_reservation(std::int64_t now) const;
  /// It has. Returns by how much the position must move.
  Int128 pass_reservation();
  /// The position once a reservation is cancelled.
  [[nodiscard]] Int128 position_without(const Held& held, Int128 position, std::int64_t at) const;
  /// `position`: the one before position_without().
  void cancel(Held& held, Int128 position, std::int64_t at);
  /// It won't be cancelled.
  void keep(Held& held);

 private:
  enum class Judge : std::uint8_t { no, yes };
  struct Ignore;

  // Goes through the line from the position `base`: stays(entry, before, after, ready) for each who stays, goes(waiter,
  // outcome) for each who can't. Returns the position at the end.
  template <typename Self, typename Stays, typename Goes>
  static Int128 walk(Self& self, const Scale& scale, Int128 base, std::int64_t at, Judge judge, const void* skipped,
                     Stays stays, Goes goes);
  [[nodiscard]] Int128 end_of_walk(const Scale& scale, Int128 base, std::int64_t at, Judge judge,
                                   const void* skipped) const;
  void assign(Int128 base, std::int64_t at, Judge judge, Left& failed);
  void assign(Int128 base, std::int64_t at);
  [[nodiscard]] Int128 first_position() const;
  void find_first_ready(std::int64_t not_before);
  [[nodiscard]] Int128 base_after_others(Int128 position, std::int64_t at) const;
  [[nodiscard]] Int128 least_end(const Held& held) const;
  [[nodiscard]] Int128 given_back(const Held& held, std::int64_t at) const;
  [[nodiscard]] Int128 charge_of(const Waiter& waiter) const;
  [[nodiscard]] bool is_tight(std::uint64_t cost) const;
  void remove(Waiter& waiter);
  void erase(Held& held);
  void forget_reservations();
  void renumber_reservations(const Scale& scale, std::int64_t at);

  Int128 base_ = 0;           // the position without all that the line took; while it is engaged
  Int128 waiting_parts_ = 0;  // what the waiters took
  Int128 held_parts_ = 0;     // what outstanding reservations took
  std::size_t pending_ = 0;   // outstanding reservations
  std::size_t tight_ = 0;     // waiters for whom the bucket must be all but full
  Reservations held_;
  std::int64_t not_before_ = INT64_MIN;  // nobody is granted for an earlier instant
  bool stale_ = false;
};

}  // namespace sluice::waiting
