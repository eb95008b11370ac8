// A clock that stands still and a store that answers when it is told to, for tests of fronts.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "sluice/clock.h"
#include "store/memory/memory_store.h"
#include "store/store.h"

namespace sluice::front {

class ManualClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return time; }
  void advance(std::chrono::nanoseconds by) {
    time.steady += by.count();
    time.utc += by.count();
  }
  Time time{.steady = 1'000'000'000'000, .utc = 1'767'225'600'000'000'000};  // 2026-01-01 00:00 UTC
};

/// Answers when it is told to, from a memory store; or not at all.
class SlowStore final : public store::Store {
 public:
  store::Progress check(store::Check& check, Time now) override {
    if (!slow) return memory_.check(check, now);
    waiting.push_back({&check, now});
    return store::Progress::pending;
  }
  store::Progress apply(store::Check& check, Time now) override {
    check.failure = failure;
    if (failure != store::Failure::none) return store::Progress::answered;
    if (!slow) return memory_.apply(check, now);
    waiting.push_back({&check, now});
    return store::Progress::pending;
  }
  void cancel(store::Check& check) override {
    std::erase_if(waiting, [&check](const Waiting& one) { return one.check == &check; });
    ++cancelled;
  }
  [[nodiscard]] bool ready() const override { return is_ready; }

  /// Answers the check that has waited longest, or the newest.
  void answer(bool newest = false) {
    const Waiting one = newest ? waiting.back() : waiting.front();
    waiting.erase(newest ? waiting.end() - 1 : waiting.begin());
    ASSERT_EQ(one.check->verb != nullptr ? memory_.apply(*one.check, one.now) : memory_.check(*one.check, one.now),
              store::Progress::answered);
    one.check->complete();
  }
  /// As a store that has failed answers by `source`.
  void fail(Source source) {
    const Waiting one = waiting.front();
    waiting.erase(waiting.begin());
    for (Decision& decision : one.check->decisions) {
      decision.allowed = source == Source::fallback_allow;
      decision.source = source;
    }
    one.check->complete();
  }

  struct Waiting {
    store::Check* check;
    Time now;
  };
  bool slow = false;
  bool is_ready = true;
  store::Failure failure = store::Failure::none;  ///< of verbs
  int cancelled = 0;
  std::vector<Waiting> waiting;

 private:
  store::MemoryStore memory_{1000};
};

}  // namespace sluice::front
