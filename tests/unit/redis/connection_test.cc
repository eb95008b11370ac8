#include "store/redis/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/redis/advice.h"
#include "tests/unit/redis/redis_test_util.h"

namespace sluice::store::redis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ConnectionTest : public ::testing::Test, protected Connection::Owner {
 protected:
  void logged_in() override { events_.emplace_back("logged in"); }
  void answered(Batch& batch, const redisReply& reply) override {
    events_.push_back(
        name(batch) + " answered " +
        (reply.type == REDIS_REPLY_INTEGER ? std::to_string(reply.integer) : std::string(text_of(reply))));
  }
  void failed(Batch& batch, Failure failure) override {
    events_.push_back(name(batch) + " failed: " + std::string(to_text(failure)));
  }
  static std::string name(const Batch& batch) { return std::string(batch.name(batch.keys()[0]).substr(8, 1)); }

  // What a batch of one check looks like on the wire, after the script's name.
  struct Sent {
    Sent(const CountedLimit& limit, std::string_view key) : check({{.limit = &limit, .key = key}}) {
      if (!testing::add(batch, check)) throw std::logic_error("a batch takes its first request");
      text = testing::call_of(batch);
    }
    testing::TestCheck check;
    Batch batch;
    std::string text;
  };
  std::string by_name(const Sent& sent) { return "*5\r\n$7\r\nEVALSHA\r\n$40\r\n" + script_.sha1 + "\r\n" + sent.text; }
  static std::string with_text(const Sent& sent) { return "*5\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n" + sent.text; }
  std::vector<std::string> take_events() { return std::exchange(events_, {}); }
  std::string take_output(Connection& connection) { return std::exchange(connection.output(), {}); }
  void log_in(Connection& connection) {
    connection.open();
    connection.output().clear();
    ASSERT_EQ(connection.feed("+OK\r\n"), Failure::none);
    ASSERT_TRUE(connection.is_ready());
    events_.clear();
  }

