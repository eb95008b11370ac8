#include "front/resp/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.h"
#include "tests/unit/front/slow_store.h"

namespace sluice::resp {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { name: Daily, algorithm: token_bucket, period: 1d, requests_per_unit: 2 }
  - key: api
    rate_limit: { algorithm: token_bucket, period: 1d, requests_per_unit: 10 }
)";

/// As a client library sends it.
std::string command(const std::vector<std::string>& words) {
  std::string out = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  return out;
}

std::string five(int a, int b, int c, int d, int e) {
  std::string out = "*5\r\n";
  for (const int number : {a, b, c, d, e}) out += ":" + std::to_string(number) + "\r\n";
  return out;
}

class Peer final : private Connection::Host {
 public:
  Peer() {
    const std::array<policy::SourceText, 1> texts = {{{"policy.yaml", std::string(kPolicy)}}};
    policy::Loaded loaded = policy::load_texts(texts);
    EXPECT_TRUE(loaded.policy);
    policies.set(std::move(loaded.policy));
  }
  /// Made at first use, so that a test can set options before.
  Connection& connection() {
    if (!connection_) {
      Connection::Host& host = *this;
      connection_ = std::make_unique<Connection>(environment_, host, 7, clock.now());
    }
    return *connection_;
  }
  std::string talk(std::string_view bytes) {
    connection().feed(bytes, clock.now());
    return take();
  }
  /// Takes all output, as a peer that reads at once does.
  std::string take() {
    std::string all;
    do {
      connection().proceed(clock.now());
      all += connection().output();
      connection().sent(connection().output().size(), clock.now());
    } while (connection().can_proceed());
    return all;
  }
  void disconnect() { connection_.reset(); }
  /// Answers what the store was asked longest ago, or last.
  std::string answer(bool newest = false) {
    store.answer(newest);
    return take();
  }

  front::ManualClock clock;
  policy::SnapshotHolder policies;
  policy::SnapshotReader reader{policies};
  front::SlowStore store;
  metrics::Registry registry;
  metrics::Shard& shard = registry.add_shard();
  ThrottleLimits limits;
  RespOptions options;
  bool draining = false;
  int resumed_count = 0;

 private:
  void resumed() override { ++resumed_count; }

  Environment environment_{options, reader, store, shard, limits, draining};
  std::unique_ptr<Connection> connection_;
};

// What redis-cell answers, where that is right; and where it is not, what is.
TEST(Resp, GoldenTableOfClThrottle) {
  Peer peer;
  const auto ask = [&](const std::string& line) { return peer.talk("CL.THROTTLE " + line + "\r\n"); };
  EXPECT_EQ(ask("a 15 30 60"), five(0, 16, 15, -1, 2));
  EXPECT_EQ(ask("a 15 30 60"), five(0, 16, 14, -1, 4));
  EXPECT_EQ(ask("b 3 10 60 4"), five(0, 4, 0, -1, 24));
  EXPECT_EQ(ask("b 3 10 60 0"), five(0, 4, 0, -1, 24));  // a peek is never limited
  EXPECT_EQ(ask("b 3 10 60 1"), five(1, 4, 0, 6, 24));
  EXPECT_EQ(ask("b 3 10 60 -2"), five(0, 4, 2, -1, 12));  // gives back
  EXPECT_EQ(ask("b 3 10 60 -9"), five(0, 4, 4, -1, 0));   // no more than was taken
  EXPECT_EQ(ask("c 3 10 60 5"), five(1, 4, 4, -1, 0));    // can never fit
  EXPECT_EQ(ask("c 3 10 60 0"), five(0, 4, 4, -1, 0));
  EXPECT_EQ(ask("d 3 10 60 -2"), five(0, 4, 4, -1, 0));
  EXPECT_EQ(ask("d 3 10 60 9223372036854775807"), five(1, 4, 4, -1, 0));
  EXPECT_EQ(ask("e 6000 6000 1"), five(0, 6001, 6000, -1, 1));  // remaining is never above the limit
  // Below a millisecond a token; a denial says at least one second.
  EXPECT_EQ(ask("f 0 100000 1"), five(0, 1, 0, -1, 1));
  EXPECT_EQ(ask("f 0 100000 1"), five(1, 1, 0, 1, 1));
  peer.clock.advance(10us);
  EXPECT_EQ(ask("f 0 100000 1"), five(0, 1, 0, -1, 1));
  EXPECT_THAT(ask("g -1 10 60"), StartsWith("-ERR max_burst must be"));
  EXPECT_THAT(ask("g 3 -10 60"), StartsWith("-ERR count must be"));
  EXPECT_EQ(ask("g 9223372036854775807 10 60"), "*5\r\n:0\r\n:1000000000000000\r\n:999999999999999\r\n:-1\r\n:6\r\n");
}

