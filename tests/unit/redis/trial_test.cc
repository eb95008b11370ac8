// A connection is told of as one, and used, only when a charge over it was answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "store/redis/advice.h"
#include "store/redis/client.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kMs = 1'000'000;
const std::string kKeyRefused = "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";
const std::string kNothing = "*3\r\n:1\r\n$1\r\n1\r\n$-1\r\n";  // to what cleans up

class TrialTest : public ::testing::Test, protected Client::Owner {
 protected:
  using Trial = Client::Options::Trial;
  void done(Check& /*check*/, Failure failure, std::int64_t /*at*/) override { outcomes_.push_back(failure); }
  void bad_key(Failure /*failure*/, std::string_view /*words*/) override {}
  void call_sent(std::size_t /*requests*/) override {}
  void link_changed(Client& /*client*/, bool is_up) override { links_.push_back(is_up); }

  // Up to the trial: what is sent for it.
  static std::string log_in(Client& client, std::int64_t now) {
    EXPECT_EQ(client.wish(), Client::Wish::connect);
    client.begin_connect(now);
    client.connected(now);
    client.output().clear();
    client.received("+OK\r\n", now);
    return std::exchange(client.output(), {});
  }
  Failure submit(Client& client) {
    checks_.emplace_back(std::vector<Charge>{{.limit = &limit_, .key = "k"}});
    return client.submit(checks_.back(), checks_.back().limits, Time{}, now_);
  }
  static std::string good() { return testing::answer(testing::kNow, "1", {"-"}); }
  std::vector<std::string> take_states() { return std::exchange(states_, {}); }
  static std::string down(Failure why) { return "down: " + std::string(to_text(why)); }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  Hello hello_;
  CountedLimit limit_ = testing::bucket(1, 1);
  std::deque<testing::TestCheck> checks_;
  std::vector<Failure> outcomes_;
  std::vector<std::string> states_;
  std::vector<bool> links_;
  std::string detail_;
  std::int64_t now_ = 1'000'000'000'000;
  Node node_{{}, [this](bool up, Failure reason, std::string_view detail) {
               detail_ = detail;
               states_.push_back(up ? "up" : down(reason));
             }};
  Client client_{hello_, script_, {.trial = Trial::strict}, node_, *this};
};

TEST_F(TrialTest, OneChargeAndItsRemovalInOneWrite) {
  const std::string sent = log_in(client_, now_);
  const std::string key = "$14\r\nsluice:{}probe\r\n";
  const std::size_t first = sent.find(key);
  ASSERT_NE(first, std::string::npos);
  EXPECT_NE(sent.find(key, first + 1), std::string::npos);
  EXPECT_EQ(submit(client_), Failure::none);
  client_.flush(now_);
  EXPECT_EQ(client_.output(), "");
  EXPECT_FALSE(client_.is_connected());
  EXPECT_THAT(take_states(), IsEmpty());
  client_.received(good(), now_);
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_THAT(links_, ElementsAre(true));
  // Whether it was removed is nobody's business.
  client_.received("-NOPERM del\r\n", now_);
  EXPECT_TRUE(client_.is_up());
  client_.flush(now_);
  EXPECT_THAT(client_.output(), HasSubstr("EVALSHA"));
  client_.received(good(), now_);
  EXPECT_THAT(outcomes_, ElementsAre(Failure::none));
}

// The key pattern of the user is not that of the prefix: nothing would ever be answered.
TEST_F(TrialTest, AKeyThatMayNotBeUsedIsNoConnection) {
  log_in(client_, now_);
  EXPECT_EQ(submit(client_), Failure::none);
  client_.received(kKeyRefused + kKeyRefused, now_);
  EXPECT_FALSE(client_.is_connected());
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
  EXPECT_THAT(take_states(), ElementsAre(down(Failure::no_permission)));
  EXPECT_THAT(detail_, AllOf(HasSubstr("NOPERM this user"), HasSubstr(kRights)));
  // What waited knows the reason, and so does what comes now.
  EXPECT_THAT(outcomes_, ElementsAre(Failure::no_permission));
  client_.finish_disconnect();
  EXPECT_EQ(submit(client_), Failure::no_permission);
  EXPECT_THAT(node_.trouble(), HasSubstr("NOPERM this user"));
  now_ = client_.next_wakeup();
  client_.wake(now_);
  log_in(client_, now_);
  client_.received(good() + kNothing, now_);
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
}

