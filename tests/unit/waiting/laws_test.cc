// Laws of waiting and reserving, on random operations, against a slow exact model.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "algorithm/int128.h"
#include "sluice/leaky_bucket.h"
#include "sluice/testing/simulated_clock.h"
#include "sluice/token_bucket.h"
#include "tests/unit/waiting/standing.h"

namespace sluice {
namespace {

using algorithm::Int128;
using Random = std::mt19937_64;

std::uint64_t pick(Random& random, std::uint64_t from, std::uint64_t to) {
  return std::uniform_int_distribution<std::uint64_t>(from, to)(random);
}

TokenBucket::Numbers random_numbers(Random& random) {
  // Whole ns a token, parts of an ns, several tokens an ns; bursts that a cost fills, and wide ones.
  constexpr std::uint64_t kRates[] = {1, 2, 3, 7, 10, 333, 1'000, 1'500, 2'999};
  return {.rate = kRates[pick(random, 0, std::size(kRates) - 1)],
          .period = std::chrono::microseconds(pick(random, 1, 3)),
          .burst = pick(random, 0, 1) == 0 ? pick(random, 1, 3) : pick(random, 4, 40)};
}

// The numbers as c parts refilled per ns and p parts per token.
struct Parts {
  explicit Parts(const TokenBucket::Numbers& numbers) {
    const auto period = static_cast<std::uint64_t>(numbers.period.count());
    const std::uint64_t common = std::gcd(numbers.rate, period);
    c = static_cast<Int128>(numbers.rate / common);
    p = static_cast<Int128>(period / common);
    capacity = static_cast<Int128>(numbers.burst) * p;
    burst = numbers.burst;
  }
  Int128 c = 0;
  Int128 p = 0;
  Int128 capacity = 0;
  std::uint64_t burst = 0;
};

// A bucket whose first in line asks at every tick: nothing is told in advance, everybody is served when it can be.
class SlowLine {
 public:
  struct One {
    std::size_t id = 0;
    std::uint64_t cost = 0;
    std::int64_t deadline = 0;
  };
  struct End {
    std::size_t id = 0;
    WaitOutcome outcome = WaitOutcome::granted;
    std::int64_t at = 0;
  };

  SlowLine(const TokenBucket::Numbers& numbers, std::int64_t start) : parts_(numbers), last_(start) {}

  [[nodiscard]] bool empty() const { return line_.empty(); }
  [[nodiscard]] Int128 missing(std::int64_t now) const {
    return std::max<Int128>(missing_ - parts_.c * (now - last_), 0);
  }

  // Serves everybody whose tick is not after `now`.
  void run(std::int64_t now, std::vector<End>& ends) {
    while (!line_.empty()) {
      const std::int64_t tick = first_tick(line_.front().cost);
      if (tick > now) break;
      take(line_.front().cost, tick);
      ends.push_back({line_.front().id, WaitOutcome::granted, tick});
      line_.pop_front();
    }
    move_to(now);
  }
  bool try_acquire(std::uint64_t cost, std::int64_t now) {
    if (!line_.empty() || cost > parts_.burst || first_tick(cost) > now) return false;
    take(cost, now);
    return true;
  }
  void join(const One& one, std::int64_t now, std::vector<End>& ends) {
    if (one.cost > parts_.burst) return ends.push_back({one.id, WaitOutcome::never, now});
    line_.push_back(one);
    const std::int64_t tick = ticks().back();
    if (tick > one.deadline) {
      line_.pop_back();
      ends.push_back({one.id, WaitOutcome::deadline, tick});
    }
    run(now, ends);
  }
  void leave(std::size_t id, std::int64_t now, std::vector<End>& ends) {
    const auto found = std::find_if(line_.begin(), line_.end(), [&](const One& one) { return one.id == id; });
    line_.erase(found);
    ends.push_back({id, WaitOutcome::stopped, now});
    run(now, ends);
  }
  void refund(std::uint64_t cost, std::int64_t now, std::vector<End>& ends) {
    missing_ = std::max<Int128>(missing_ - static_cast<Int128>(cost) * parts_.p, 0);
    after_verb(now, ends);
  }
  void penalize(std::uint64_t cost, std::int64_t now, std::vector<End>& ends) {
    const Int128 deepest = std::max(missing_, 2 * parts_.capacity);
    missing_ = std::min(missing_ + static_cast<Int128>(cost) * parts_.p, deepest);
    after_verb(now, ends);
  }
  void reset(std::int64_t now, std::vector<End>& ends) {
    missing_ = 0;
    after_verb(now, ends);
  }
  void set_limit(const TokenBucket::Numbers& numbers, std::int64_t now, std::vector<End>& ends) {
    const Parts next(numbers);
    if (next.c != parts_.c || next.p != parts_.p || next.burst != parts_.burst) {
      if (missing_ != 0) {
        const Int128 level = (parts_.capacity - missing_) * next.p;
        const Int128 tokens = level >= 0 ? level / parts_.p : -((-level + parts_.p - 1) / parts_.p);
        missing_ = next.capacity - std::min(tokens, next.capacity);
      }
      parts_ = next;
    }
    after_verb(now, ends);
  }

 private:
  [[nodiscard]] std::int64_t first_tick(std::uint64_t cost) const {
    const Int128 lacking = missing_ + static_cast<Int128>(cost) * parts_.p - parts_.capacity;
    return lacking <= 0 ? last_ : last_ + static_cast<std::int64_t>((lacking + parts_.c - 1) / parts_.c);
  }
  void move_to(std::int64_t now) {
    missing_ = missing(now);
    last_ = now;
  }
  void take(std::uint64_t cost, std::int64_t tick) {
    move_to(tick);
    missing_ += static_cast<Int128>(cost) * parts_.p;
  }
  // When each would be served if nothing else came.
  [[nodiscard]] std::vector<std::int64_t> ticks() const {
    SlowLine copy = *this;
    std::vector<std::int64_t> result;
    for (const One& one : line_) {
      const std::int64_t tick = copy.first_tick(one.cost);
      copy.take(one.cost, tick);
      result.push_back(tick);
    }
    return result;
  }
  void after_verb(std::int64_t now, std::vector<End>& ends) {
    for (std::size_t i = 0; i < line_.size();) {
      if (line_[i].cost > parts_.burst) {
        ends.push_back({line_[i].id, WaitOutcome::never, now});
        line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (ticks()[i] > line_[i].deadline) {
        ends.push_back({line_[i].id, WaitOutcome::deadline, now});
        line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    run(now, ends);
  }

  Parts parts_;
  std::int64_t last_;
  Int128 missing_ = 0;
  std::deque<One> line_;
};

// Runs the same random operations on a bucket with a line and on the model.
class LineAgainstModel {
 public:
  explicit LineAgainstModel(std::uint64_t seed)
      : random_(seed), numbers_(random_numbers(random_)), model_(numbers_, now()), bucket_(numbers_, &clock_) {}

  void run(int operations) {
    for (int i = 0; i < operations && !::testing::Test::HasFailure(); ++i) {
      step();
      compare();
    }
    for (const std::unique_ptr<Standing>& one : everybody_) {
      if (!one->done()) one->leave(bucket_);
    }
  }

 private:
  [[nodiscard]] std::int64_t now() const { return clock_.now().steady; }
  std::uint64_t cost() { return pick(random_, 1, numbers_.burst + (pick(random_, 0, 20) == 0 ? 1 : 0)); }

  void step() {
    switch (pick(random_, 0, 15)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const auto by = static_cast<std::int64_t>(pick(random_, 0, pick(random_, 0, 1) == 0 ? 20 : 3'000));
        clock_.advance(std::chrono::nanoseconds(by));
        model_.run(now(), ends_);
        break;
      }
      case 4: {
        const std::uint64_t cost = this->cost();
        EXPECT_EQ(bucket_.try_acquire(cost).allowed, model_.try_acquire(cost, now()));
        break;
      }
      case 5:
        leave_somebody();
        break;
      case 6:
        verb();
        break;
      default:
        join();
    }
  }

  void join() {
    const std::uint64_t cost = this->cost();
    const std::int64_t deadline =
        pick(random_, 0, 2) == 0 ? now() + static_cast<std::int64_t>(pick(random_, 0, 5'000)) : INT64_MAX;
    Standing& one = *everybody_.emplace_back(std::make_unique<Standing>());
    one.join(bucket_, cost, Deadline(Time{.steady = deadline, .utc = 0}));
    model_.join({everybody_.size() - 1, cost, deadline}, now(), ends_);
  }

  void leave_somebody() {
    std::vector<std::size_t> waiting;
    for (std::size_t id = 0; id < everybody_.size(); ++id) {
      if (!everybody_[id]->done()) waiting.push_back(id);
    }
    if (waiting.empty()) return;
    const std::size_t id = waiting[pick(random_, 0, waiting.size() - 1)];
    EXPECT_TRUE(everybody_[id]->leave(bucket_));
    model_.leave(id, now(), ends_);
  }

  void verb() {
    switch (pick(random_, 0, 9)) {
      case 0:
        bucket_.reset();
        return model_.reset(now(), ends_);
      case 1: {
        numbers_ = random_numbers(random_);
        bucket_.set_limit(numbers_);
        return model_.set_limit(numbers_, now(), ends_);
      }
      case 2:
      case 3:
      case 4: {
        const std::uint64_t cost = this->cost();
        bucket_.penalize(cost);
        return model_.penalize(cost, now(), ends_);
      }
      default: {
        const std::uint64_t cost = this->cost();
        bucket_.refund(cost);
        return model_.refund(cost, now(), ends_);
      }
    }
  }

  void compare() {
    for (const SlowLine::End& end : ends_) {
      ASSERT_TRUE(everybody_[end.id]->done()) << "id " << end.id;
      const WaitResult& result = everybody_[end.id]->result();
      ASSERT_EQ(result.outcome, end.outcome) << "id " << end.id;
      if (result) {
        ASSERT_EQ(result.ready_at, end.at) << "id " << end.id;
      }
      ++ended_;
    }
    ends_.clear();
    const auto done = static_cast<std::size_t>(
        std::count_if(everybody_.begin(), everybody_.end(), [](const auto& one) { return one->done(); }));
    ASSERT_EQ(done, ended_);
    if (model_.empty()) {
      const Parts parts(numbers_);
      const Int128 missing = model_.missing(now());
      const Int128 reset_after = (missing + parts.c - 1) / parts.c;
      ASSERT_EQ(bucket_.peek(0).reset_after.value().count(), static_cast<std::int64_t>(reset_after));
    }
  }

  Random random_;
  SimulatedClock clock_;
  TokenBucket::Numbers numbers_;
  SlowLine model_;
  TokenBucket bucket_;
  std::vector<std::unique_ptr<Standing>> everybody_;
  std::vector<SlowLine::End> ends_;
  std::size_t ended_ = 0;
};

TEST(WaitingLaws, EverybodyIsServedWhenTheFirstInLineCouldHaveTakenIt) {
  for (std::uint64_t seed = 1; seed <= 1'500 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    LineAgainstModel(seed).run(150);
  }
}

// What is used of a bucket, and when: kept to check that no window has more than burst + rate·w.
class Acts {
 public:
  explicit Acts(const TokenBucket::Numbers& numbers) : parts_(numbers) {}

  std::size_t add(std::int64_t at, std::uint64_t cost) {
    acts_.push_back({at, cost});
    return acts_.size() - 1;
  }
  void remove(std::size_t act) { acts_[act].cost = 0; }

  // The most by which some window exceeds its bound, in parts of a token; not above 0 when none does. A window's acts,
  // first to last, need burst + rate·w: that is a bucket that never runs dry.
  [[nodiscard]] bool within_bound() const {
    std::vector<Act> acts = acts_;
    std::ranges::sort(acts, {}, &Act::at);  // in what order acts of one instant come makes no difference
    Int128 full_at = parts_.c * acts.front().at;
    for (const Act& act : acts) {
      if (act.cost == 0) continue;
      full_at = std::max(full_at, parts_.c * act.at) + static_cast<Int128>(act.cost) * parts_.p;
      if (full_at - parts_.c * act.at > parts_.capacity) return false;
    }
    return true;
  }

 private:
  struct Act {
    std::int64_t at;
    std::uint64_t cost;
  };
  Parts parts_;
  std::vector<Act> acts_{{0, 0}};
};

// Random reservations, cancellations, charges and waits at one bucket.
class ReservationsWithinBound {
 public:
  ReservationsWithinBound(std::uint64_t seed, bool with_waits)
      : random_(seed),
        numbers_(random_numbers(random_)),
        bucket_(numbers_, &clock_),
        acts_(numbers_),
        with_waits_(with_waits) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      step();
      note_grants();
    }
    held_.clear();  // cancels, too
    for (Waiting& one : waiting_) one.standing->leave(bucket_);
    note_grants();
    ASSERT_TRUE(acts_.within_bound());
  }

 private:
  struct Held {
    Reservation reservation;
    std::size_t act;
    Acts* acts;
    ~Held() {
      if (act != 0) acts->remove(act);
    }
    Held(Reservation of, std::size_t as, Acts* in) : reservation(std::move(of)), act(as), acts(in) {}
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
  };
  struct Waiting {
    std::unique_ptr<Standing> standing;
    std::uint64_t cost;
  };

  [[nodiscard]] std::int64_t now() const { return clock_.now().steady; }
  std::uint64_t cost() { return pick(random_, 1, numbers_.burst); }

  void step() {
    switch (pick(random_, 0, 11)) {
      case 0:
      case 1:
        clock_.advance(std::chrono::nanoseconds(pick(random_, 0, pick(random_, 0, 1) == 0 ? 30 : 3'000)));
        break;
      case 2:
      case 3: {
        const std::uint64_t cost = this->cost();
        if (bucket_.try_acquire(cost).allowed) acts_.add(now(), cost);
        break;
      }
      case 4:
      case 5:
      case 6: {
        const std::uint64_t cost = this->cost();
        Reservation one = bucket_.reserve(cost, std::chrono::nanoseconds(pick(random_, 0, 20'000)));
        if (one) {
          const std::size_t act = acts_.add(one.ready_at(), cost);
          held_.emplace_back(std::move(one), act, &acts_);
        }
        break;
      }
      case 7:
      case 8:
        if (!held_.empty()) held_.erase(somebody(held_));  // cancels
        break;
      case 9:
        if (!held_.empty()) {
          const auto one = somebody(held_);
          one->reservation.commit();
          one->act = 0;
          held_.erase(one);
        }
        break;
      case 10:
        if (with_waits_) {
          const std::uint64_t cost = this->cost();
          Waiting one{std::make_unique<Standing>(), cost};
          one.standing->join(bucket_, cost);
          waiting_.push_back(std::move(one));
        }
        break;
      default:
        if (!waiting_.empty()) somebody(waiting_)->standing->leave(bucket_);
    }
  }

  template <typename Container>
  typename Container::iterator somebody(Container& container) {
    return std::next(container.begin(), static_cast<std::ptrdiff_t>(pick(random_, 0, container.size() - 1)));
  }

  void note_grants() {
    waiting_.remove_if([&](const Waiting& one) {
      if (one.standing->granted()) acts_.add(one.standing->result().ready_at, one.cost);
      return one.standing->done();
    });
  }

  Random random_;
  SimulatedClock clock_;
  TokenBucket::Numbers numbers_;
  TokenBucket bucket_;
  Acts acts_;
  const bool with_waits_;
  std::list<Held> held_;
  std::list<Waiting> waiting_;
};

TEST(WaitingLaws, WhateverIsCancelledNoWindowHasMoreThanItsBound) {
  for (std::uint64_t seed = 1; seed <= 6'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ReservationsWithinBound(seed, false).run(static_cast<int>(seed % 100) + 5);
  }
}

TEST(WaitingLaws, NorWhereReservationsAndWaitsStandInOneLine) {
  for (std::uint64_t seed = 1; seed <= 6'000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ReservationsWithinBound(seed, true).run(static_cast<int>(seed % 100) + 5);
  }
}

// A queue of slots. Each slot is somebody's who waits, or given away; those who wait hold runs of slots in a row, and
// move up within them.
class SlowSlots {
 public:
  struct One {
    std::size_t id = 0;
    std::uint64_t cost = 0;
    Int128 start = 0;    // in parts; others' slots lie before when it isn't where the one before ends
    bool given = false;  // to a caller of try_acquire
  };

  SlowSlots(const LeakyBucket::Numbers& numbers, std::int64_t start)
      : parts_({.rate = numbers.rate, .period = numbers.period, .burst = numbers.queue + 1}), end_(parts_.c * start) {}

  // The slots' start, or -1: no room.
  Int128 take(std::size_t id, std::uint64_t cost, bool given, std::int64_t now) {
    const Int128 start = std::max(end_, parts_.c * now);
    const Int128 end = start + static_cast<Int128>(cost) * parts_.p;
    if (end - parts_.c * now > parts_.capacity) return -1;
    line_.push_back({id, cost, start, given});
    end_ = end;
    return start;
  }
  void leave(std::size_t id) {
    const auto gone = std::find_if(line_.begin(), line_.end(), [&](const One& one) { return one.id == id; });
    const Int128 freed = static_cast<Int128>(gone->cost) * parts_.p;
    Int128 next = gone->start + freed;
    auto behind = line_.erase(gone);
    while (behind != line_.end() && !behind->given && behind->start == next) {
      next += static_cast<Int128>(behind->cost) * parts_.p;
      behind->start -= freed;
      ++behind;
    }
    if (next == end_) end_ -= freed;
  }
  // Those who wait and whose tick is not after `now`, with their ticks.
  std::vector<std::pair<std::size_t, std::int64_t>> run(std::int64_t now) {
    std::vector<std::pair<std::size_t, std::int64_t>> granted;
    while (!line_.empty() && line_.front().start <= parts_.c * now) {
      const One one = line_.front();
      line_.pop_front();
      if (!one.given) {
        granted.emplace_back(one.id, static_cast<std::int64_t>((one.start + parts_.c - 1) / parts_.c));
      }
    }
    return granted;
  }

 private:
  Parts parts_;
  Int128 end_;
  std::deque<One> line_;
};

TEST(WaitingLaws, ThoseWhoWaitAtALeakyBucketMoveUpWithinTheirRuns) {
  for (std::uint64_t seed = 1; seed <= 2'000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    SimulatedClock clock;
    const auto now = [&] { return clock.now().steady; };
    const TokenBucket::Numbers some = random_numbers(random);
    const LeakyBucket::Numbers numbers{.rate = some.rate, .period = some.period, .queue = pick(random, 3, 40)};
    LeakyBucket queue(numbers, &clock);
    SlowSlots model(numbers, now());
    std::vector<std::unique_ptr<Standing>> everybody;
    std::vector<std::size_t> waiting;
    const auto drop = [&](std::size_t id) { std::erase(waiting, id); };
    for (int i = 0; i < 120; ++i) {
      const std::uint64_t what = pick(random, 0, 9);
      if (what <= 1) {
        clock.advance(std::chrono::nanoseconds(pick(random, 0, 1'500)));
        for (const auto& [id, tick] : model.run(now())) {
          ASSERT_TRUE(everybody[id]->granted());
          ASSERT_EQ(everybody[id]->result().ready_at, tick);
          drop(id);
        }
      } else if (what <= 3 && !waiting.empty()) {
        const std::size_t id = waiting[pick(random, 0, waiting.size() - 1)];
        ASSERT_TRUE(everybody[id]->leave(queue));
        model.leave(id);
        drop(id);
      } else if (what <= 5) {
        const std::uint64_t cost = pick(random, 1, 3);
        ASSERT_EQ(queue.try_acquire(cost).allowed, model.take(SIZE_MAX, cost, true, now()) >= 0);
      } else {
        const std::uint64_t cost = pick(random, 1, 3);
        const std::size_t id = everybody.size();
        Standing& one = *everybody.emplace_back(std::make_unique<Standing>());
        one.join(queue, cost);
        const Int128 start = model.take(id, cost, false, now());
        if (start < 0) {
          ASSERT_EQ(one.result().outcome, WaitOutcome::full);
        } else {
          waiting.push_back(id);
        }
        for (const auto& [due, tick] : model.run(now())) {
          ASSERT_TRUE(everybody[due]->granted());
          drop(due);
        }
      }
      for (const std::size_t id : waiting) ASSERT_FALSE(everybody[id]->done());
    }
    for (const std::size_t id : waiting) everybody[id]->leave(queue);
  }
}

}  // namespace
}  // namespace sluice