TEST(Resp, ThrottleWithABurstOfOneLimits) {
  Peer peer;
  EXPECT_EQ(peer.talk("THROTTLE k 1 1 3600\r\n"), five(1, 1, 0, 3600, 0));
  EXPECT_EQ(peer.talk("THROTTLE k 1 1 3600\r\n"), five(0, 1, 0, 3600, 3600));
  peer.clock.advance(3599s + 1ns);
  EXPECT_EQ(peer.talk("THROTTLE k 1 1 3600\r\n"), five(0, 1, 0, 1, 1));
  peer.clock.advance(1s - 1ns);
  EXPECT_EQ(peer.talk("THROTTLE k 1 1 3600\r\n"), five(1, 1, 0, 3600, 0));
}

TEST(Resp, OneKeyIsOneCounterWhateverTheNumbers) {
  Peer peer;
  EXPECT_EQ(peer.talk("GCRA k 3 1 60 TOKENS 3\r\n"), five(0, 4, 1, -1, 180));
  // Tokens stay as they are, cut to the new burst.
  EXPECT_EQ(peer.talk("PEEK k 9 1 60\r\n"), five(0, 10, 1, -1, 540));
  EXPECT_EQ(peer.talk("THROTTLE k 1 1 60 0\r\n"), five(1, 1, 1, 0, 0));
  EXPECT_EQ(peer.talk("RESET k\r\n"), "+OK\r\n");
  EXPECT_THAT(peer.talk("RESET k l\r\n"), StartsWith("-ERR wrong number of arguments for 'reset'"));
  EXPECT_EQ(peer.talk("PEEK k 3 1 60\r\n"), five(0, 4, 4, -1, 0));
  EXPECT_EQ(peer.talk("RESET k\r\n"), "+OK\r\n");
}

TEST(Resp, KeysAreAnyBytes) {
  Peer peer;
  const std::vector<std::string> keys = {
      "", " ", "{a}", "a|b", "a\0b"s, "a", "\xff\xfe", "%", "#", std::string(60'000, 'x'), std::string(60'001, 'x')};
  for (const std::string& key : keys) {
    EXPECT_EQ(peer.talk(command({"CL.THROTTLE", key, "0", "1", "60"})), five(0, 1, 0, -1, 60));
  }
  for (const std::string& key : keys) {
    EXPECT_EQ(peer.talk(command({"CL.THROTTLE", key, "0", "1", "60"})), five(1, 1, 0, 60, 60));
  }
}

TEST(Resp, RepliesComeInOrderHoweverTheStoreAnswers) {
  Peer peer;
  peer.store.slow = true;
  EXPECT_EQ(peer.talk("CL.THROTTLE a 0 1 60\r\nPING\r\nTHROTTLE b 1 1 60\r\nnope\r\nSLUICE CHECK shop 1 user 42\r\n"),
            "");
  ASSERT_EQ(peer.store.waiting.size(), 3U);
  EXPECT_EQ(peer.answer(true), "");
  EXPECT_EQ(peer.answer(true), "");
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60) + "+PONG\r\n" + five(1, 1, 0, 60, 0) +
                               "-ERR unknown command 'nope': see COMMAND LIST\r\n" + "*2\r\n" +
                               five(0, 2, 1, -1, 43200) + "$5\r\nDaily\r\n");
  EXPECT_EQ(peer.resumed_count, 3);
}

TEST(Resp, ADenialForWantOfAStoreIsAnError) {
  Peer peer;
  peer.store.slow = true;
  peer.talk("SLUICE CHECK shop 1 user 42\r\nSLUICE CHECK shop 1 user 42\r\n");
  peer.store.fail(Source::fallback_deny);
  EXPECT_EQ(peer.take(), "-ERR the store failed: denied by on_store_failure\r\n");
  peer.store.fail(Source::fallback_allow);
  EXPECT_EQ(peer.take(), "*2\r\n" + five(0, 0, 0, -1, 0) + "$5\r\nDaily\r\n");
}

