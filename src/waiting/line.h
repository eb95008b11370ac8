// Who waits at one bucket, in which order and until when: the part that is pure. No lock, no clock, no bucket; all of
// it is under the lock of the Queue that owns it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithm/int128.h"
#include "algorithm/verdict.h"
#include "sluice/internal/waits.h"
#include "sluice/wait_result.h"
#include "waiting/account.h"

namespace sluice::waiting {

using algorithm::Int128;
using algorithm::Uint128;
using internal::Waiter;

/// A bucket's numbers as a scale of positions. The instant `now` is the point c·now; a bucket's position is the point
/// at which it will be full. A charge moves it by cost·p, and time doesn't move it.
struct Scale {
  Int128 c = 0;
  Int128 p = 1;
  Int128 capacity = 1;
  std::uint64_t limit = 1;

  Scale() = default;
  explicit Scale(const algorithm::TokenBucket& tokens)
      : c(static_cast<Int128>(tokens.parts_per_tick())),
        p(static_cast<Int128>(tokens.parts_per_token())),
        capacity(static_cast<Int128>(tokens.parts_when_full())),
        limit(tokens.limit()) {}

  [[nodiscard]] Int128 parts(std::uint64_t cost) const { return static_cast<Int128>(cost) * p; }
  /// First tick from `now` on that is not before `point`; kNever when there is none within 36 600 days.
  [[nodiscard]] std::int64_t tick(Int128 point, std::int64_t now) const;

  [[nodiscard]] Int128 position(const State& state, std::int64_t at) const;
  /// The state with that position; full when the position is not after `at`.
  [[nodiscard]] State state(Int128 position, std::int64_t at) const;
};

/// What a bucket answers to somebody who is ready to wait.
struct Offer {
  WaitOutcome outcome = WaitOutcome::granted;
  algorithm::Verdict verdict;
  std::int64_t ready = 0;  ///< if granted
  bool at_once = true;     ///< if granted: nothing to wait for
  Scale scale;
  Int128 before = 0;  ///< the bucket's positions
  Int128 after = 0;
};

/// What a verb does beside moving the bucket's position.
enum class Kind : std::uint8_t { charge, renumber, reset };

/// Those who have left a line and are to be told how: a list that runs through their places.
class Left {
 public:
  /// Precondition: it has left its line. Its place has the result.
  void add(Waiter& waiter);
  /// All of `others`, which are none then.
  void add_all(Left& others);
  [[nodiscard]] Waiter* first() const { return first_; }
  /// Tells all of them. They may be gone after that.
  void finish() noexcept;

 private:
  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
};

/// Positions are those of the bucket. Functions that are const plan; those that are not carry out the same.
class Line {
 public:
  Line() = default;
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  virtual ~Line() = default;

  [[nodiscard]] Waiter* first() const { return first_; }
  /// When the first one's time comes. Precondition: there is one.
  [[nodiscard]] std::int64_t first_ready() const { return first_ready_; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Takes the cost out of the state, for the time at which it can be had; if that is not after `deadline`.
  [[nodiscard]] virtual Offer offer(const Book& book, State& state, std::int64_t at, std::uint64_t cost,
                                    std::int64_t deadline) const = 0;
  /// To the end of the line, with what was offered and isn't to be had at once.
  virtual void join(Waiter& waiter, const Offer& offer) = 0;
  /// The first one's time has come: it leaves. Returns by how much the position must move.
  virtual Int128 grant_first() = 0;

  /// The position once `waiter` has left without using what it took.
  [[nodiscard]] virtual Int128 position_without(const Waiter& waiter, Int128 position, std::int64_t at) const = 0;
  virtual void leave(Waiter& waiter, std::int64_t at) = 0;

  /// The position without what those in the line took, which a verb may then change.
  [[nodiscard]] virtual Int128 beneath(Int128 position) const = 0;
  /// And with it again.
  [[nodiscard]] virtual Int128 above(const Scale& scale, Int128 base, std::int64_t at, Kind kind) const = 0;
  /// Those who can't wait any more leave.
  virtual void rearrange(const Scale& scale, Int128 base, std::int64_t at, Kind kind, Left& failed) = 0;

 protected:
  void append(Waiter& waiter);
  void unlink(Waiter& waiter);

  Waiter* first_ = nullptr;
  Waiter* last_ = nullptr;
  std::size_t size_ = 0;
  std::int64_t first_ready_ = 0;
  std::uint64_t turn_ = 0;
  Scale scale_;
};

}  // namespace sluice::waiting
