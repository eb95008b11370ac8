#include "front/resp/throttle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "front/resp/policy_command.h"
#include "sluice/limit.h"
#include "store/charge.h"

namespace sluice::resp {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Result<Throttle> read(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  const std::vector<std::string_view> views(words.begin(), words.end());
  Result<Throttle> throttle = read_throttle(views);
  if (throttle) throttle->key = {};  // `words` ends here
  return throttle;
}

std::string error_of(const std::string& line) {
  const auto throttle = read(line);
  return throttle ? "none" : throttle.error().message;
}

std::string reply_of(Dialect dialect, const Decision& decision) {
  std::string out;
  ReplyWriter reply(out, 2);
  write_decision(dialect, decision, reply);
  return out;
}

TEST(Throttle, WordsOfTheThreeDialects) {
  const auto cell = read("cl.throttle k 15 30 60");
  ASSERT_TRUE(cell);
  EXPECT_EQ(cell->bucket.burst, 16U);
  EXPECT_EQ(cell->bucket.rate, 30U);
  EXPECT_EQ(cell->bucket.period, 60s);
  EXPECT_EQ(cell->cost, 1U);
  const auto crab = read("THROTTLE k 15 30 60 +3");
  ASSERT_TRUE(crab);
  EXPECT_EQ(crab->bucket.burst, 15U);
  EXPECT_EQ(crab->cost, 3U);
  const auto gcra = read("Gcra k 0 7 0.25 tokens 0");
  ASSERT_TRUE(gcra);
  EXPECT_EQ(gcra->bucket.burst, 1U);
  EXPECT_EQ(gcra->bucket.period, 250ms);
  EXPECT_EQ(gcra->cost, 0U);
  const auto peek = read("PEEK k 15 30 60");
  ASSERT_TRUE(peek);
  EXPECT_EQ(peek->cost, 0U);
}

TEST(Throttle, NumbersAtTheirEnds) {
  EXPECT_EQ(read("cl.throttle k 9223372036854775807 1 1")->bucket.burst, kMaxTokens);
  EXPECT_EQ(read("cl.throttle k 0 1 1 9223372036854775807")->cost, store::kNeverFits);
  EXPECT_EQ(read("cl.throttle k 0 1 1 -9223372036854775808")->cost, kMaxTokens);
  EXPECT_TRUE(read("cl.throttle k 0 1 1 -9223372036854775808")->gives_back);
  EXPECT_EQ(read("cl.throttle k 0 1000000000000 31622400")->bucket.rate, kMaxRate);
  EXPECT_EQ(read("gcra k 0 1 0.000001")->bucket.period, 1us);
  EXPECT_EQ(read("gcra k 0 1 2.500000000000")->bucket.period, 2500ms);
  EXPECT_EQ(read("gcra k 0 1 31622400")->bucket.period, kMaxPeriod);
}

TEST(Throttle, TellsWhatIsWrong) {
  EXPECT_EQ(error_of("cl.throttle k 1 1"),
            "wrong number of arguments for 'cl.throttle' command: expected CL.THROTTLE key max_burst count period "
            "[quantity]");
  EXPECT_THAT(error_of("cl.throttle k 1 1 1 1 1"), HasSubstr("wrong number of arguments"));
  EXPECT_THAT(error_of("peek k 1 1 1 1"), HasSubstr("wrong number of arguments for 'peek'"));
  EXPECT_THAT(error_of("gcra k 1 1 1 TOKENS"), HasSubstr("wrong number of arguments for 'gcra'"));
  EXPECT_EQ(error_of("gcra k 1 1 1 HITS 1"), "expected TOKENS, found 'HITS'");
  EXPECT_EQ(error_of("cl.throttle k -1 1 1"), "max_burst must be 0 to 9223372036854775807, is -1");
  EXPECT_EQ(error_of("throttle k 0 1 1"), "max_burst must be 1 to 9223372036854775807, is 0");
  EXPECT_EQ(error_of("cl.throttle k 1 0 1"), "count must be 1 to 1000000000000, is 0");
  EXPECT_EQ(error_of("cl.throttle k 1 1 0"), "period must be 1 to 31622400, is 0");
  EXPECT_EQ(error_of("cl.throttle k 1 1 31622401"), "period must be 1 to 31622400, is 31622401");
  EXPECT_EQ(error_of("throttle k 1 1 1 -1"), "quantity must be 0 to 9223372036854775807, is -1");
  EXPECT_EQ(error_of("cl.throttle k 1.5 1 1"), "max_burst must be a whole number of 64 bits, is '1.5'");
  for (const char* number : {"x", "9223372036854775808", "-9223372036854775809", "+", "+-1", "1x", "0x10", "1e3"}) {
    EXPECT_THAT(error_of(std::string("cl.throttle k 1 1 1 ") + number), HasSubstr("quantity must be a whole number"))
        << number;
  }
  for (const char* period : {"0", "-1", "nan", "inf", "1e3", "0.0000001", "0.0000014", "1.2345678", "31622400.1", "1x",
                             "99999999999999999999"}) {
    EXPECT_THAT(error_of(std::string("gcra k 1 1 ") + period), HasSubstr("period must be 0.000001 to")) << period;
  }
  EXPECT_THAT(error_of("cl.throttle k " + std::string(100, '\x1b') + " 1 1"),
              HasSubstr("is '" + std::string(32, '.') + "...'"));
}

TEST(Throttle, RepliesInEachOrder) {
  const Decision denied{
      .allowed = false, .limit = 4, .remaining = 1, .retry_after = Wait(1ns), .reset_after = Wait(17'001ms)};
  EXPECT_EQ(reply_of(Dialect::cell, denied), "*5\r\n:1\r\n:4\r\n:1\r\n:1\r\n:18\r\n");
  EXPECT_EQ(reply_of(Dialect::gcra, denied), "*5\r\n:1\r\n:4\r\n:1\r\n:1\r\n:18\r\n");
  EXPECT_EQ(reply_of(Dialect::throttlecrab, denied), "*5\r\n:0\r\n:4\r\n:1\r\n:18\r\n:1\r\n");
  const Decision allowed{.allowed = true, .limit = 4, .remaining = 3, .reset_after = Wait(2s)};
  EXPECT_EQ(reply_of(Dialect::cell, allowed), "*5\r\n:0\r\n:4\r\n:3\r\n:-1\r\n:2\r\n");
  EXPECT_EQ(reply_of(Dialect::throttlecrab, allowed), "*5\r\n:1\r\n:4\r\n:3\r\n:2\r\n:0\r\n");
  const Decision never{.allowed = false, .limit = 4, .remaining = 4, .retry_after = Wait::never()};
  EXPECT_EQ(reply_of(Dialect::cell, never), "*5\r\n:1\r\n:4\r\n:4\r\n:-1\r\n:0\r\n");
  EXPECT_EQ(reply_of(Dialect::throttlecrab, never), "*5\r\n:0\r\n:4\r\n:4\r\n:0\r\n:-1\r\n");
}

std::string policy_error(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  const std::vector<std::string_view> views(words.begin(), words.end());
  PolicyCommand command;
  const auto error = read_policy_command(views, command);
  return error ? error->message : "none";
}

TEST(PolicyCommand, ReadsDescriptors) {
  const std::vector<std::string_view> words = {"sluice", "check", "shop", "2",  "user", "42",
                                               "|",      "path",  "|",    "ip", ""};
  PolicyCommand command;
  ASSERT_FALSE(read_policy_command(words, command));
  EXPECT_FALSE(command.verb);
  EXPECT_EQ(command.request.domain, "shop");
  EXPECT_EQ(command.request.cost, 2U);
  ASSERT_EQ(command.request.descriptors.size(), 2U);
  EXPECT_EQ(command.request.descriptors[0].entries[0].value, "42");
  ASSERT_EQ(command.request.descriptors[1].entries.size(), 2U);
  EXPECT_EQ(command.request.descriptors[1].entries[0].value, "|");  // a value may be anything
  EXPECT_EQ(command.request.descriptors[1].entries[1].key, "ip");

  const std::vector<std::string_view> settle = {"SLUICE", "SETTLE", "llm", "100", "37", "user", "42"};
  ASSERT_FALSE(read_policy_command(settle, command));
  ASSERT_TRUE(command.verb);
  EXPECT_EQ(command.verb->kind, limiter::CounterVerb::Kind::settle);
  EXPECT_EQ(command.verb->reserved, 100U);
  EXPECT_EQ(command.verb->actual, 37U);
}

TEST(PolicyCommand, TellsWhatIsWrong) {
  EXPECT_THAT(policy_error("sluice"), HasSubstr("wrong number of arguments"));
  EXPECT_THAT(policy_error("sluice bann shop 1 user 42"),
              HasSubstr("unknown subcommand 'bann': expected SLUICE CHECK"));
  EXPECT_THAT(policy_error("sluice settle shop 1"), HasSubstr("wrong number of arguments"));
  EXPECT_EQ(policy_error("sluice check shop x user 42"), "cost must be a whole number of 64 bits, is 'x'");
  EXPECT_EQ(policy_error("sluice check shop -1 user 42"), "cost must be 0 to 1000000000000000, is -1");
  EXPECT_EQ(policy_error("sluice check shop 1"), "expected a key and a value");
  EXPECT_EQ(policy_error("sluice check shop 1 user"), "key 'user' has no value");
  EXPECT_EQ(policy_error("sluice check shop 1 user 42 |"), "expected a key and a value");
  EXPECT_EQ(policy_error("sluice check shop 1 | user 42"), "expected a key and a value before '|'");
}

}  // namespace
}  // namespace sluice::resp
