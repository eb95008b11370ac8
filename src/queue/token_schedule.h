// When tokens that were reserved from a shared bucket may be used, one by one.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>

#include "sluice/limit.h"

namespace sluice::queue {

/// The tokens of one (limit, key) that a drainer has reserved and not used, with their times. What is reserved as one
/// amount is spread at the limit's rate, so that deliveries stand in a straight line and never in bunches of a burst.
/// Deliveries that come late catch up, as the tokens are kept and the rate must not suffer, but at twice the rate at
/// most, and never so that any second, however it is cut, has more than the limit gives in a second and one. All times
/// are steady ns. Pure; not thread-safe.
class TokenSchedule {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  /// The limit's rate must not be 0.
  explicit TokenSchedule(const Limit& limit);

  /// `count` more tokens are reserved; the last of them may be used at `last`, the others before it, at the rate.
  void add(std::uint64_t count, std::int64_t last);
  [[nodiscard]] std::uint64_t left() const { return left_; }
  /// When `cost` tokens may be used together; kNone: fewer are left.
  [[nodiscard]] std::int64_t due(std::uint64_t cost) const;
  /// Uses them. Precondition: due(cost) <= now.
  void use(std::uint64_t cost, std::int64_t now);
  /// Gives up all that is left and tells how many: to be refunded.
  [[nodiscard]] std::uint64_t clear();
  /// By the bucket, not by this schedule: when the last reserved token is there. 0: none was ever reserved.
  [[nodiscard]] std::int64_t last() const { return last_; }
  /// How long the rate takes for `count` tokens, rounded down; at most about 292 years.
  [[nodiscard]] std::int64_t length_of(std::uint64_t count) const;

 private:
  struct Span {
    std::uint64_t count = 0;
    std::int64_t last = 0;
  };

  /// What was used together.
  struct Use {
    std::uint64_t count = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
  };

  const Limit limit_;
  const std::int64_t slack_;      ///< how far ahead of twice the rate they may be
  const std::uint64_t a_second_;  ///< most tokens in a second
  const std::int64_t window_;     ///< a second and a little
  std::deque<Span> spans_;
  std::uint64_t left_ = 0;
  std::int64_t last_ = 0;
  std::int64_t next_ = std::numeric_limits<std::int64_t>::min();  ///< not before this, at twice the rate
  std::deque<Use> used_;                                          ///< within the last second
  std::uint64_t used_count_ = 0;
};

}  // namespace sluice::queue
