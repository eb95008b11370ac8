#include "store/redis/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace sluice::store::redis {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class NodesTest : public ::testing::Test {
 protected:
  void SetUp() override { log::configure(log::Level::info, log::Format::text); }
  void TearDown() override { log::configure(log::Level::error, log::Format::text); }
  // What is logged meanwhile.
  template <typename Act>
  static std::string logged(Act act) {
    ::testing::internal::CaptureStderr();
    act();
    return ::testing::internal::GetCapturedStderr();
  }

  Nodes nodes_{{.failures = 3}};
};

// One dead master says nothing of the others.
TEST_F(NodesTest, ABreakerForEachServer) {
  const auto first = nodes_.at("10.0.0.1:6379");
  const auto second = nodes_.at("10.0.0.2:6379");
  const std::string lines = logged([&] {
    for (int i = 0; i < 100; ++i) first->failed(Failure::unreachable, {}, 0);
  });
  EXPECT_TRUE(first->is_open());
  EXPECT_FALSE(second->is_open());
  second->succeeded();
  EXPECT_TRUE(first->is_open());
  EXPECT_THAT(lines, HasSubstr("10.0.0.1:6379"));
  EXPECT_THAT(lines, Not(HasSubstr("10.0.0.2:6379")));
  // Nor do failures of several add up.
  for (int i = 0; i < 2; ++i) second->failed(Failure::timeout, {}, 0);
  nodes_.at("10.0.0.3:6379")->failed(Failure::timeout, {}, 0);
  EXPECT_FALSE(second->is_open());
}

TEST_F(NodesTest, AllThreadsShareIt) {
  const auto one = nodes_.at("10.0.0.1:6379");
  EXPECT_EQ(nodes_.at("10.0.0.1:6379"), one);
  (void)logged([&] {
    for (int i = 0; i < 3; ++i) nodes_.at("10.0.0.1:6379")->failed(Failure::timeout, {}, 0);
  });
  EXPECT_TRUE(one->is_open());
}

// A server that has left the cluster and comes back begins anew.
TEST_F(NodesTest, IsForgottenWithItsLastConnection) {
  auto one = nodes_.at("10.0.0.1:6379");
  (void)logged([&] {
    for (int i = 0; i < 3; ++i) one->failed(Failure::timeout, {}, 0);
  });
  one.reset();
  EXPECT_FALSE(nodes_.at("10.0.0.1:6379")->is_open());
}

TEST_F(NodesTest, TellsOfTheMapOnceAChange) {
  EXPECT_EQ(logged([&] { nodes_.tell_map(true, {}); }), "");
  const std::string lost = logged([&] {
    for (int i = 0; i < 5; ++i) nodes_.tell_map(false, "no server can be reached");
  });
  EXPECT_THAT(lost, HasSubstr("no server can be reached"));
  EXPECT_EQ(std::ranges::count(lost, '\n'), 1);
  const std::string again = logged([&] {
    for (int i = 0; i < 5; ++i) nodes_.tell_map(true, {});
  });
  EXPECT_EQ(std::ranges::count(again, '\n'), 1);
}

}  // namespace
}  // namespace sluice::store::redis