// A refund or a reset is done when all before it is, and what follows waits for it.
TEST(Resp, ChangesWaitForWhatIsBefore) {
  Peer peer;
  peer.store.slow = true;
  EXPECT_EQ(peer.talk("CL.THROTTLE a 0 1 60\r\nRESET a\r\nCL.THROTTLE a 0 1 60\r\nCL.THROTTLE a 0 1 60 -1\r\nPING\r\n"),
            "");
  EXPECT_EQ(peer.store.waiting.size(), 1U);
  EXPECT_FALSE(peer.connection().wants_input());
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60));
  EXPECT_EQ(peer.store.waiting.size(), 1U);
  EXPECT_EQ(peer.answer(), "+OK\r\n");
  EXPECT_EQ(peer.store.waiting.size(), 1U);
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60));
  EXPECT_EQ(peer.answer(), five(0, 1, 1, -1, 0) + "+PONG\r\n");
  EXPECT_TRUE(peer.connection().wants_input());
  EXPECT_EQ(peer.talk("SLUICE PENALIZE shop 5 user 1\r\nSLUICE PEEK shop 1 user 1\r\n"), "");
  EXPECT_EQ(peer.answer(), ":1\r\n");
  EXPECT_THAT(peer.answer(), StartsWith("*2\r\n*5\r\n:1\r\n:2\r\n:0\r\n"));
}

TEST(Resp, VerbsOnThePolicy) {
  Peer peer;
  const auto check = [](const std::string& figures, const std::string& name) {
    return "*2\r\n" + figures + "$" + std::to_string(name.size()) + "\r\n" + name + "\r\n";
  };
  EXPECT_EQ(peer.talk("SLUICE CHECK shop 2 user 42\r\n"), check(five(0, 2, 0, -1, 86400), "Daily"));
  EXPECT_EQ(peer.talk("SLUICE CHECK shop 1 user 42 | api x\r\n"), check(five(1, 2, 0, 43200, 86400), "Daily"));
  EXPECT_EQ(peer.talk("SLUICE PEEK shop 0 api x\r\n"), check(five(0, 10, 10, -1, 0), "api"));  // nothing was taken
  EXPECT_EQ(peer.talk("SLUICE REFUND shop 1 user 42\r\n"), ":1\r\n");
  EXPECT_EQ(peer.talk("SLUICE SETTLE shop 1 2 user 42\r\n"), ":1\r\n");
  EXPECT_EQ(peer.talk("SLUICE PEEK shop 0 user 42\r\n"), check(five(0, 2, 0, -1, 86400), "Daily"));
  EXPECT_EQ(peer.talk("SLUICE RESET shop user 42 | api x | none y\r\n"), ":2\r\n");
  EXPECT_EQ(peer.talk("SLUICE CHECK shop 1 none y\r\n"), "*2\r\n" + five(0, 0, 0, -1, 0) + "$-1\r\n");
  EXPECT_EQ(peer.talk("SLUICE CHECK \"\" 1 a b\r\n"), "-ERR the domain must not be empty\r\n");
  peer.store.failure = store::Failure::unreachable;
  EXPECT_THAT(peer.talk("SLUICE RESET shop user 42\r\n"), StartsWith("-ERR the store failed: "));
  EXPECT_THAT(peer.talk("RESET k\r\n"), StartsWith("-ERR the store failed: "));
}

