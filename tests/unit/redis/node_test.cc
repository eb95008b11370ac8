#include "store/redis/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;

class NodeTest : public ::testing::Test, protected Node::Listener {
 protected:
  void node_changed() override { ++changes_; }
  std::vector<std::string> take_states() { return std::exchange(states_, {}); }

  std::vector<std::string> states_;
  int changes_ = 0;
  std::int64_t now_ = 1'000'000'000'000;
  Node node_{{.failures = 3, .seed = 7}, [this](bool up, Failure reason, std::string_view detail) {
               states_.push_back((up ? "up" : "down: " + std::string(to_text(reason))) + std::string(detail));
             }};
};

TEST_F(NodeTest, FailuresOfAllClientsCountTogether) {
  node_.link_up();
  node_.link_up();
  EXPECT_THAT(take_states(), ElementsAre("up"));
  node_.listen(*this);
  node_.failed(Failure::timeout, {}, now_);
  node_.failed(Failure::timeout, {}, now_);
  node_.succeeded();
  node_.failed(Failure::timeout, {}, now_);
  node_.failed(Failure::timeout, {}, now_);
  EXPECT_FALSE(node_.is_open());
  node_.failed(Failure::no_permission, " NOPERM set", now_);
  EXPECT_TRUE(node_.is_open());
  EXPECT_EQ(node_.opened_for(), Failure::no_permission);
  node_.link_up();
  node_.link_down(Failure::none, {});
  EXPECT_THAT(take_states(), ElementsAre("down: the server's user lacks a permission (NOPERM) NOPERM set"));
  EXPECT_EQ(changes_, 1);
  node_.failed(Failure::timeout, {}, now_);
  EXPECT_EQ(changes_, 1);
  node_.succeeded();
  EXPECT_FALSE(node_.is_open());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_EQ(changes_, 2);
  node_.forget(*this);
}

TEST_F(NodeTest, OneProbeAnIntervalForAll) {
  EXPECT_FALSE(node_.take_probe(now_));
  for (int i = 0; i < 3; ++i) node_.failed(Failure::timeout, {}, now_);
  for (int i = 0; i < 20; ++i) {
    const std::int64_t due = node_.probe_at();
    EXPECT_GE(due - now_, 400 * kMs);
    EXPECT_LE(due - now_, 600 * kMs);
    EXPECT_FALSE(node_.take_probe(due - 1));
    EXPECT_TRUE(node_.take_probe(due));
    EXPECT_FALSE(node_.take_probe(due));
    now_ = due;
  }
}

TEST_F(NodeTest, ItIsUpAsLongAsOneClientIsConnected) {
  node_.link_failed(Failure::unreachable, {});
  node_.link_failed(Failure::unreachable, {});
  EXPECT_THAT(take_states(), ElementsAre("down: no connection to the server"));
  node_.link_up();
  node_.link_up();
  node_.link_down(Failure::lost, {});
  node_.link_failed(Failure::unreachable, {});
  EXPECT_THAT(take_states(), ElementsAre("up"));
  node_.link_down(Failure::lost, {});
  EXPECT_THAT(take_states(), ElementsAre("down: the connection was lost before the answer"));
  node_.link_failed(Failure::unreachable, {});
  node_.link_failed(Failure::unreachable, {});
  EXPECT_THAT(take_states(), ElementsAre("down: no connection to the server"));
}

TEST_F(NodeTest, AClientThatEndsIsNoNews) {
  node_.link_up();
  take_states();
  node_.link_gone();
  EXPECT_THAT(take_states(), IsEmpty());
}

// Whichever thread is first: one opening, one probe, one closing.
TEST_F(NodeTest, Threads) {
  node_.link_up();
  take_states();
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> probes{0};
    const auto on_threads = [](auto act) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i) threads.emplace_back(act);
      for (std::thread& thread : threads) thread.join();
    };
    on_threads([&] {
      for (int i = 0; i < 3; ++i) node_.failed(Failure::timeout, {}, now_);
    });
    ASSERT_TRUE(node_.is_open());
    now_ += 600 * kMs;
    on_threads([&] {
      if (node_.take_probe(now_)) ++probes;
    });
    ASSERT_EQ(probes, 1);
    on_threads([&] { node_.succeeded(); });
    ASSERT_FALSE(node_.is_open());
    ASSERT_EQ(take_states().size(), 2U);
  }
}

}  // namespace
}  // namespace sluice::store::redis
