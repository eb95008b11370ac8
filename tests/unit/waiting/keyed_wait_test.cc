// Waiting by key: each key has a line of its own, by the same laws; and what is forgotten with it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sluice/keyed.h"
#include "sluice/testing/simulated_clock.h"
#include "tests/unit/waiting/standing.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class KeyedWaitTest : public ::testing::Test {
 protected:
  SimulatedClock clock_;
  std::int64_t start_ = clock_.now().steady;
  Keyed<TokenBucket> limiter_{{.rate = 1, .period = 1s, .burst = 3}, {.max_keys = 1'000, .clock = &clock_}};

  // One who stands in a key's line.
  struct One {
    std::shared_ptr<internal::Waits> line;
    std::unique_ptr<Standing> standing = std::make_unique<Standing>();
  };
  One join(const std::string& key, std::uint64_t cost = 1, const Deadline& deadline = {}) {
    One one{internal_waits_of(limiter_, key)};
    one.standing->join_line(*one.line, cost, deadline);
    return one;
  }
};

TEST_F(KeyedWaitTest, EachKeyHasALineOfItsOwn) {
  EXPECT_TRUE(limiter_.wait("a", 3));
  EXPECT_TRUE(limiter_.wait("b", 2));
  const One a = join("a");
  const One b = join("b", 2);
  const One c = join("c");
  EXPECT_TRUE(c.standing->granted());
  EXPECT_FALSE(limiter_.try_acquire("b").allowed);  // nobody overtakes
  clock_.advance(1s);
  EXPECT_TRUE(a.standing->granted());
  EXPECT_TRUE(b.standing->granted());
  EXPECT_EQ(a.standing->result().ready_at, start_ + 1'000'000'000);
}

TEST_F(KeyedWaitTest, VerbsMoveThoseWhoWait) {
  limiter_.try_acquire("a", 3);
  const One first = join("a", 2);
  const One second = join("a", 1);
  limiter_.refund("a", 1);
  clock_.advance(1s);
  EXPECT_TRUE(first.standing->granted());
  limiter_.penalize("a", 2);
  clock_.advance(2s);
  EXPECT_FALSE(second.standing->done());
  limiter_.reset("a");
  EXPECT_TRUE(second.standing->granted());
  EXPECT_EQ(limiter_.peek("a", 0).remaining, 2U);
}

TEST_F(KeyedWaitTest, NewNumbersMoveThoseWhoWaitAtAllKeys) {
  limiter_.try_acquire("a", 3);
  limiter_.try_acquire("b", 1);
  const One a = join("a", 2);
  const One large = join("b", 3);
  const One late = join("b", 2, 1h);
  limiter_.set_limit({.rate = 10, .period = 1s, .burst = 2});
  EXPECT_EQ(large.standing->result().outcome, WaitOutcome::never);
  EXPECT_TRUE(late.standing->granted());  // two tokens are left
  EXPECT_FALSE(a.standing->done());
  clock_.advance(200ms);
  EXPECT_TRUE(a.standing->granted());
  EXPECT_EQ(a.standing->result().ready_at, start_ + 200'000'000);
  EXPECT_EQ(limiter_.peek("a", 0).remaining, 0U);
}

TEST_F(KeyedWaitTest, ReservationsGiveBackAsThoseOfOneBucket) {
  limiter_.try_acquire("a", 3);
  auto first = limiter_.reserve("a", 1, 10s);
  auto second = limiter_.reserve("a", 3, 10s);
  EXPECT_EQ(first.ready_at(), start_ + 1'000'000'000);
  EXPECT_EQ(second.ready_at(), start_ + 4'000'000'000);
  first.cancel();
  EXPECT_EQ(limiter_.peek("a", 0).reset_after, Wait(7s));  // the bucket is full when the second one's time comes
  second.cancel();
  EXPECT_EQ(limiter_.peek("a", 0).reset_after, Wait(3s));
  EXPECT_EQ(limiter_.reserve("a", 1, 999ms).outcome(), WaitOutcome::deadline);
  EXPECT_EQ(limiter_.reserve("a", 4, 1h).outcome(), WaitOutcome::never);
  // A committed one is kept in mind until its time has come, though nobody holds its line.
  auto third = limiter_.reserve("a", 1, 10s);
  limiter_.reserve("a", 3, 10s).commit();
  third.cancel();
  EXPECT_EQ(limiter_.peek("a", 0).reset_after, Wait(7s));
  clock_.advance(10s);
  EXPECT_EQ(limiter_.peek("a", 0).remaining, 3U);
}

TEST_F(KeyedWaitTest, ThreadsWaitAndStop) {
  std::vector<std::jthread> threads;
  threads.reserve(4);
  std::atomic<int> granted{0};
  for (int i = 0; i < 4; ++i) {
    const std::string key = i % 2 == 0 ? "even" : "odd";
    limiter_.try_acquire(key, 3);
    threads.emplace_back([&, key](std::stop_token stop) {
      if (limiter_.wait(key, 1, {}, std::move(stop))) ++granted;
    });
  }
  for (const char* key : {"even", "odd"}) {
    while (limiter_.peek(key, 0).reset_after < Wait(5s)) std::this_thread::yield();
  }
  threads[0].request_stop();
  threads[0].join();
  clock_.advance(2s);
  threads.clear();
  EXPECT_EQ(granted, 3);
}

TEST_F(KeyedWaitTest, ALeakyBucketForEachKey) {
  Keyed<LeakyBucket> queues({.rate = 10, .period = 1s, .queue = 1}, {.max_keys = 1'000, .clock = &clock_});
  EXPECT_TRUE(queues.wait("a"));
  auto slot = queues.reserve("a", 1, 1s);
  EXPECT_EQ(slot.delay(), 100ms);
  EXPECT_EQ(queues.wait("a").outcome, WaitOutcome::full);
  EXPECT_TRUE(queues.wait("b"));
}

TEST_F(KeyedWaitTest, ManyThreadsAtManyKeys) {
  Keyed<TokenBucket> limiter({.rate = 100'000, .period = 1s, .burst = 5}, {.max_keys = 1'000, .clock = nullptr});
  std::atomic<std::uint64_t> granted{0};
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (unsigned i = 0; i < 300; ++i) {
          const std::string key = std::to_string((i + t) % 3);
          if (limiter.wait(key, 1 + i % 2, i % 5 == 0 ? Deadline(10us) : Deadline())) granted += 1 + i % 2;
          if (i % 11 == 0) limiter.penalize(key, 1);
          if (auto one = limiter.reserve(key, 1, 1ms); one && i % 2 == 0) {
            one.commit();
            ++granted;
          }
          if (i % 50 == 0) limiter.set_limit({.rate = 100'000U - i, .period = 1s, .burst = 5});
        }
      });
    }
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin + 1ms;
  EXPECT_LE(static_cast<double>(granted), 3 * (5 + elapsed.count() * 100'000));
  EXPECT_GT(granted, 15U);
}

}  // namespace
}  // namespace sluice