TEST_F(TrialTest, WhatEndsAConnection) {
  const std::vector<std::pair<std::string, bool>> cases = {
      {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", true},
      {"-NOREPLICAS Not enough good replicas to write.\r\n", true},
      {"-ERR unknown command 'EVALSHA'\r\n", true},
      {"-READONLY You can't write against a read only replica.\r\n", true},
      {"-MOVED 7 127.0.0.1:7001\r\n", false},
      {"-CLUSTERDOWN Hash slot not served\r\n", false},
      {"-TRYAGAIN x\r\n", false},
      {testing::answer(testing::kNow, "0", {testing::bucket_state(1'000, 1, 1'000, 0, 0, testing::kNow)}), false},
      // Somebody's value there fails no other key.
      {"*3\r\n:1\r\n$1\r\nx\r\n-WRONGTYPE x\r\n", false}};
  for (const auto& [bytes, ends] : cases) {
    Node node({}, [](bool, Failure, std::string_view) {});
    Client client(hello_, script_, {.trial = Trial::strict}, node, *this);
    log_in(client, now_);
    client.received(bytes + kNothing, now_);
    EXPECT_EQ(client.is_up(), !ends) << bytes;
  }
}

// Behind a proxy it is one server of several that answers so.
TEST_F(TrialTest, AProxyIsGivenUpForRightsAlone) {
  for (const auto& [bytes, ends] :
       std::vector<std::pair<std::string, bool>>{{"-ERR upstream failure\r\n", false}, {kKeyRefused, true}}) {
    Node node({}, [](bool, Failure, std::string_view) {});
    Client client(hello_, script_, {.trial = Trial::lenient}, node, *this);
    log_in(client, now_);
    client.received(bytes, now_);
    EXPECT_EQ(client.is_up(), !ends) << bytes;
  }
}

TEST_F(TrialTest, ASilentServerIsNoConnection) {
  log_in(client_, now_);
  now_ = client_.next_wakeup();
  client_.wake(now_);
  EXPECT_EQ(client_.wish(), Client::Wish::disconnect);
  EXPECT_THAT(take_states(), ElementsAre(down(Failure::timeout)));
  EXPECT_THAT(detail_, HasSubstr("does not answer"));
}

TEST_F(TrialTest, AReplicaThatDoesNotSayItIsOne) {
  hello_.wants_alone = true;
  Client client(hello_, script_, {.trial = Trial::strict}, node_, *this);
  client.begin_connect(now_);
  client.connected(now_);
  client.received("-ERR unknown command `HELLO`\r\n+OK\r\n", now_);  // Redis 5
  client.received("-READONLY You can't write against a read only replica.\r\n", now_);
  EXPECT_THAT(take_states(), ElementsAre(down(Failure::read_only)));
  EXPECT_EQ(detail_, kNotMaster);
}

// While the server is not asked, the trial of the one whose turn it is closes the breaker: nothing else need be sent.
TEST_F(TrialTest, ATrialIsAProbe) {
  for (int i = 0; i < 5; ++i) node_.failed(Failure::unreachable, {}, now_);
  client_.begin_connect(now_);
  client_.closed(now_);
  take_states();
  now_ = client_.next_wakeup();
  client_.wake(now_);
  log_in(client_, now_);
  EXPECT_FALSE(client_.is_up());
  client_.received(good() + kNothing, now_);
  EXPECT_TRUE(client_.is_up());
  EXPECT_THAT(take_states(), ElementsAre("up"));
  EXPECT_EQ(client_.output(), "");
  EXPECT_EQ(client_.next_wakeup(), Client::kNoWakeup);
}

// A check that waited for a connection in vain has not been sent, and the log has told why.
TEST_F(TrialTest, WhatWaitsForAConnectionIsToldWhyThereIsNone) {
  log_in(client_, now_);
  client_.received(kKeyRefused, now_);
  client_.finish_disconnect();
  now_ = client_.next_wakeup();
  client_.wake(now_);
  client_.begin_connect(now_);
  EXPECT_EQ(submit(client_), Failure::none);
  now_ += 20 * kMs;
  client_.wake(now_);
  EXPECT_THAT(outcomes_, ElementsAre(Failure::no_permission));
}

}  // namespace
}  // namespace sluice::store::redis
