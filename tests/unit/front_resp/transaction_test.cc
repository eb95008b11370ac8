// MULTI, EXEC and DISCARD by bytes.
#include "front/resp/transaction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/front/token_file.h"
#include "tests/unit/front_resp/peer.h"

namespace sluice::resp {
namespace {

using testing::EndsWith;
using testing::StartsWith;

constexpr std::string_view kAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";

std::string look(Peer& peer, const std::string& key) { return peer.talk("PEEK " + key + " 3 10 60\r\n"); }

TEST(RespTransaction, ExecAnswersAllInOneArray) {
  Peer peer;
  const std::string throttle = command({"CL.THROTTLE", "a", "3", "10", "60"});
  EXPECT_EQ(peer.talk(throttle), five(0, 4, 3, -1, 6));
  EXPECT_EQ(peer.talk("MULTI\r\n"), "+OK\r\n");
  // The same bytes as before are not carried out now.
  EXPECT_EQ(peer.talk(throttle + throttle), "+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(peer.talk("reset b\r\nPING 'x y'\r\nSLUICE CHECK shop 1 user 42\r\n"), "+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(peer.shard.value(metrics::Counter::throttle_allowed), 1U);
  EXPECT_EQ(peer.talk("EXEC\r\nPING\r\n"), "*5\r\n" + five(0, 4, 2, -1, 12) + five(0, 4, 1, -1, 18) +
                                               "+OK\r\n$3\r\nx y\r\n*2\r\n" + five(0, 2, 1, -1, 43200) +
                                               "$5\r\nDaily\r\n+PONG\r\n");
  EXPECT_EQ(peer.talk(throttle), five(0, 4, 0, -1, 24));
  EXPECT_EQ(peer.talk("EXEC\r\n"), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(peer.talk("MULTI\r\nEXEC\r\n"), "+OK\r\n*0\r\n");
}

// What fails charges nothing.
TEST(RespTransaction, NothingIsChargedUnlessExecIsGood) {
  Peer peer;
  const std::string throttle = "CL.THROTTLE a 3 10 60\r\n";
  EXPECT_EQ(peer.talk("MULTI\r\n" + throttle + "DISCARD\r\n"), "+OK\r\n+QUEUED\r\n+OK\r\n");
  EXPECT_EQ(peer.talk("MULTI\r\n" + throttle + "nope\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n-ERR unknown command 'nope': see COMMAND LIST\r\n" + std::string(kAborted));
  EXPECT_EQ(peer.talk("MULTI\r\n" + throttle + "CL.THROTTLE a 3\r\n" + throttle + "EXEC\r\n"),
            "+OK\r\n+QUEUED\r\n-ERR wrong number of arguments for 'CL.THROTTLE' command\r\n+QUEUED\r\n" +
                std::string(kAborted));
  EXPECT_THAT(peer.talk("MULTI\r\n" + throttle + "EVAL 'return 1' 0\r\nEXEC\r\n"), EndsWith(kAborted));
  EXPECT_THAT(peer.talk("MULTI\r\n" + throttle + "EXEC now\r\nEXEC\r\n"), EndsWith(kAborted));
  EXPECT_EQ(peer.talk("MULTI\r\n" + throttle + "RESET\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+RESET\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(look(peer, "a"), five(0, 4, 4, -1, 0));
  EXPECT_EQ(peer.talk("DISCARD\r\n"), "-ERR DISCARD without MULTI\r\n");
  EXPECT_EQ(peer.talk("MULTI\r\n" + throttle + "QUIT\r\n"), "+OK\r\n+QUEUED\r\n+OK\r\n");
  EXPECT_TRUE(peer.connection().finished());
  EXPECT_EQ(peer.shard.value(metrics::Counter::throttle_allowed), 0U);
}

// As in Redis: a command that proves wrong when it is carried out is an error in its place, and those beside it count.
TEST(RespTransaction, WrongNumbersAreErrorsInTheirPlace) {
  Peer peer;
  EXPECT_EQ(peer.talk("MULTI\r\nCL.THROTTLE a 3 0 60\r\nCL.THROTTLE a 3 10 60\r\nMULTI\r\nWATCH a\r\nUNWATCH\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not "
            "allowed\r\n+QUEUED\r\n");
  EXPECT_EQ(peer.talk("EXEC\r\n"),
            "*3\r\n-ERR count must be 1 to 1000000000000, is 0\r\n" + five(0, 4, 3, -1, 6) + "+OK\r\n");
  EXPECT_EQ(peer.talk("UNWATCH\r\n"), "+OK\r\n");
  EXPECT_THAT(peer.talk("WATCH a\r\n"), StartsWith("-ERR there is no WATCH"));
}

// As in Redis, they are refused before they are kept.
TEST(RespTransaction, UnknownSubcommandsAndTheirWordsAbort) {
  for (const std::string bad :
       {"SLUICE NOPE shop 1 user 42", "SLUICE CHECK shop", "SLUICE COMMIT x", "SLUICE RELEASE a b", "CLIENT NOPE",
        "CLIENT SETNAME", "CLIENT ID x", "COMMAND NOPE", "COMMAND COUNT x"}) {
    Peer peer;
    const std::string refusal = peer.talk(bad + "\r\n");
    EXPECT_THAT(refusal, StartsWith("-ERR ")) << bad;
    EXPECT_EQ(peer.talk("MULTI\r\nCL.THROTTLE a 3 10 60\r\n" + bad + "\r\nEXEC\r\n"),
              "+OK\r\n+QUEUED\r\n" + refusal + std::string(kAborted))
        << bad;
    EXPECT_EQ(look(peer, "a"), five(0, 4, 4, -1, 0));
  }
  Peer peer;
  EXPECT_THAT(peer.talk("MULTI\r\nCOMMAND COUNT\r\nCLIENT GETNAME\r\nSLUICE CHECK shop x user 42\r\nEXEC\r\n"),
              StartsWith("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:19\r\n$-1\r\n-ERR cost "));
}

TEST(RespTransaction, WhatIsKeptIsBounded) {
  Peer peer;
  std::string many = "MULTI\r\n";
  for (std::size_t i = 0; i < Transaction::kMostCommands; ++i) many += "PING\r\n";
  EXPECT_THAT(peer.talk(many), EndsWith("+QUEUED\r\n"));
  EXPECT_THAT(peer.talk("PING\r\n"), StartsWith("-ERR too much between MULTI and EXEC: at most 1024 commands"));
  EXPECT_EQ(peer.talk("EXEC\r\n"), kAborted);
  const std::string large = command({"ECHO", std::string(65'000, 'x')});
  EXPECT_EQ(peer.talk("MULTI\r\n" + large + large), "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_THAT(peer.talk(large), StartsWith("-ERR too much between MULTI and EXEC"));
  EXPECT_EQ(peer.talk("EXEC\r\nPING\r\n"), std::string(kAborted) + "+PONG\r\n");
}

TEST(RespTransaction, RightsAreThoseOfTheCommands) {
  Peer peer;
  const front::TokenFile tokens("ops: secret-of-ops\n");
  peer.options.guard = tokens.guard();
  EXPECT_EQ(peer.talk("MULTI\r\nCL.THROTTLE a 3 10 60 -1\r\nPING\r\nEXEC\r\n").substr(0, 35),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-NOAUTH ");
  Peer locked;
  locked.options.password = "secret";
  EXPECT_THAT(locked.talk("MULTI\r\n"), StartsWith("-NOAUTH"));
  EXPECT_EQ(locked.talk("AUTH secret\r\nMULTI\r\nHELLO 3\r\nCLIENT GETNAME\r\n"),
            "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_THAT(locked.talk("EXEC\r\n"), testing::AllOf(StartsWith("*2\r\n%7\r\n"), EndsWith("_\r\n")));
}

// Replies come in order, and what follows EXEC waits for what it left to do.
TEST(RespTransaction, WaitsForTheStore) {
  Peer peer;
  peer.store.slow = true;
  EXPECT_EQ(peer.talk("CL.THROTTLE a 0 1 60\r\nMULTI\r\nRESET a\r\nCL.THROTTLE a 0 1 60\r\nEXEC\r\nPING\r\n"), "");
  EXPECT_EQ(peer.store.waiting.size(), 1U);
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60) + "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n");
  EXPECT_EQ(peer.answer(), "+OK\r\n");
  EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60) + "+PONG\r\n");
}

// Begun, it is carried out to its end, whether the client or the server wants to go.
TEST(RespTransaction, WhatExecBeganEnds) {
  for (const bool drains : {true, false}) {
    Peer peer;
    peer.store.slow = true;
    EXPECT_EQ(peer.talk("MULTI\r\nRESET a\r\nCL.THROTTLE a 0 1 60\r\nRESET a\r\nEXEC\r\nPING\r\n"),
              "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n");
    if (drains) {
      peer.connection().drain(peer.clock.now());
    } else {
      peer.connection().end_of_input(peer.clock.now());
    }
    EXPECT_EQ(peer.answer(), "+OK\r\n");
    EXPECT_EQ(peer.answer(), five(0, 1, 0, -1, 60));
    EXPECT_FALSE(peer.connection().finished());
    EXPECT_FALSE(peer.connection().may_end());
    EXPECT_EQ(peer.answer(), "+OK\r\n+PONG\r\n");
    EXPECT_EQ(peer.connection().may_end(), drains);
    EXPECT_EQ(peer.connection().finished(), !drains);
  }
}

}  // namespace
}  // namespace sluice::resp
