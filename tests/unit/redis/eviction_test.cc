// What the server drops for want of memory is seen by one client of a node, and only while the server can be asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "store/redis/client.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr std::int64_t kInterval = 10'000'000'000;
const std::string kQuestion = "*2\r\n$4\r\nINFO\r\n$5\r\nstats\r\n";

std::string told(std::string_view evicted) {
  return testing::bulk("# Stats\r\nexpired_keys:9\r\nevicted_keys:" + std::string(evicted) + "\r\nkeyspace_hits:1\r\n");
}

class EvictionTest : public ::testing::Test, protected Client::Owner {
 protected:
  void done(Check& /*check*/, Failure /*failure*/, std::int64_t /*at*/) override {}
  void bad_key(Failure /*failure*/, std::string_view /*words*/) override {}
  void call_sent(std::size_t /*requests*/) override {}
  void keys_evicted(std::uint64_t keys) override { evicted_.push_back(keys); }

  void log_in(Client& client) {
    ASSERT_EQ(client.wish(), Client::Wish::connect);
    client.begin_connect(now_);
    client.connected(now_);
    client.output().clear();
    client.received("+OK\r\n", now_);
  }
  static std::string take_output(Client& client) { return std::exchange(client.output(), {}); }
  std::string after_an_interval(Client& client) {
    now_ += kInterval;
    client.wake(now_);
    return take_output(client);
  }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const Hello hello_;
  std::int64_t now_ = 1'000'000'000'000;
  std::vector<std::uint64_t> evicted_;
  Node node_{{}, [](bool, Failure, std::string_view) {}};
  Client client_{hello_, script_, {.eviction_interval = 10s}, node_, *this};
};

TEST_F(EvictionTest, TellsWhatCameSinceTheLastLook) {
  log_in(client_);
  ASSERT_EQ(take_output(client_), kQuestion);
  // What was evicted before is nobody's news.
  client_.received(told("7"), now_);
  EXPECT_THAT(evicted_, IsEmpty());
  ASSERT_EQ(client_.next_wakeup(), now_ + kInterval);
  ASSERT_EQ(after_an_interval(client_), kQuestion);
  client_.received(told("7"), now_);
  EXPECT_THAT(evicted_, IsEmpty());
  ASSERT_EQ(after_an_interval(client_), kQuestion);
  client_.received(told("12"), now_);
  EXPECT_THAT(evicted_, ElementsAre(5));
  // CONFIG RESETSTAT
  ASSERT_EQ(after_an_interval(client_), kQuestion);
  client_.received(told("2"), now_);
  EXPECT_THAT(evicted_, ElementsAre(5, 2));
}

TEST_F(EvictionTest, OneClientOfANodeLooksAndAnotherTakesOver) {
  Client second(hello_, script_, {.eviction_interval = 10s}, node_, *this);
  log_in(client_);
  log_in(second);
  EXPECT_EQ(take_output(client_), kQuestion);
  client_.received(told("3"), now_);
  EXPECT_EQ(take_output(second), "");
  EXPECT_EQ(after_an_interval(second), "");
  client_.closed(now_);
  EXPECT_EQ(after_an_interval(second), kQuestion);
  // By another connection it may be another server, so its first figure is no news.
  second.received(told("100"), now_);
  EXPECT_THAT(evicted_, IsEmpty());
}

TEST_F(EvictionTest, AServerThatDoesNotTellIsNotAskedAgain) {
  for (const std::string& reply :
       {std::string("-NOPERM this user has no permissions to run the 'info' command\r\n"), testing::bulk("# Stats\r\n"),
        std::string(":1\r\n"), testing::bulk("\r\nevicted_keys:x\r\n")}) {
    Client client(hello_, script_, {.eviction_interval = 10s}, node_, *this);
    log_in(client);
    ASSERT_EQ(take_output(client), kQuestion);
    client.received(reply, now_);
    EXPECT_EQ(client.next_wakeup(), Client::kNoWakeup) << reply;
    EXPECT_TRUE(client.is_up()) << reply;
  }
}

// The question is the first to notice that an idle connection leads nowhere.
TEST_F(EvictionTest, ASilentServerIsGivenUp) {
  log_in(client_);
  client_.received(told("0"), now_);
  (void)take_output(client_);
  ASSERT_EQ(after_an_interval(client_), kQuestion);
  now_ = client_.next_wakeup();
  client_.wake(now_);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
}

TEST_F(EvictionTest, NobodyLooksUnlessTold) {
  Client quiet(hello_, script_, {}, node_, *this);
  log_in(quiet);
  EXPECT_EQ(take_output(quiet), "");
  EXPECT_EQ(quiet.next_wakeup(), Client::kNoWakeup);
}

}  // namespace
}  // namespace sluice::store::redis