  const Script script_{"return 1", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  Hello hello_;
  CountedLimit limit_ = testing::bucket(1, 1);
  Sent a_{limit_, "a"};
  Sent b_{limit_, "b"};
  std::vector<std::string> events_;
};

TEST_F(ConnectionTest, GreetsInOneWrite) {
  hello_.user = "me";
  hello_.password = "pw";
  hello_.database = 3;
  Connection connection(hello_, script_, *this);
  connection.open();
  EXPECT_EQ(take_output(connection),
            "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"
            "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n");
  EXPECT_FALSE(connection.is_ready());
  EXPECT_EQ(connection.feed("+OK\r\n+OK\r\n"), Failure::none);
  EXPECT_FALSE(connection.is_ready());
  EXPECT_EQ(connection.feed("$40\r\n" + script_.sha1 + "\r\n"), Failure::none);
  EXPECT_TRUE(connection.is_ready());
  EXPECT_THAT(take_events(), ElementsAre("logged in"));
}

TEST_F(ConnectionTest, AuthWithoutAUser) {
  hello_.password = "pw";
  Connection connection(hello_, script_, *this);
  connection.open();
  EXPECT_THAT(take_output(connection), StartsWith("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*3\r\n"));
}

TEST_F(ConnectionTest, ARefusedGreetingClosesIt) {
  hello_.password = "pw";
  const std::vector<std::pair<std::string, Failure>> cases = {
      {"-WRONGPASS no\r\n", Failure::not_authenticated},
      {"+OK\r\n-LOADING x\r\n", Failure::loading},
      {"+OK\r\n-NOAUTH x\r\n", Failure::not_authenticated},
      {"-ERR max number of clients reached\r\n", Failure::server_error},
      {"+OK\r\n-ERR max number of clients reached\r\n", Failure::server_error},
      {"HTTP/1.1\r\n", Failure::bad_answer},
  };
  for (const auto& [bytes, failure] : cases) {
    Connection connection(hello_, script_, *this);
    connection.open();
    EXPECT_EQ(connection.feed(bytes), failure) << bytes;
    EXPECT_FALSE(connection.is_ready());
  }
  EXPECT_THAT(take_events(), IsEmpty());
}

std::string hello_answer(std::string_view mode, std::string_view role) {
  return "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:"
         "5\r\n" +
         testing::bulk("mode") + testing::bulk(mode) + testing::bulk("role") + testing::bulk(role) +
         "$7\r\nmodules\r\n*0\r\n";
}

// A URL of one server that leads to another kind of it.
TEST_F(ConnectionTest, AServerOfAnotherKindIsRefusedWithWhatToWrite) {
  hello_.wants_alone = true;
  const auto refusal = [&](const std::string& bytes, Failure expected) {
    Connection connection(hello_, script_, *this);
    connection.open();
    EXPECT_EQ(take_output(connection), "*1\r\n$5\r\nHELLO\r\n");
    EXPECT_EQ(connection.feed(bytes), expected) << bytes;
    EXPECT_FALSE(connection.is_ready());
    EXPECT_EQ(take_output(connection), "");  // no script for such
    return connection.refusal();
  };
  EXPECT_EQ(refusal(hello_answer("sentinel", "master"), Failure::wrong_server), kIsSentinel);
  EXPECT_EQ(refusal(hello_answer("cluster", "master"), Failure::wrong_server), kIsClusterNode);
  EXPECT_EQ(refusal(hello_answer("standalone", "replica"), Failure::wrong_server), kNotMaster);
  EXPECT_THAT(refusal("-NOAUTH HELLO must be called\r\n", Failure::not_authenticated), HasSubstr(kLogin));
  EXPECT_EQ(refusal("-ERR max number of clients reached\r\n", Failure::server_error),
            "ERR max number of clients reached");
  EXPECT_EQ(refusal("\x15\x03\x03\r\n", Failure::bad_answer), strange_answer("\x15\x03"));
  // A master, and those that do not know the question.
  for (const std::string& bytes :
       {hello_answer("standalone", "master"), std::string("-ERR unknown command `HELLO`\r\n"),
        std::string("-NOPERM no\r\n"), std::string("-NOPROTO no\r\n"), std::string("*1\r\n$4\r\nmode\r\n"),
        std::string("+OK\r\n")}) {
    Connection connection(hello_, script_, *this);
    connection.open();
    EXPECT_EQ(connection.feed(bytes), Failure::none) << bytes;
    EXPECT_THAT(take_output(connection), ::testing::EndsWith("SCRIPT\r\n$4\r\nLOAD\r\n$8\r\nreturn 1\r\n"));
    EXPECT_FALSE(connection.is_ready());
    EXPECT_EQ(connection.feed("+OK\r\n"), Failure::none) << bytes;
    EXPECT_TRUE(connection.is_ready()) << bytes;
  }
}

TEST_F(ConnectionTest, WhatIsRefusedAtLoginNamesTheSettings) {
  hello_.password = "pw";
  Connection connection(hello_, script_, *this);
  connection.open();
  EXPECT_EQ(connection.feed("-WRONGPASS invalid\r\n"), Failure::not_authenticated);
  EXPECT_EQ(connection.refusal(), "WRONGPASS invalid: " + std::string(kLogin));
}

TEST_F(ConnectionTest, ADatabaseThatIsNotThereNamesTheSetting) {
  hello_.database = 99;
  Connection connection(hello_, script_, *this);
  connection.open();
  EXPECT_EQ(connection.feed("-ERR DB index is out of range\r\n"), Failure::server_error);
  EXPECT_EQ(connection.refusal(), "ERR DB index is out of range: " + std::string(kNoDatabase));
}

TEST_F(ConnectionTest, WorksWhereScriptsMayNotBeLoaded) {
  for (const char* bytes : {"-NOPERM x\r\n", "-ERR unknown command 'SCRIPT'\r\n"}) {
    Connection connection(hello_, script_, *this);
    connection.open();
    EXPECT_EQ(connection.feed(bytes), Failure::none);
    EXPECT_TRUE(connection.is_ready());
  }
}

TEST_F(ConnectionTest, RepliesInOrderSplitAtEachByte) {
  const std::string replies = ":7\r\n$3\r\nx\r\n\r\n";
  for (std::size_t cut = 0; cut <= replies.size(); ++cut) {
    Connection connection(hello_, script_, *this);
    log_in(connection);
    connection.send(a_.batch);
    connection.send(b_.batch);
    EXPECT_EQ(connection.in_flight(), 2U);
    EXPECT_EQ(take_output(connection), by_name(a_) + by_name(b_));
    EXPECT_EQ(connection.feed(std::string_view(replies).substr(0, cut)), Failure::none);
    EXPECT_EQ(connection.feed(std::string_view(replies).substr(cut)), Failure::none);
    EXPECT_THAT(take_events(), ElementsAre("a answered 7", "b answered x\r\n"));
    EXPECT_EQ(connection.in_flight(), 0U);
  }
}

TEST_F(ConnectionTest, NoScriptIsSentOnceMoreWithTheText) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  connection.send(a_.batch);
  connection.send(b_.batch);
  take_output(connection);
  EXPECT_EQ(connection.feed("-NOSCRIPT x\r\n"), Failure::none);
  EXPECT_EQ(take_output(connection), with_text(a_));
  EXPECT_THAT(take_events(), IsEmpty());
  EXPECT_EQ(connection.feed(":2\r\n:1\r\n"), Failure::none);
  EXPECT_THAT(take_events(), ElementsAre("b answered 2", "a answered 1"));
}