TEST(Resp, ClientsIntroduceThemselves) {
  Peer peer;
  EXPECT_THAT(peer.talk("HELLO\r\n"), StartsWith("*14\r\n$6\r\nserver\r\n$6\r\nsluice\r\n"));
  EXPECT_THAT(peer.talk("HELLO 3 SETNAME me\r\n"), StartsWith("%7\r\n"));
  EXPECT_EQ(peer.talk("CLIENT GETNAME\r\nCLIENT ID\r\n"), "$2\r\nme\r\n:7\r\n");
  EXPECT_EQ(peer.talk("CLIENT SETINFO LIB-NAME x\r\nSELECT 0\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_THAT(peer.talk("SELECT 1\r\n"), StartsWith("-ERR "));
  EXPECT_EQ(peer.talk("SLUICE CHECK shop 1 none y\r\n"), "*2\r\n" + five(0, 0, 0, -1, 0) + "_\r\n");
  EXPECT_EQ(peer.talk("RESET\r\nCLIENT GETNAME\r\n"), "+RESET\r\n$-1\r\n");
  EXPECT_THAT(peer.talk("HELLO 4\r\n"), StartsWith("-NOPROTO "));
  EXPECT_THAT(peer.talk("HELLO 2 NONSENSE\r\n"), StartsWith("-ERR syntax error"));
  EXPECT_EQ(peer.talk("PING hello\r\nECHO x\r\n"), "$5\r\nhello\r\n$1\r\nx\r\n");
  EXPECT_THAT(peer.talk("AUTH x\r\n"), StartsWith("-ERR AUTH was sent"));
  EXPECT_EQ(peer.talk("COMMAND COUNT\r\n"), ":15\r\n");
  EXPECT_THAT(peer.talk("COMMAND\r\n"),
              StartsWith("*15\r\n*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n"));
  EXPECT_EQ(peer.talk("COMMAND DOCS x\r\nCOMMAND INFO x\r\n"), "*0\r\n*1\r\n$-1\r\n");
  EXPECT_THAT(peer.talk("INFO\r\n"), HasSubstr("redis_version:"));
}

TEST(Resp, APasswordIsAskedFor) {
  Peer peer;
  peer.options.password = "secret";
  EXPECT_THAT(peer.talk("PING\r\nCL.THROTTLE a 1 1 1\r\nRESET a\r\nSLUICE RESET shop user 1\r\n"),
              testing::Eq("-NOAUTH give the password first: AUTH password\r\n"
                          "-NOAUTH give the password first: AUTH password\r\n"
                          "-NOAUTH give the password first: AUTH password\r\n"
                          "-NOAUTH give the password first: AUTH password\r\n"));
  EXPECT_THAT(peer.talk("AUTH wrong\r\nAUTH other secret\r\nAUTH secret1\r\n"),
              testing::Eq("-WRONGPASS user or password is wrong\r\n-WRONGPASS user or password is wrong\r\n"
                          "-WRONGPASS user or password is wrong\r\n"));
  EXPECT_THAT(peer.talk("HELLO 3\r\n"), StartsWith("-NOAUTH "));
  EXPECT_THAT(peer.talk("HELLO 3 AUTH default wrong\r\n"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(peer.talk("AUTH default secret\r\nPING\r\n"), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(peer.talk("RESET\r\nPING\r\n"), "+RESET\r\n-NOAUTH give the password first: AUTH password\r\n");
  EXPECT_THAT(peer.talk("HELLO 2 AUTH default secret\r\n"), StartsWith("*14\r\n"));
}

TEST(Resp, WhatIsNoRespEndsTheConnection) {
  for (const std::string& bytes : {"*1\r\n$536870912\r\n"s, "*9999999\r\n"s, "*1\r\n+PING\r\n"s, "\"\n"s}) {
    Peer peer;
    EXPECT_THAT(peer.talk("PING\r\n" + bytes + "PING\r\n"), StartsWith("+PONG\r\n-ERR Protocol error: ")) << bytes;
    EXPECT_TRUE(peer.connection().finished());
  }
  Peer browser;
  EXPECT_THAT(browser.talk("POST / HTTP/1.1\r\nHost: x\r\n\r\nRESET k\r\n"), StartsWith("-ERR unknown command 'POST'"));
  EXPECT_TRUE(browser.connection().finished());
  Peer quits;
  EXPECT_EQ(quits.talk("QUIT\r\nPING\r\n"), "+OK\r\n");
  EXPECT_TRUE(quits.connection().finished());
}

TEST(Resp, AMillionEmptyCommandsAreNothing) {
  Peer peer;
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "*0\r\n\r\n";
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(peer.talk(many), "");
  EXPECT_EQ(peer.talk("PING\r\n"), "+PONG\r\n");
}

TEST(Resp, APeerThatDoesNotReadIsBounded) {
  Peer peer;
  std::string many;
  for (int i = 0; i < 5'000; ++i) many += "COMMAND\r\n";
  peer.connection().feed(many, peer.clock.now());
  EXPECT_FALSE(peer.connection().wants_input());
  EXPECT_LT(peer.connection().output().size(), 2 * peer.options.max_unsent);
  peer.connection().sent(0, peer.clock.now());
  peer.clock.advance(peer.options.write_timeout - 1ns);
  EXPECT_FALSE(peer.connection().is_expired(peer.clock.now()));
  peer.clock.advance(1ns);
  EXPECT_TRUE(peer.connection().is_expired(peer.clock.now()));
}

TEST(Resp, CommandsBeyondTheMostInFlightWait) {
  Peer peer;
  peer.options.max_waiting = 2;
  peer.store.slow = true;
  EXPECT_EQ(peer.talk("THROTTLE a 1 1 60\r\nTHROTTLE b 1 1 60\r\nTHROTTLE c 1 1 60\r\n"), "");
  EXPECT_EQ(peer.store.waiting.size(), 2U);
  EXPECT_FALSE(peer.connection().wants_input());
  EXPECT_EQ(peer.answer(), five(1, 1, 0, 60, 0));
  EXPECT_EQ(peer.store.waiting.size(), 2U);
  EXPECT_EQ(peer.answer() + peer.answer(), five(1, 1, 0, 60, 0) + five(1, 1, 0, 60, 0));
}

// However the bytes are cut, the replies are the same.
TEST(Resp, BytesMayBeCutAnywhere) {
  const std::string all = command({"CL.THROTTLE", "k", "2", "1", "60"}) + "PING\r\n" + command({"ECHO", "a\r\nb"}) +
                          "*0\r\n" + command({"CL.THROTTLE", "k", "2", "1", "60", "-1"}) + "echo 'x y'\n" +
                          command({"THROTTLE", "k", "3", "1", "60", "3"});
  std::string whole;
  {
    Peer peer;
    whole = peer.talk(all);
  }
  for (std::size_t size = 1; size < all.size(); ++size) {
    Peer peer;
    std::string pieces;
    for (std::size_t at = 0; at < all.size(); at += size) pieces += peer.talk(std::string_view(all).substr(at, size));
    ASSERT_EQ(pieces, whole) << size;
  }
}

TEST(Resp, SlowCommandsAndSilenceHaveDeadlines) {
  Peer slow;
  slow.talk("PI");
  slow.clock.advance(6s);
  slow.talk("N");
  slow.clock.advance(4s);
  EXPECT_TRUE(slow.connection().is_expired(slow.clock.now()));
  Peer idle;
  idle.talk("PING\r\n");
  idle.clock.advance(24h);
  EXPECT_FALSE(idle.connection().is_expired(idle.clock.now()));
  Peer bounded;
  bounded.options.idle_timeout = 1min;
  bounded.talk("PING\r\n");
  bounded.clock.advance(1min);
  EXPECT_TRUE(bounded.connection().is_expired(bounded.clock.now()));
}

TEST(Resp, DrainsWhatIsInFlight) {
  Peer peer;
  peer.store.slow = true;
  peer.talk("THROTTLE a 1 1 60\r\nTHROT");
  peer.draining = true;
  EXPECT_FALSE(peer.connection().wants_input());
  EXPECT_FALSE(peer.connection().finished());
  EXPECT_EQ(peer.answer(), five(1, 1, 0, 60, 0));
  EXPECT_TRUE(peer.connection().finished());
}

TEST(Resp, AClientThatLeavesWithdrawsItsCommands) {
  Peer peer;
  peer.store.slow = true;
  peer.talk("THROTTLE a 1 1 60\r\nTHROTTLE b 1 1 60\r\nSLUICE CHECK shop 1 user 1\r\n");
  EXPECT_EQ(peer.store.waiting.size(), 3U);
  peer.disconnect();
  EXPECT_TRUE(peer.store.waiting.empty());
  EXPECT_EQ(peer.store.cancelled, 3);
}

TEST(Resp, CountsWhatItDid) {
  Peer peer;
  peer.talk("THROTTLE a 1 1 60\r\nTHROTTLE a 1 1 60\r\nTHROTTLE a 1 1 60 0\r\nnope\r\nPING\r\n");
  EXPECT_EQ(peer.shard.value(metrics::Counter::resp_commands), 5U);
  EXPECT_EQ(peer.shard.value(metrics::Counter::resp_errors), 1U);
  EXPECT_EQ(peer.shard.value(metrics::Counter::throttle_allowed), 1U);
  EXPECT_EQ(peer.shard.value(metrics::Counter::throttle_denied), 1U);
}

}  // namespace
}  // namespace sluice::resp
