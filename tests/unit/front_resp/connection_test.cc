#include "front/resp/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/drain.h"
#include "tests/unit/front/token_file.h"
#include "tests/unit/front/verb_table.h"
#include "tests/unit/front_resp/peer.h"

namespace sluice::resp {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using testing::HasSubstr;
using testing::StartsWith;

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

// Inputs that broke other limiters, by their row in the collection of reports.
TEST(Resp, public_report_1_many_tokens_a_second) {
  Peer peer;
  for (int left = 1000; left > 997; --left) {
    EXPECT_EQ(peer.talk("CL.THROTTLE u 1000 1000 60\r\n"), five(0, 1001, left, -1, 1));
  }
}

TEST(Resp, public_report_2_a_wait_below_a_second_is_told_as_one) {
  Peer peer;
  EXPECT_EQ(peer.talk("CL.THROTTLE k 0 2 1\r\n"), five(0, 1, 0, -1, 1));
  EXPECT_EQ(peer.talk("CL.THROTTLE k 0 2 1\r\n"), five(1, 1, 0, 1, 1));
  peer.clock.advance(500ms);
  EXPECT_EQ(peer.talk("CL.THROTTLE k 0 2 1\r\n"), five(0, 1, 0, -1, 1));
}

TEST(Resp, public_report_3_zero_rates_are_errors) {
  Peer peer;
  EXPECT_THAT(peer.talk("CL.THROTTLE k 0 0 60 1\r\n"), StartsWith("-ERR count must be"));
  EXPECT_THAT(peer.talk("CL.THROTTLE k 0 5 0 1\r\n"), StartsWith("-ERR period must be"));
  EXPECT_EQ(peer.talk("CL.THROTTLE k 0 5 60\r\n"), five(0, 1, 0, -1, 12));
}

TEST(Resp, public_report_4_times_below_a_second_count) {
  Peer peer;
  std::chrono::milliseconds now{0};
  int limited = 0;
  for (const int at : {259, 533, 783, 1035, 1289, 1541, 1790, 2040}) {
    peer.clock.advance(std::chrono::milliseconds(at) - now);
    now = std::chrono::milliseconds(at);
    EXPECT_THAT(peer.talk("CL.THROTTLE k 0 2 1\r\n"), StartsWith("*5\r\n:" + std::to_string(limited))) << at;
    limited = 1 - limited;
  }
}

TEST(Resp, public_report_5_no_second_is_added) {
  Peer peer;
  EXPECT_EQ(peer.talk("CL.THROTTLE u 15 30 60\r\n"), five(0, 16, 15, -1, 2));
  EXPECT_EQ(peer.talk("CL.THROTTLE u 15 30 60\r\n"), five(0, 16, 14, -1, 4));
}

TEST(Resp, public_report_6_thousands_a_second) {
  Peer peer;
  EXPECT_EQ(peer.talk("CL.THROTTLE h 1 8000 1\r\n"), five(0, 2, 1, -1, 1));
  EXPECT_EQ(peer.talk("CL.THROTTLE h 1 8000 1\r\n"), five(0, 2, 0, -1, 1));
  EXPECT_EQ(peer.talk("CL.THROTTLE h 1 8000 1\r\n"), five(1, 2, 0, 1, 1));
  peer.clock.advance(125us);
  EXPECT_EQ(peer.talk("CL.THROTTLE h 1 8000 1\r\n"), five(0, 2, 0, -1, 1));
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

// What is like the command before it is not read as a whole again, and is the same command all the same.
TEST(Resp, CommandsLikeTheLastOneOfOtherKeys) {
  Peer peer;
  peer.options.password = "secret";
  const std::vector<std::string> a = {"CL.THROTTLE", "a", "3", "10", "60"};
  const std::vector<std::string> b = {"CL.THROTTLE", "another", "3", "10", "60"};
  EXPECT_THAT(peer.talk(command(a) + command(a)), StartsWith("-NOAUTH"));
  peer.talk(command({"AUTH", "secret"}));
  EXPECT_EQ(peer.talk(command(a) + command(a) + command(b)),
            five(0, 4, 3, -1, 6) + five(0, 4, 2, -1, 12) + five(0, 4, 3, -1, 6));
  const std::vector<std::string> more = {"CL.THROTTLE", "a", "3", "10", "60", "2"};
  EXPECT_EQ(peer.talk(command(more) + command(b)), five(0, 4, 0, -1, 24) + five(0, 4, 2, -1, 12));
  EXPECT_EQ(peer.talk(command(b) + command({"THROTTLE", "another", "4", "10", "60"})),
            five(0, 4, 1, -1, 18) + five(1, 4, 0, 24, 0));
  // The password is asked for again.
  EXPECT_EQ(peer.talk(command(b) + command({"RESET"}) + command(b)),
            five(1, 4, 0, 6, 24) + "+RESET\r\n" + "-NOAUTH give the password first: AUTH password\r\n");
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

/// The bulk string that a reply ends with.
std::string last_bulk(std::string reply) {
  reply.resize(reply.size() - 2);
  return reply.substr(reply.rfind('\n') + 1);
}

TEST(RespPolicyCommands, AcquireReserveAndBan) {
  Peer peer;
  const std::string held = peer.talk("SLUICE ACQUIRE shop 1 export acme\r\n");
  EXPECT_THAT(held, StartsWith("*3\r\n" + five(0, 1, 0, -1, 3600) + "$7\r\nExports\r\n"));
  EXPECT_THAT(peer.talk("SLUICE ACQUIRE shop 1 export acme\r\n"), StartsWith("*2\r\n*5\r\n:1\r\n"));
  EXPECT_THAT(peer.talk("SLUICE CHECK shop 1 export acme\r\n"),
              StartsWith("-ERR the keys lead to a limit of concurrency"));
  EXPECT_EQ(peer.talk("SLUICE RELEASE " + last_bulk(held) + "\r\n"), ":1\r\n");
  EXPECT_EQ(peer.talk("SLUICE RELEASE " + last_bulk(held) + "\r\n"), ":0\r\n");

  const std::string reserved = peer.talk("SLUICE RESERVE shop 8 60000 api x\r\n");
  EXPECT_THAT(reserved, StartsWith("*3\r\n" + five(0, 10, 2, -1, 69120) + "$3\r\napi\r\n"));
  EXPECT_EQ(peer.talk("SLUICE COMMIT " + last_bulk(reserved) + " 3\r\n"), ":1\r\n");
  EXPECT_EQ(peer.talk("SLUICE CANCEL " + last_bulk(reserved) + "\r\n"), ":0\r\n");
  EXPECT_THAT(peer.talk("SLUICE PEEK shop 0 api x\r\n"), HasSubstr("*5\r\n:0\r\n:10\r\n:7\r\n"));
  EXPECT_THAT(peer.talk("SLUICE RELEASE " + last_bulk(reserved) + "\r\n"), StartsWith("-ERR expected a lease"));
  EXPECT_THAT(peer.talk("SLUICE COMMIT nonsense 3\r\n"), StartsWith("-ERR expected a reservation"));
  EXPECT_THAT(peer.talk("SLUICE RESERVE shop 8 0 api x\r\n"), StartsWith("-ERR milliseconds must be 1 to 3600000"));
  EXPECT_EQ(peer.talk("SLUICE BAN shop 1000 user 42 | api x\r\n"), ":2\r\n");
}

TEST(Resp, ClientsIntroduceThemselves) {
  Peer peer;
  EXPECT_THAT(peer.talk("HELLO\r\n"), StartsWith("*14\r\n$6\r\nserver\r\n$6\r\nsluice\r\n"));
  EXPECT_THAT(peer.talk("HELLO 3 SETNAME me\r\n"), StartsWith("%7\r\n"));
  EXPECT_EQ(peer.talk("CLIENT GETNAME\r\nCLIENT ID\r\n"), "$2\r\nme\r\n:7\r\n");
  EXPECT_EQ(peer.talk("CLIENT SETINFO LIB-NAME x\r\nSELECT 0\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_THAT(peer.talk("SELECT 1\r\n"), StartsWith("-ERR there is only database 0: leave the number out"));
  EXPECT_EQ(peer.talk("SLUICE CHECK shop 1 none y\r\n"), "*2\r\n" + five(0, 0, 0, -1, 0) + "_\r\n");
  EXPECT_EQ(peer.talk("RESET\r\nCLIENT GETNAME\r\n"), "+RESET\r\n$-1\r\n");
  EXPECT_THAT(peer.talk("HELLO 4\r\n"), StartsWith("-NOPROTO "));
  EXPECT_THAT(peer.talk("HELLO 2 NONSENSE\r\n"), StartsWith("-ERR syntax error"));
  EXPECT_EQ(peer.talk("PING hello\r\nECHO x\r\n"), "$5\r\nhello\r\n$1\r\nx\r\n");
  EXPECT_THAT(peer.talk("AUTH x\r\n"), StartsWith("-ERR AUTH was sent"));
  EXPECT_EQ(peer.talk("COMMAND COUNT\r\n"), ":19\r\n");
  EXPECT_THAT(peer.talk("COMMAND\r\n"),
              StartsWith("*19\r\n*6\r\n$11\r\ncl.throttle\r\n:-5\r\n*2\r\n+write\r\n+fast\r\n"));
  EXPECT_EQ(peer.talk("COMMAND DOCS x\r\nCOMMAND INFO x\r\n"), "*0\r\n*1\r\n$-1\r\n");
  EXPECT_THAT(peer.talk("EVALSHA abc 1 k\r\n"),
              StartsWith("-ERR unknown command 'EVALSHA': there are no scripts here"));
}

// As redis-cli asks.
TEST(Resp, TellsOfItselfByPart) {
  Peer peer;
  const std::string all = peer.talk("INFO\r\n");
  EXPECT_THAT(all, HasSubstr("# Server\r\nredis_version:"));
  EXPECT_THAT(all, HasSubstr("\r\n\r\n# Clients\r\n"));
  EXPECT_EQ(peer.talk("INFO everything\r\n"), all);
  EXPECT_EQ(peer.talk("INFO server CLIENTS replication\r\n"), all);
  EXPECT_EQ(peer.talk("INFO clients\r\n"), "$24\r\n# Clients\r\nclient_id:7\r\n\r\n");
  EXPECT_EQ(peer.talk("INFO nothing\r\n"), "$0\r\n\r\n");
  const std::string docs = "$4\r\necho\r\n*8\r\n$7\r\nsummary\r\n$19\r\nAnswers the message\r\n$5\r\nsince\r\n";
  EXPECT_THAT(peer.talk("COMMAND DOCS echo none\r\n"), StartsWith("*2\r\n" + docs));
  EXPECT_THAT(peer.talk("COMMAND DOCS\r\n"), testing::AllOf(StartsWith("*38\r\n"), HasSubstr(docs)));
  EXPECT_THAT(peer.talk("COMMAND DOCS gcra\r\n"),
              HasSubstr("*6\r\n$4\r\nname\r\n$8\r\nTOKENS n\r\n$4\r\ntype\r\n$6\r\nstring\r\n"
                        "$5\r\nflags\r\n*1\r\n+optional\r\n"));
  EXPECT_THAT(peer.talk("COMMAND COUNT x\r\n"), StartsWith("-ERR COMMAND has COUNT"));
}

// Half-closed behind a pipeline: what has come whole is answered.
TEST(Resp, WhatCameBeforeTheEndIsCarriedOut) {
  Peer peer;
  peer.store.slow = true;
  EXPECT_EQ(peer.talk("CL.THROTTLE a 0 1 60\r\nRESET a\r\nPING\r\nPI"), "");
  peer.connection().end_of_input(peer.clock.now());
  EXPECT_FALSE(peer.connection().wants_input());
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60));
  EXPECT_FALSE(peer.connection().finished());
  EXPECT_EQ(peer.answer(), "+OK\r\n+PONG\r\n");
  EXPECT_TRUE(peer.connection().finished());
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

// Every command that changes a counter otherwise than by a decision.
const std::vector<std::string> kChanges = {"CL.THROTTLE a 1 1 60 -1",       "RESET a",
                                           "SLUICE REFUND shop 1 user 1",   "SLUICE PENALIZE shop 0 user 1",
                                           "SLUICE SETTLE shop 1 1 user 1", "SLUICE RESET shop user 1",
                                           "SLUICE BAN shop 0 user 1"};

TEST(Resp, WhatChangesCountersAsksForAToken) {
  const front::TokenFile tokens;
  Peer peer;
  peer.options.guard = tokens.guard();
  const std::string lease = [&] {
    const std::string got = peer.talk("SLUICE ACQUIRE shop 1 export 1\r\n");
    const std::size_t end = got.rfind("\r\n");
    const std::size_t line = got.rfind("\r\n", end - 1) + 2;
    return got.substr(line, end - line);
  }();
  std::vector<std::string> changes = kChanges;
  changes.push_back("SLUICE RELEASE " + lease);
  const auto all_are = [&](std::string_view begin) {
    for (const std::string& change : changes) EXPECT_THAT(peer.talk(change + "\r\n"), StartsWith(begin)) << change;
  };
  // Decisions are everybody's.
  EXPECT_EQ(peer.talk("CL.THROTTLE a 1 1 60\r\n"), five(0, 2, 1, -1, 60));
  EXPECT_EQ(peer.talk("PEEK a 1 1 60\r\n"), five(0, 2, 1, -1, 60));
  EXPECT_THAT(peer.talk("SLUICE CHECK shop 1 user 1\r\n"), StartsWith("*2\r\n"));
  EXPECT_THAT(peer.talk("SLUICE RESERVE shop 0 1000 user 1\r\n"), StartsWith("*3\r\n"));
  EXPECT_THAT(peer.talk("HELLO 2\r\nPING\r\n"), StartsWith("*14\r\n"));
  all_are("-NOAUTH this command changes counters: AUTH with a token of access.token_file first");
  EXPECT_EQ(peer.talk("PEEK a 1 1 60\r\n"), five(0, 2, 1, -1, 60));
  EXPECT_EQ(peer.talk("AUTH let-me-i\r\nAUTH prometheus let-me-in\r\nAUTH ops\r\n"),
            "-WRONGPASS user or password is wrong\r\n-WRONGPASS user or password is wrong\r\n"
            "-WRONGPASS user or password is wrong\r\n");
  all_are("-NOAUTH ");
  // Nothing is told of what was sent: not that it is wrong either.
  for (const char* wrong : {"RELEASE x", "COMMIT x 1", "CANCEL x", "COMMIT", "RESET", "BAN shop x user 1", "refund"}) {
    EXPECT_THAT(peer.talk("SLUICE " + std::string(wrong) + "\r\n"), StartsWith("-NOAUTH this command")) << wrong;
  }
  EXPECT_THAT(peer.talk("SLUICE x\r\nSLUICE\r\n"), StartsWith("-ERR unknown subcommand"));

  EXPECT_EQ(peer.talk("AUTH let-me-in\r\n"), "+OK\r\n");
  EXPECT_EQ(peer.talk("CL.THROTTLE a 1 1 60 -1\r\nRESET a\r\n"), five(0, 2, 2, -1, 0) + "+OK\r\n");
  EXPECT_EQ(peer.talk("SLUICE PENALIZE shop 1 user 1\r\nSLUICE RESET shop user 1\r\n"), ":1\r\n:1\r\n");
  EXPECT_EQ(peer.talk("SLUICE RELEASE " + lease + "\r\n"), ":1\r\n");
  EXPECT_EQ(peer.talk("RESET\r\n"), "+RESET\r\n");
  all_are("-NOAUTH ");
  EXPECT_THAT(peer.talk("HELLO 2 AUTH ops let-me-in\r\n"), StartsWith("*14\r\n"));
  EXPECT_EQ(peer.talk("RESET a\r\n"), "+OK\r\n");

  // A token that is taken out of the file holds no longer, on a connection that has given it, either.
  tokens.write("ops another\n");
  peer.clock.advance(2s);
  all_are("-NOPERM this command changes counters, and the token that was given is known no longer");
  EXPECT_EQ(peer.talk("AUTH another\r\nRESET a\r\n"), "+OK\r\n+OK\r\n");
}

TEST(Resp, ThePasswordLetsOneDecideAndATokenDoEverything) {
  const front::TokenFile tokens;
  Peer peer;
  peer.options.password = "secret";
  peer.options.guard = tokens.guard();
  EXPECT_EQ(peer.talk("RESET a\r\n"), "-NOAUTH give the password first: AUTH password\r\n");
  EXPECT_EQ(peer.talk("AUTH secret\r\nPING\r\n"), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(peer.talk("CL.THROTTLE a 1 1 60\r\n"), five(0, 2, 1, -1, 60));
  for (const std::string& change : kChanges) {
    EXPECT_THAT(peer.talk(change + "\r\n"),
                StartsWith("-NOPERM this command changes counters, which the password is not enough for"))
        << change;
  }
  // One that is like the last one is asked the same.
  const std::string back = command({"CL.THROTTLE", "a", "1", "1", "60", "-1"});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(peer.talk(back), StartsWith("-NOPERM this command changes counters"));
  EXPECT_EQ(peer.talk("RESET\r\nAUTH let-me-in\r\nPING\r\nRESET a\r\n"), "+RESET\r\n+OK\r\n+PONG\r\n+OK\r\n");
  EXPECT_EQ(peer.talk(back), five(0, 2, 2, -1, 0));
  tokens.write("ops another\n");
  peer.clock.advance(2s);
  EXPECT_THAT(peer.talk(back), StartsWith("-NOAUTH "));
  EXPECT_EQ(peer.talk("PING\r\n"), "-NOAUTH give the password first: AUTH password\r\n");
}

TEST(Resp, TheLastAuthHolds) {
  const front::TokenFile tokens;
  Peer peer;
  peer.options.password = "secret";
  peer.options.guard = tokens.guard();
  EXPECT_EQ(peer.talk("AUTH let-me-in\r\nRESET a\r\nAUTH secret\r\nPING\r\n"), "+OK\r\n+OK\r\n+OK\r\n+PONG\r\n");
  EXPECT_THAT(peer.talk("RESET a\r\n"), StartsWith("-NOPERM "));
  // One that is refused changes nothing.
  EXPECT_EQ(peer.talk("AUTH let-me-in\r\n"), "+OK\r\n");
  EXPECT_THAT(peer.talk("AUTH wrong\r\n"), StartsWith("-WRONGPASS "));
  EXPECT_EQ(peer.talk("RESET a\r\n"), "+OK\r\n");
  tokens.write("ops another\n");
  peer.clock.advance(2s);
  EXPECT_EQ(peer.talk("PING\r\n"), "-NOAUTH give the password first: AUTH password\r\n");
}

TEST(Resp, ACertificateChangesCountersToo) {
  Peer peer;
  peer.options.guard.is_on = true;
  EXPECT_THAT(peer.talk("RESET a\r\n"), StartsWith("-NOAUTH "));
  EXPECT_THAT(peer.talk("AUTH x\r\n"), StartsWith("-ERR AUTH was sent"));
  Peer certified;
  certified.options.guard.is_on = true;
  certified.is_certified = true;
  EXPECT_EQ(certified.talk("RESET a\r\n"), "+OK\r\n");
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
  EXPECT_FALSE(peer.expires());
  peer.clock.advance(1ns);
  EXPECT_TRUE(peer.expires());
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
                          command({"THROTTLE", "k", "3", "1", "60", "3"}) + "MULTI\r\n" +
                          command({"CL.THROTTLE", "k", "2", "1", "60", "-1"}) + "ping x\n" + command({"EXEC"}) +
                          "PING\r\n";
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
  EXPECT_TRUE(slow.expires());
  Peer idle;
  idle.talk("PING\r\n");
  idle.clock.advance(24h);
  EXPECT_FALSE(idle.expires());
  Peer bounded;
  bounded.options.idle_timeout = 1min;
  bounded.talk("PING\r\n");
  bounded.clock.advance(1min);
  EXPECT_TRUE(bounded.expires());
}

TEST(Resp, EachVerbOnEachKindOfLimit) {
  Peer peer;
  peer.load(front::kVerbPolicy);
  for (const front::VerbRow& row : front::verb_table()) {
    std::string numbers = "1 ";
    if (row.verb == "settle") numbers = "1 2 ";
    if (row.verb == "ban" || row.verb == "reserve") numbers = row.verb == "ban" ? "60000 " : "1 60000 ";
    if (row.verb == "reset") numbers.clear();
    const std::string line = "SLUICE " + row.verb + " shop " + numbers + row.limit + ' ' + row.verb;
    const std::string reply = peer.talk(line + "\r\n");
    EXPECT_EQ(reply.starts_with("-ERR "), !row.refusal.empty()) << line << ": " << reply;
    EXPECT_THAT(reply, HasSubstr(row.refusal)) << line;
  }
}

TEST(Resp, DrainsWhatIsInFlight) {
  Peer peer;
  peer.store.slow = true;
  peer.talk("THROTTLE a 1 1 60\r\nTHROT");
  peer.connection().drain(peer.clock.now());
  EXPECT_EQ(peer.answer(), five(1, 1, 0, 60, 0));
  EXPECT_FALSE(peer.connection().may_end());
  EXPECT_EQ(peer.talk("TLE b 1 1 60\r\n"), "");
  EXPECT_FALSE(peer.connection().may_end());
  EXPECT_EQ(peer.answer(), five(1, 1, 0, 60, 0));
  EXPECT_TRUE(peer.connection().may_end());
  EXPECT_FALSE(peer.connection().finished());
  peer.connection().end(peer.clock.now());
  EXPECT_TRUE(peer.connection().finished());
  EXPECT_TRUE(peer.connection().lingers());
  EXPECT_EQ(peer.talk("PING\r\n"), "");
}

TEST(Resp, DrainingEndsBehindTheNextReply) {
  Peer peer;
  EXPECT_EQ(peer.talk("PING\r\n"), "+PONG\r\n");
  peer.connection().drain(peer.clock.now());
  EXPECT_FALSE(peer.connection().may_end());
  peer.clock.advance(kDrainGrace - 1ns);
  EXPECT_FALSE(peer.expires());
  EXPECT_FALSE(peer.connection().finished());
  EXPECT_EQ(peer.talk("PING\r\n"), "+PONG\r\n");
  EXPECT_TRUE(peer.connection().may_end());
  EXPECT_FALSE(peer.connection().must_end(peer.clock.now()));
  peer.clock.advance(1ns);
  EXPECT_TRUE(peer.connection().must_end(peer.clock.now()));
}

TEST(Resp, DrainingEndsWhatIsQuiet) {
  Peer peer;
  EXPECT_EQ(peer.talk("PING\r\n"), "+PONG\r\n");
  peer.connection().drain(peer.clock.now());
  peer.clock.advance(kDrainGrace);
  EXPECT_FALSE(peer.expires());
  EXPECT_TRUE(peer.connection().finished());

  Peer longer;
  longer.connection();
  longer.clock.advance(kDrainGrace);
  longer.connection().drain(longer.clock.now());
  EXPECT_FALSE(longer.expires());
  EXPECT_TRUE(longer.connection().finished());
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
