#include "store/redis/nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "base/log.h"
#include "store/redis/login.h"

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

// One that is out says nothing of the others, however many of them answer in between.
TEST_F(NodesTest, ChecksThatFailAreToldByServer) {
  const auto good = nodes_.at("10.0.0.1:6379");
  const auto bad = nodes_.at("10.0.0.2:6379");
  std::int64_t now = 0;
  const std::string lines = logged([&] {
    for (int i = 0; i < 1'000; ++i) {
      good->health().answered(now);
      if (i % 3 == 0) bad->health().failed(1, Failure::circuit_open, {}, now);
      now += 10'000'000;
    }
    now += 1'000'000'000;
    bad->health().answered(now);
  });
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2) << lines;
  EXPECT_THAT(lines, ::testing::ContainsRegex("warn store: failing.* server=10\\.0\\.0\\.2:6379 reason="));
  EXPECT_THAT(lines, ::testing::ContainsRegex(
                         "info store: answers again server=10\\.0\\.0\\.2:6379 answered_by_on_store_failure=334"));
}

TEST_F(NodesTest, AServerWhoseKeysOthersHaveIsToldOfWhenItsLastConnectionGoes) {
  auto one = nodes_.at("10.0.0.1:6379");
  auto other = one;
  const auto let_go = [&](std::shared_ptr<Node>& node) {
    return logged([&] {
      node->leave();
      node.reset();
    });
  };
  (void)logged([&] { one->health().failed(7, Failure::lost, {}, 0); });
  EXPECT_EQ(let_go(other), "");
  EXPECT_THAT(let_go(one), ::testing::ContainsRegex(
                               "others serve its keys now server=10\\.0\\.0\\.1:6379 answered_by_on_store_failure=7"));
  // It came back, and the process ends.
  one = nodes_.at("10.0.0.1:6379");
  one->leave();
  one->join();
  EXPECT_EQ(logged([&] { one.reset(); }), "");
}

TEST_F(NodesTest, TellsOfSlotsWithoutAMasterOnceAChange) {
  EXPECT_EQ(logged([&] { nodes_.tell_unserved(0); }), "");
  const std::string some = logged([&] {
    for (int i = 0; i < 5; ++i) nodes_.tell_unserved(5461);
    for (int i = 0; i < 5; ++i) nodes_.unserved_check(0);
  });
  EXPECT_THAT(some, HasSubstr("slots=5461"));
  EXPECT_THAT(some, HasSubstr(to_text(Failure::slot_unserved)));
  EXPECT_EQ(std::ranges::count(some, '\n'), 2);
  const std::string none = logged([&] {
    for (int i = 0; i < 5; ++i) nodes_.tell_unserved(0);
  });
  EXPECT_THAT(none, HasSubstr("answered_by_on_store_failure=5"));
  EXPECT_EQ(std::ranges::count(none, '\n'), 2);
}

// The server's words, and what it was opened for when nothing is asked any more.
TEST_F(NodesTest, TellsWhatTheServerSaid) {
  const auto one = nodes_.at("10.0.0.1:6379");
  one->link_up();
  EXPECT_THAT(logged([&] { one->check_failed(Failure::no_permission, "NOPERM zadd", 0); }),
              HasSubstr("store: failing, limits answer by on_store_failure server=10.0.0.1:6379 reason=\"" +
                        std::string(to_text(Failure::no_permission)) + "\" detail=\"NOPERM zadd\""));
  EXPECT_EQ(nodes_.trouble(), "10.0.0.1:6379: " + std::string(to_text(Failure::no_permission)) + ": NOPERM zadd\n");
  one->health().mended();
  EXPECT_EQ(nodes_.trouble(), "");
  EXPECT_THAT(logged([&] {
                for (int i = 0; i < 3; ++i) one->failed(Failure::server_error, "ERR odd", 0);
                one->check_failed(Failure::circuit_open, {}, 0);
              }),
              ::testing::ContainsRegex("store: failing.* reason=\"" + std::string(to_text(Failure::server_error)) +
                                       "\" detail=\"ERR odd\""));
  EXPECT_EQ(nodes_.trouble(), "10.0.0.1:6379: " + std::string(to_text(Failure::server_error)) + ": ERR odd\n");
}

