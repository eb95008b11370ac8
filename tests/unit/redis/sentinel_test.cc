#include "store/redis/sentinel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/redis/guide_driver.h"

namespace sluice::store::redis {
namespace {

using testing::command;
using ::testing::ElementsAre;
using testing::GuideDriver;
using ::testing::IsEmpty;
using testing::kMs;
using ::testing::StartsWith;

const std::string kSubscribed = "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";

std::string master_at(std::string_view host, std::string_view port) { return command({host, port}); }

std::string message(std::string_view text, std::string_view kind = "message") {
  return command({kind, "+switch-master", text});
}

class SentinelTest : public ::testing::Test, protected SentinelClient::Owner {
 protected:
  void master_is(const Address& address) override { masters_.push_back(address.to_text()); }

  void find() {
    sentinels_.find_master([this](const std::optional<Address>& address, std::string_view why) {
      found_.push_back(address ? address->to_text() : "nobody: " + std::string(why));
    });
    driver_.pump();
  }
  // Connects to the next sentinel.
  std::string connect() {
    const auto address = driver_.connect();
    return address ? address->to_text() : "";
  }
  std::vector<std::string> take_found() { return std::exchange(found_, {}); }
  std::vector<std::string> take_masters() { return std::exchange(masters_, {}); }

  Login login_{{}, {}};
  SentinelClient sentinels_{
      {{.host = "s0", .port = 1}, {.host = "s1", .port = 2}, {.host = "s2", .port = 3}}, "mymaster", login_, 0, *this};
  GuideDriver driver_{sentinels_};
  std::vector<std::string> found_;
  std::vector<std::string> masters_;
};

TEST_F(SentinelTest, AsksAndSubscribesInOneWrite) {
  EXPECT_EQ(connect(), "s0:1");
  EXPECT_EQ(driver_.take_output(),
            command({"SENTINEL", "get-master-addr-by-name", "mymaster"}) + command({"SUBSCRIBE", "+switch-master"}));
  driver_.receive(master_at("10.0.0.1", "6379") + kSubscribed);
  EXPECT_THAT(take_masters(), ElementsAre("10.0.0.1:6379"));
  find();
  EXPECT_THAT(take_found(), ElementsAre("10.0.0.1:6379"));
  EXPECT_EQ(sentinels_.next_wakeup(), Machine::kNoWakeup);
}

TEST_F(SentinelTest, LogsInWithCredentialsOfItsOwn) {
  Login login({.user = "watcher", .password = "pw", .password_file = {}}, {});
  SentinelClient sentinels({{.host = "s0", .port = 1}}, "mymaster", login, 0, *this);
  GuideDriver driver(sentinels);
  ASSERT_TRUE(driver.connect());
  EXPECT_THAT(driver.take_output(), StartsWith(command({"AUTH", "watcher", "pw"})));
  driver.receive("+OK\r\n" + master_at("10.0.0.1", "6379"));
  EXPECT_THAT(take_masters(), ElementsAre("10.0.0.1:6379"));
}

TEST_F(SentinelTest, RefusedCredentialsAreToldInTheSentinelsWords) {
  Login login({.user = {}, .password = "pw", .password_file = {}}, {});
  SentinelClient sentinels({{.host = "s0", .port = 1}}, "mymaster", login, 0, *this);
  GuideDriver driver(sentinels);
  std::string told;
  sentinels.find_master([&](const std::optional<Address>& address, std::string_view why) {
    EXPECT_FALSE(address);
    told = why;
  });
  ASSERT_TRUE(driver.connect());
  driver.receive("-WRONGPASS invalid\r\n");
  EXPECT_EQ(told, "s0:1: WRONGPASS invalid: " + std::string(kSentinelLogin));
}

TEST_F(SentinelTest, ASwitchIsFollowedAtOnceHoweverItsBytesCome) {
  const std::string bytes =
      master_at("10.0.0.1", "6379") + kSubscribed + message("mymaster 10.0.0.1 6379 10.0.0.2 6380");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    SentinelClient sentinels({{.host = "s0", .port = 1}}, "mymaster", login_, 0, *this);
    GuideDriver driver(sentinels);
    ASSERT_TRUE(driver.connect());
    driver.receive(bytes.substr(0, cut));
    driver.receive(bytes.substr(cut));
    ASSERT_THAT(take_masters(), ElementsAre("10.0.0.1:6379", "10.0.0.2:6380")) << cut;
  }
}

TEST_F(SentinelTest, OnlySwitchesOfTheMasterInTheAgreedShapeCount) {
  connect();
  driver_.receive(master_at("10.0.0.1", "6379") + kSubscribed);
  take_masters();
  for (const char* text :
       {"other 10.0.0.1 6379 10.0.0.2 6380", "mymaster2 10.0.0.1 6379 10.0.0.2 6380", "", " ", "mymaster",
        "mymaster 10.0.0.1 6379 10.0.0.2", "mymaster 10.0.0.1 6379 10.0.0.2 ", "mymaster 10.0.0.1 6379  6380",
        "mymaster 10.0.0.1 6379 10.0.0.2 0", "mymaster 10.0.0.1 6379 10.0.0.2 65536",
        "mymaster 10.0.0.1 6379 10.0.0.2 6380 more", "mymaster 10.0.0.1 6379 10.0.0.2 -1"}) {
    driver_.receive(message(text));
  }
  driver_.receive(message("mymaster 10.0.0.1 6379 10.0.0.2 6380", "pmessage"));
  driver_.receive("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n:5\r\n:1\r\n+x\r\n$-1\r\n*-1\r\n");
  EXPECT_THAT(take_masters(), IsEmpty());
  driver_.receive(message("mymaster 10.0.0.1 6379 fe80::1 6380"));
  EXPECT_THAT(take_masters(), ElementsAre("[fe80::1]:6380"));
}

// What a sentinel has said once is of no use when it is asked for again: the next one may know better.
TEST_F(SentinelTest, EachAnswerIsGivenOnceAndThenTheNextIsAsked) {
  find();
  EXPECT_EQ(connect(), "s0:1");
  driver_.receive(master_at("old", "1") + kSubscribed);
  EXPECT_THAT(take_found(), ElementsAre("old:1"));
  find();
  EXPECT_THAT(take_found(), IsEmpty());
  EXPECT_EQ(connect(), "s1:2");
  driver_.receive(master_at("old", "1") + kSubscribed);
  EXPECT_THAT(take_found(), ElementsAre("old:1"));
  find();
  EXPECT_EQ(connect(), "s2:3");
  driver_.receive(master_at("new", "2"));
  EXPECT_THAT(take_found(), ElementsAre("new:2"));
}

TEST_F(SentinelTest, ASwitchThatCameInBetweenIsGivenAtOnce) {
  find();
  connect();
  driver_.receive(master_at("old", "1") + kSubscribed);
  EXPECT_THAT(take_found(), ElementsAre("old:1"));
  driver_.receive(message("mymaster old 1 new 2"));
  find();
  EXPECT_THAT(take_found(), ElementsAre("new:2"));
  EXPECT_EQ(sentinels_.wish(), Machine::Wish::nothing);
}

TEST_F(SentinelTest, OneThatDoesNotKnowIsLeftForTheNext) {
  find();
  EXPECT_EQ(connect(), "s0:1");
  driver_.receive("*-1\r\n");
  EXPECT_EQ(connect(), "s1:2");
  driver_.receive("-IDONTKNOW no\r\n");
  EXPECT_EQ(connect(), "s2:3");
  EXPECT_THAT(take_found(), IsEmpty());
  driver_.receive("+OK\r\n");
  EXPECT_THAT(
      take_found(),
      ElementsAre("nobody: s0:1: this sentinel does not know a master of the name mymaster; s1:2: IDONTKNOW no; "
                  "s2:3: this sentinel does not know a master of the name mymaster"));
}

TEST_F(SentinelTest, AddressesThatCannotBeAreNotBelieved) {
  find();
  for (const auto& reply : {master_at("10.0.0.1", "0"), master_at("10.0.0.1", "65536"), master_at("10.0.0.1", "x"),
                            master_at("", "6379"), command({"10.0.0.1"}), command({"10.0.0.1", "6379", "1"}),
                            std::string("*2\r\n$8\r\n10.0.0.1\r\n:6379\r\n"), std::string("HTTP/1.1 400\r\n")}) {
    while (sentinels_.wish() != Machine::Wish::connect) driver_.advance(driver_.wait());
    connect();
    driver_.receive(reply);
    EXPECT_THAT(take_masters(), IsEmpty()) << reply;
  }
  for (const std::string& one : take_found()) EXPECT_THAT(one, StartsWith("nobody: "));
}

// Each with its name and its own reason, and none of the round before.
TEST_F(SentinelTest, WhyNoneOfThemIsOfUse) {
  for (int round = 0; round < 2; ++round) {
    find();
    while (sentinels_.wish() != Machine::Wish::connect) driver_.advance(driver_.wait());
    connect();
    driver_.receive("-NOAUTH Authentication required.\r\n");
    connect();
    driver_.receive("-ERR unknown command 'SENTINEL', with args beginning with: \r\n");
    connect();
    driver_.receive("\x15\x03\x01");
    driver_.receive("\r\n");
    EXPECT_THAT(take_found(),
                ElementsAre("nobody: s0:1: NOAUTH Authentication required.: " + std::string(kSentinelLogin) +
                            "; s1:2: ERR unknown command 'SENTINEL', with args beginning with: : " +
                            std::string(kIsNoSentinel) + "; s2:3: " + std::string(strange_answer("\x15\x03"))));
  }
}

TEST_F(SentinelTest, OneThatClosesTheConnectionUnheard) {
  find();
  for (int i = 0; i < 3; ++i) {
    connect();
    driver_.lose();
  }
  EXPECT_THAT(take_found(), ElementsAre(::testing::HasSubstr(kClosedUnheard)));
}

TEST_F(SentinelTest, ASilentOneIsLeftAfterHalfASecond) {
  find();
  EXPECT_EQ(connect(), "s0:1");
  driver_.advance(500 * kMs - 1);
  EXPECT_EQ(sentinels_.wish(), Machine::Wish::nothing);
  driver_.advance(1);
  EXPECT_EQ(connect(), "s1:2");
  EXPECT_THAT(take_found(), IsEmpty());
}

TEST_F(SentinelTest, OneThatIsLostIsReplacedAtOnce) {
  connect();
  driver_.receive(master_at("10.0.0.1", "6379") + kSubscribed);
  take_masters();
  driver_.lose();
  EXPECT_EQ(connect(), "s1:2");
  // A switch that nobody listened to is told by the question.
  driver_.receive(master_at("10.0.0.2", "6379"));
  EXPECT_THAT(take_masters(), ElementsAre("10.0.0.2:6379"));
}

TEST_F(SentinelTest, PausesGrowWhileNoneCanBeReached) {
  std::int64_t expected = 50 * kMs;
  for (int round = 0; round < 20; ++round) {
    find();
    for (const char* server : {"s0:1", "s1:2", "s2:3"}) {
      const auto address = driver_.fail_to_connect();
      ASSERT_TRUE(address);
      EXPECT_EQ(address->to_text(), server);
      driver_.pump();
    }
    EXPECT_THAT(take_found(),
                ElementsAre("nobody: s0:1: cannot be reached; s1:2: cannot be reached; s2:3: cannot be reached"));
    EXPECT_EQ(sentinels_.wish(), Machine::Wish::nothing);
    EXPECT_GE(driver_.wait(), expected * 8 / 10);
    EXPECT_LE(driver_.wait(), expected * 12 / 10);
    expected = std::min(2 * expected, 500 * kMs);
    driver_.advance(driver_.wait());
  }
  // One that knows ends it.
  connect();
  driver_.receive(master_at("10.0.0.1", "6379"));
  driver_.lose();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(driver_.fail_to_connect());
    driver_.pump();
  }
  EXPECT_LE(driver_.wait(), 60 * kMs);
}

TEST_F(SentinelTest, WithoutTheRightToSubscribeTheMasterIsKnownAllTheSame) {
  find();
  connect();
  driver_.receive(master_at("10.0.0.1", "6379") + "-NOPERM no\r\n");
  EXPECT_THAT(take_found(), ElementsAre("10.0.0.1:6379"));
  EXPECT_EQ(sentinels_.wish(), Machine::Wish::nothing);
}

TEST_F(SentinelTest, QuestionsThatAreForgottenAreNotAnswered) {
  find();
  sentinels_.forget_questions();
  connect();
  driver_.receive(master_at("10.0.0.1", "6379"));
  EXPECT_THAT(take_found(), IsEmpty());
}

}  // namespace
}  // namespace sluice::store::redis
