// A server that is no master, or none any more, is sent nothing; nor is a master that another has replaced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "store/redis/client.h"
#include "tests/unit/redis/guide_driver.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using testing::command;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kMs;
using ::testing::Not;

using namespace std::chrono_literals;

const std::string kMaster = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
const std::string kReplica = "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";
const std::string kRole = command({"ROLE"});

class ReplicaTest : public ::testing::Test, protected Client::Owner {
 protected:
  void done(Check& check, Failure failure, std::int64_t /*at*/) override {
    outcomes_.push_back(failure);
    check.complete();
  }
  void bad_key(Failure /*failure*/, std::string_view /*words*/) override {}
  void call_sent(std::size_t /*requests*/) override {}

  Failure submit() {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = "k"}});
    return client_.submit(checks_.back(), checks_.back().limits, Time{}, now_);
  }
  // What a session does with a wish, and then writes: all of it.
  std::string pump() {
    if (client_.wish() == Machine::Wish::disconnect) client_.finish_disconnect();
    if (client_.wish() == Machine::Wish::connect) {
      client_.begin_connect(now_);
      client_.connected(now_);
    } else {
      client_.flush(now_);
    }
    return std::exchange(client_.output(), {});
  }
  std::string receive(std::string_view bytes) {
    client_.received(bytes, now_);
    return pump();
  }
  void log_in() {
    pump();
    receive(kMaster + "+OK\r\n");
    ASSERT_TRUE(client_.is_connected());
  }
  std::string advance(std::int64_t by) {
    now_ += by;
    if (client_.next_wakeup() <= now_) client_.wake(now_);
    return pump();
  }
  void await_wish_to_connect() {
    for (int i = 0; i < 10 && client_.wish() != Machine::Wish::connect; ++i) {
      if (client_.wish() == Machine::Wish::disconnect) client_.finish_disconnect();
      if (client_.next_wakeup() == Machine::kNoWakeup) continue;
      now_ = std::max(now_, client_.next_wakeup());
      client_.wake(now_);
    }
    ASSERT_EQ(client_.wish(), Machine::Wish::connect);
  }
  std::vector<Failure> take_outcomes() { return std::exchange(outcomes_, {}); }
  static std::string good() { return testing::answer(testing::kNow, "1", {"-"}); }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const Hello hello_{.user = {}, .password = {}, .wants_master = true};
  const CountedLimit limit_ = testing::bucket(1, 1);
  std::deque<testing::TestCheck> checks_;
  std::vector<Failure> outcomes_;
  std::int64_t now_ = 1'000'000'000'000;
  Node node_{{}, [](bool /*up*/, Failure /*reason*/, std::string_view /*detail*/) {}};
  Client client_{hello_, script_, {.timeout = 100ms, .role_interval = 1s}, node_, *this};
};

TEST_F(ReplicaTest, TheFirstQuestionIsItsRole) {
  EXPECT_THAT(pump(), ::testing::StartsWith(kRole));
  EXPECT_EQ(submit(), Failure::none);
  const std::string sent = receive(kReplica + "+OK\r\n");
  EXPECT_THAT(sent, Not(HasSubstr("EVAL")));
  EXPECT_FALSE(client_.is_connected());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::read_only));
}

// A server that answers its role in a way that nobody knows is no master.
TEST_F(ReplicaTest, ARoleThatNobodyKnows) {
  for (const char* role : {"*1\r\n$8\r\nsentinel\r\n", "*0\r\n", "+master\r\n", "*1\r\n:1\r\n", "-ERR no\r\n"}) {
    await_wish_to_connect();
    pump();
    receive(role);
    EXPECT_FALSE(client_.is_connected()) << role;
  }
}

// Both wordings of a master that was told to follow another while the connection lives.
TEST_F(ReplicaTest, public_report_61) {
  for (const char* words :
       {"-ERR Error running script (call to f_0): @user_script:3: @user_script: 3: -READONLY You can't write against a "
        "read only replica.\r\n",
        "-READONLY You can't write against a read only replica. script: f_0, on @user_script:3.\r\n"}) {
    await_wish_to_connect();
    log_in();
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_THAT(pump(), HasSubstr("EVALSHA"));
    ASSERT_EQ(submit(), Failure::none);
    // What waits is not written any more.
    EXPECT_THAT(receive(words), Not(HasSubstr("EVAL")));
    EXPECT_FALSE(client_.is_connected());
    EXPECT_THAT(take_outcomes(), ElementsAre(Failure::read_only, Failure::read_only));
    EXPECT_EQ(submit(), Failure::read_only);
    node_.succeeded();
  }
}

// A connection that was idle for longer than an answer may take is not stuck.
TEST_F(ReplicaTest, AfterSilenceTheRoleAndTheCallHaveTheirTime) {
  log_in();
  for (int i = 0; i < 5; ++i) {
    advance(3'000'000'000);
    ASSERT_EQ(submit(), Failure::none);
    const std::string sent = pump();
    EXPECT_THAT(sent, HasSubstr("ROLE"));
    EXPECT_THAT(sent, HasSubstr("EVALSHA"));
    EXPECT_GT(client_.next_wakeup(), now_);
    advance(1'000'000);
    receive(kMaster + good());
    EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
  }
}

TEST_F(ReplicaTest, ARoleThatChangesWithoutAWordIsAskedForEachSecond) {
  log_in();
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_THAT(pump(), Not(HasSubstr("ROLE")));
  receive(good());
  take_outcomes();
  advance(1'000 * kMs);
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_THAT(pump(), ::testing::StartsWith(kRole));
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_THAT(receive(kReplica), Not(HasSubstr("EVAL")));
  EXPECT_FALSE(client_.is_connected());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::read_only, Failure::read_only));
}

// The old master may have done what it was sent last; neither server is sent that again.
TEST_F(ReplicaTest, AfterASwitchTheOldMasterIsWrittenNothingAndTheNewOneOnlyWhatWaited) {
  log_in();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    EXPECT_THAT(pump(), HasSubstr("EVALSHA"));
  }
  ASSERT_EQ(submit(), Failure::none);
  EXPECT_THAT(pump(), IsEmpty());
  client_.switch_over(now_);
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::lost, Failure::lost));
  EXPECT_EQ(client_.wish(), Machine::Wish::connect);
  EXPECT_TRUE(client_.output().empty());
  EXPECT_THAT(pump(), Not(HasSubstr("EVAL")));
  const std::string sent = receive(kMaster + "+OK\r\n");
  const std::size_t call = sent.find("EVALSHA");
  ASSERT_NE(call, std::string::npos);
  EXPECT_EQ(sent.find("EVALSHA", call + 1), std::string::npos);
  receive(good());
  EXPECT_THAT(take_outcomes(), ElementsAre(Failure::none));
}

// An open breaker is no reason to wait when the master is elsewhere now: the new one is tried at once.
TEST_F(ReplicaTest, AfterASwitchAnOpenBreakerIsTriedAtOnce) {
  log_in();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(submit(), Failure::none);
    pump();
    advance(100 * kMs);
  }
  ASSERT_TRUE(node_.is_open());
  take_outcomes();
  EXPECT_EQ(submit(), Failure::circuit_open);
  client_.switch_over(now_);
  pump();
  EXPECT_THAT(receive(kMaster + "+OK\r\n"), HasSubstr("{}probe"));
  receive(good());
  EXPECT_FALSE(node_.is_open());
  EXPECT_EQ(submit(), Failure::none);
}

}  // namespace
}  // namespace sluice::store::redis
