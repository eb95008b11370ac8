#include "store/redis/server_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;

class ServerHealthTest : public ::testing::Test {
 protected:
  std::vector<std::string> take() { return std::exchange(told_, {}); }

  std::vector<std::string> told_;
  std::int64_t now_ = 100 * kSecond;
  ServerHealth health_{[this](const ServerHealth::News& news) {
    constexpr std::string_view names[] = {"failing: ", "answering: ", "left: "};
    const bool is_failing = news.change == ServerHealth::Change::failing;
    told_.push_back(std::string(names[static_cast<int>(news.change)]) +
                    (is_failing ? std::string(to_text(news.reason)).append(news.words) : std::to_string(news.failed)));
  }};
};

TEST_F(ServerHealthTest, ToldOnceAChange) {
  health_.answered(now_);
  EXPECT_THAT(take(), IsEmpty());
  for (int i = 0; i < 100; ++i) health_.failed(1, Failure::cluster_down, {}, now_);
  health_.failed(2, Failure::timeout, {}, now_);
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::cluster_down))));
  now_ += kSecond;
  for (int i = 0; i < 100; ++i) health_.answered(now_);
  EXPECT_THAT(take(), ElementsAre("answering: 102"));
  health_.failed(1, Failure::lost, {}, now_);
  now_ += kSecond;
  health_.answered(now_);
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::lost)), "answering: 1"));
}

// A server that fails one check among many, again and again, is failing all the time.
TEST_F(ServerHealthTest, NowAndThenIsNoChange) {
  for (int i = 0; i < 1'000; ++i) {
    if (i % 90 == 0) health_.failed(1, Failure::timeout, {}, now_);
    health_.answered(now_);
    now_ += kSecond / 100;
  }
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::timeout))));
  now_ += kSecond;
  health_.answered(now_);
  EXPECT_THAT(take(), ElementsAre("answering: 12"));
}

TEST_F(ServerHealthTest, WhatIsMendedOrLeftIsToldAtOnce) {
  health_.mended();
  EXPECT_THAT(take(), IsEmpty());
  health_.failed(3, Failure::slot_unserved, {}, now_);
  health_.mended();
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::slot_unserved)), "answering: 3"));
  health_.failed(1, Failure::timeout, {}, now_);
  health_.left();
  health_.answered(now_ + kSecond);
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::timeout)), "left: 1"));
}

// Whoever looks at the first reason must hear of the one that has to be mended, however many checks succeed in between.
TEST_F(ServerHealthTest, WhatHasToBeMendedIsToldEvenWhileItFails) {
  health_.failed(1, Failure::timeout, {}, now_);
  for (int i = 0; i < 10; ++i) {
    health_.failed(1, Failure::no_permission, " zadd", now_);
    health_.answered(now_);
    health_.failed(1, Failure::lost, " x", now_);
  }
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::timeout)),
                                  "failing: " + std::string(to_text(Failure::no_permission)) + " zadd"));
  EXPECT_EQ(health_.trouble(), std::string(to_text(Failure::no_permission)) + ":  zadd");
  now_ += kSecond;
  health_.answered(now_);
  EXPECT_THAT(take(), ElementsAre("answering: 21"));
  EXPECT_EQ(health_.trouble(), "");
  health_.failed(1, Failure::no_permission, " set", now_);
  EXPECT_THAT(take(), ElementsAre("failing: " + std::string(to_text(Failure::no_permission)) + " set"));
}

TEST_F(ServerHealthTest, OfAllThreadsOneTells) {
  for (int round = 0; round < 100; ++round) {
    now_ += 2 * kSecond;
    const auto on_threads = [](auto act) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) threads.emplace_back(act);
      for (std::thread& thread : threads) thread.join();
    };
    on_threads([&] { health_.failed(1, Failure::timeout, {}, now_); });
    on_threads([&] { health_.answered(now_ + kSecond); });
    ASSERT_EQ(take().size(), 2U);
  }
}

}  // namespace
}  // namespace sluice::store::redis