// What is sent again behind the text finds the script there.
TEST_F(ConnectionTest, TheTextIsSentOnceForAllThatIsOnItsWay) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  connection.send(a_.batch);
  connection.send(b_.batch);
  take_output(connection);
  EXPECT_EQ(connection.feed("-NOSCRIPT x\r\n-NOSCRIPT x\r\n"), Failure::none);
  EXPECT_EQ(take_output(connection), with_text(a_) + by_name(b_));
  // Gone again in between.
  EXPECT_EQ(connection.feed(":1\r\n-NOSCRIPT x\r\n"), Failure::none);
  EXPECT_EQ(take_output(connection), with_text(b_));
  EXPECT_EQ(connection.feed(":2\r\n"), Failure::none);
  EXPECT_THAT(take_events(), ElementsAre("a answered 1", "b answered 2"));
}

TEST_F(ConnectionTest, NoScriptOfAWithdrawnCheckIsNotSentAgain) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  connection.send(a_.batch);
  take_output(connection);
  ASSERT_TRUE(a_.batch.withdraw(a_.check));
  EXPECT_EQ(connection.feed("-NOSCRIPT x\r\n"), Failure::none);
  EXPECT_THAT(take_output(connection), IsEmpty());
  EXPECT_THAT(take_events(), ElementsAre("a answered NOSCRIPT x"));
}

TEST_F(ConnectionTest, OnlyWhatIsAwaitedIsSentAgain) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  testing::TestCheck other({{.limit = &limit_, .key = "b"}});
  ASSERT_TRUE(testing::add(a_.batch, other));
  connection.send(a_.batch);
  take_output(connection);
  ASSERT_TRUE(a_.batch.withdraw(a_.check));
  EXPECT_EQ(connection.feed("-NOSCRIPT x\r\n"), Failure::none);
  EXPECT_EQ(take_output(connection), with_text(b_));
}

TEST_F(ConnectionTest, AReplyThatNobodyAskedForClosesIt) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  EXPECT_EQ(connection.feed(":1\r\n"), Failure::bad_answer);
}

TEST_F(ConnectionTest, ClosingFailsWhatIsInFlight) {
  Connection connection(hello_, script_, *this);
  log_in(connection);
  connection.send(a_.batch);
  connection.send(b_.batch);
  EXPECT_EQ(connection.feed(":1\r\n$10\r\nabc"), Failure::none);
  connection.close(Failure::lost);
  EXPECT_THAT(take_events(), ElementsAre("a answered 1", HasSubstr("b failed")));
  EXPECT_FALSE(connection.is_ready());
  // The half reply of the old connection does not show in the next one.
  log_in(connection);
  connection.send(a_.batch);
  EXPECT_EQ(connection.feed(":5\r\n"), Failure::none);
  EXPECT_THAT(take_events(), ElementsAre("a answered 5"));
}

}  // namespace
}  // namespace sluice::store::redis
