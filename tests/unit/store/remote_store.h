// A shared store as a daemon sees it: tests decide when it answers.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "store/store.h"

namespace sluice::store {

/// A store somewhere else, with a network in between that a test may hold up.
class RemoteStore final : public Store {
 public:
  explicit RemoteStore(MemoryStore& shared) : shared_(shared) {}
  Progress check(Check& check, Time now) override {
    ++asked;
    if (failure != Failure::none) {
      check.failure = failure;
      return Progress::answered;
    }
    (void)shared_.check(check, now);
    if (!later) return Progress::answered;
    pending.push_back(&check);
    return Progress::pending;
  }
  Progress apply(Check& check, Time now) override {
    ++applied;
    check.failure = failure;
    if (failure == Failure::none) (void)shared_.apply(check, now);
    if (!later) return Progress::answered;
    pending.push_back(&check);
    return Progress::pending;
  }
  void cancel(Check& check) override { std::erase(pending, &check); }
  [[nodiscard]] bool ready() const override { return is_ready; }
  void answer_pending() {
    for (Check* check : std::exchange(pending, {})) check->complete();
  }

  int asked = 0;    ///< checks
  int applied = 0;  ///< verbs and peeks
  bool later = false;
  Failure failure = Failure::none;
  bool is_ready = true;
  std::deque<Check*> pending;

 private:
  MemoryStore& shared_;
};

}  // namespace sluice::store
