// One who stands in a limiter's line without a thread: what it is told is kept.
#pragma once

#include <cstdint>

#include "sluice/deadline.h"
#include "sluice/internal/waits.h"
#include "sluice/wait_result.h"
#include "sluice/waiting_verbs.h"

namespace sluice {

class Standing final : public internal::Waiter {
 public:
  [[nodiscard]] bool lead(std::int64_t /*ready*/) noexcept override { return true; }
  void finish(const WaitResult& result) noexcept override {
    done_ = true;
    result_ = result;
  }

  [[nodiscard]] bool done() const { return done_; }
  /// Precondition: done().
  [[nodiscard]] const WaitResult& result() const { return result_; }
  [[nodiscard]] bool granted() const { return done_ && result_.outcome == WaitOutcome::granted; }

  template <typename Limiter>
  Standing& join(Limiter& limiter, std::uint64_t cost = 1, const Deadline& deadline = {}) {
    return join_line(internal_waits_of(limiter), cost, deadline);
  }
  Standing& join_line(internal::Waits& line, std::uint64_t cost, const Deadline& deadline) {
    done_ = false;
    if (const auto at_once = line.enqueue(*this, cost, deadline)) finish(*at_once);
    return *this;
  }
  template <typename Limiter>
  bool leave(Limiter& limiter) {
    return internal_waits_of(limiter).withdraw(*this);
  }

 private:
  bool done_ = false;
  WaitResult result_;
};

}  // namespace sluice
