// What the algorithms answer, in ticks.
#pragma once

#include <cstdint>

#include "algorithm/ticks.h"
#include "sluice/decision.h"

namespace sluice::algorithm {

/// Would a cost fit? Nothing is taken by asking.
struct Verdict {
  bool fits = true;
  Mark mark = Mark::none;        ///< fixed windows: what the answer is marked with
  std::int64_t retry_after = 0;  ///< 0 when it fits; kNever when it can never fit
  std::int64_t delay = 0;        ///< leaky bucket: when to act, if it fits

  /// Nothing is taken after all: it does not take the last token, nor has it a turn.
  void forget_turn() noexcept {
    mark = Mark::none;
    delay = 0;
  }
};

/// A state as figures.
struct View {
  std::uint64_t limit = 0;
  std::uint64_t remaining = 0;   ///< rounded down; a debt shows as 0
  std::int64_t reset_after = 0;  ///< rounded up; kNever when it never equals a fresh one
};

/// A verdict, and the state after it was carried out.
struct Outcome {
  Verdict verdict;
  View view;
};

}  // namespace sluice::algorithm