TEST_F(NodesTest, WhyNobodyServesAKeyIsWhyNobodyTellsTheMap) {
  const std::string lines = logged([&] {
    nodes_.tell_map(false, "10.0.0.1:6379: NOAUTH");
    nodes_.unserved_check(0);
  });
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2) << lines;
  EXPECT_THAT(lines.substr(lines.find('\n')), HasSubstr("detail=\"10.0.0.1:6379: NOAUTH\""));
  EXPECT_THAT(nodes_.trouble(), HasSubstr("the cluster: 10.0.0.1:6379: NOAUTH\n"));
}

// However many threads find a key that cannot be used, or a file that cannot be read.
TEST_F(NodesTest, OneLineAProcess) {
  constexpr std::int64_t second = 1'000'000'000;
  EXPECT_TRUE(nodes_.may_tell_of_key(100 * second));
  EXPECT_FALSE(nodes_.may_tell_of_key(109 * second));
  EXPECT_TRUE(nodes_.may_tell_of_key(110 * second));
  Notices& notices = nodes_.notices();
  EXPECT_TRUE(notices.is_news("file", "gone"));
  EXPECT_FALSE(notices.is_news("file", "gone"));
  EXPECT_TRUE(notices.is_news("other", "gone"));
  EXPECT_TRUE(notices.is_news("file", "empty"));
  notices.forget("file");
  EXPECT_TRUE(notices.is_news("file", "empty"));
}

TEST_F(NodesTest, APasswordFileThatIsGoneIsToldOnceForAllLogins) {
  std::deque<Login> logins;
  for (int i = 0; i < 3; ++i) {
    logins.emplace_back(CredentialOptions{.user = {}, .password = {}, .password_file = "/nonexistent/password"},
                        Hello{}, &nodes_.notices());
  }
  const std::string lines = logged([&] {
    for (int i = 0; i < 3; ++i) {
      for (Login& login : logins) (void)login.refresh();
    }
  });
  EXPECT_EQ(std::ranges::count(lines, '\n'), 1) << lines;
}

TEST_F(NodesTest, NamesTheMasterOnceAChange) {
  const auto tell = [&](const char* server) {
    return logged([&] {
      for (int i = 0; i < 3; ++i) nodes_.tell_master("mymaster", server);
    });
  };
  const std::string found = tell("10.0.0.1:6379");
  EXPECT_THAT(found, HasSubstr("redis: found the master master=mymaster server=10.0.0.1:6379"));
  const std::string changed = tell("10.0.0.2:6379");
  EXPECT_THAT(changed,
              HasSubstr("redis: the master has changed master=mymaster server=10.0.0.2:6379 before=10.0.0.1:6379"));
  EXPECT_EQ(std::ranges::count(found + changed, '\n'), 2);
}

// While it is out, each reason once: whoever mends the first must see the second.
TEST_F(NodesTest, AnotherReasonIsTold) {
  const auto one = nodes_.at("10.0.0.1:6379");
  const std::string lines = logged([&] {
    for (int i = 0; i < 5; ++i) {
      one->link_failed(Failure::unreachable, "cannot connect: Connection refused");
      one->link_failed(Failure::not_authenticated, "NOAUTH");
    }
    one->link_up();
    one->link_down(Failure::lost, {});
    for (int i = 0; i < 5; ++i) one->link_failed(Failure::unreachable, "cannot connect: Connection refused");
  });
  EXPECT_EQ(std::ranges::count(lines, '\n'), 5) << lines;
  // However odd the words are, not without end.
  EXPECT_LE(std::ranges::count(logged([&] {
                                 for (int i = 0; i < 1'000; ++i) one->link_failed(Failure::lost, std::to_string(i));
                               }),
                               '\n'),
            8);
}

}  // namespace
}  // namespace sluice::store::redis
