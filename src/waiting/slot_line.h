// The line at a leaky bucket.
#pragma once

#include <cstdint>

#include "waiting/line.h"

namespace sluice::waiting {

/// Each has the slots that try_acquire gave it, and is granted at the first of them. The slots of one who leaves go to
/// those behind, as far as theirs follow without a gap: slots given to callers of try_acquire and reserve keep their
/// time, and nobody moves past them. What is then free at the end is given back to the bucket if nobody has a slot
/// behind it, and is lost otherwise. Joining, granting and leaving are O(1).
class SlotLine final : public Line {
 public:
  [[nodiscard]] Offer offer(const Book& book, State& state, std::int64_t at, std::uint64_t cost,
                            std::int64_t deadline) const override;
  void join(Waiter& waiter, const Offer& offer) override;
  Int128 grant_first() override;
  [[nodiscard]] Int128 position_without(const Waiter& waiter, Int128 position, std::int64_t at) const override;
  void leave(Waiter& waiter, std::int64_t at) override;
  [[nodiscard]] Int128 beneath(Int128 position) const override { return position; }
  [[nodiscard]] Int128 above(const Scale& scale, Int128 base, std::int64_t at, Kind kind) const override;
  void rearrange(const Scale& scale, Int128 base, std::int64_t at, Kind kind, Left& failed) override;

 private:
  [[nodiscard]] Int128 start_of(const Waiter& waiter) const;
  void set_start(Waiter& waiter, Int128 start, std::int64_t at) const;
  void find_first_start(std::uint64_t run, std::int64_t at);
  void keep_times(const Scale& scale);
  void give_new_slots(Int128 base, std::int64_t at);

  // A run is slots of waiters that follow each other without a gap. A waiter's note of its start is out of date once
  // somebody ahead in its run has left; it is right for the first of a run, and then start_ goes on from there.
  std::uint64_t run_ = 0;  // of the last in the line
  Int128 run_end_ = 0;
  Int128 start_ = 0;  // of the first one's slots
};

}  // namespace sluice::waiting
