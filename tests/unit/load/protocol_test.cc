// What the load generator asks and how it reads answers; against a daemon: tests/integration/bench_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "load/grpc_protocol.h"
#include "load/http_protocol.h"

namespace sluice::load {
namespace {

using ::testing::HasSubstr;

class Heard final : public Protocol::Owner {
 public:
  void answered(Ticket ticket, const Outcome& outcome) override { outcomes[ticket] = outcome; }
  std::map<Ticket, Outcome> outcomes;
};

const Descriptors kUser = {{{"user", "a\"b"}}, {{"ip", "1"}, {"path", "/"}}};

std::string http_answer(int status, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST(HttpProtocol, AsksAndReadsPipelinedAnswersInAnyPieces) {
  Heard heard;
  HttpProtocol protocol(heard, "h:1");
  protocol.open();
  protocol.ask(7, "shop", kUser, 1);
  protocol.ask(8, "shop", kUser, 5);
  protocol.ask(9, "shop", kUser, 1);
  EXPECT_THAT(protocol.output(), HasSubstr(R"({"domain":"shop","descriptors":[[{"key":"user","value":"a\"b"}],)"
                                           R"([{"key":"ip","value":"1"},{"key":"path","value":"/"}]],"cost":5})"));
  const std::string answers =
      http_answer(
          200,
          R"({"allowed":true,"limit_name":"L","source":"redis","descriptors":[{"allowed":false,"x":[null,{}]}]})") +
      http_answer(429, R"({"allowed":false,"limit_name":"L","source":"memory"})") +
      http_answer(200, R"({"allowed":true,"source":"fallback_local"})");
  for (const char byte : answers) ASSERT_TRUE(protocol.feed(std::string_view(&byte, 1)));
  ASSERT_EQ(heard.outcomes.size(), 3U);
  EXPECT_EQ(heard.outcomes[7].how, Answered::admitted);
  EXPECT_TRUE(heard.outcomes[7].names_limit);
  EXPECT_EQ(heard.outcomes[8].how, Answered::denied);
  EXPECT_EQ(heard.outcomes[9].how, Answered::admitted_local);
  EXPECT_FALSE(heard.outcomes[9].names_limit);
}

TEST(HttpProtocol, WhatIsNoAnswerFailsWithItsWords) {
  EXPECT_EQ(read_check_answer(200, R"({"allowed":true,"source":"fallback_allow"})").how, Answered::admitted_blind);
  EXPECT_EQ(read_check_answer(503, R"({"allowed":false,"source":"fallback_deny"})").how, Answered::denied_blind);
  for (const std::string body : {"", "{}", "[]", "{\"allowed\":1}", "{\"allowed\":true", "hello"}) {
    const Outcome outcome = read_check_answer(404, body);
    EXPECT_EQ(outcome.how, Answered::failed) << body;
    EXPECT_THAT(outcome.error, HasSubstr("HTTP status 404")) << body;
  }
  Heard heard;
  HttpProtocol protocol(heard, "h:1");
  protocol.open();
  EXPECT_FALSE(protocol.feed("SSH-2.0-x\r\n"));
  EXPECT_THAT(protocol.fault(), HasSubstr("no HTTP/1.1"));
  protocol.open();
  EXPECT_FALSE(protocol.feed(http_answer(200, "{}")));
  EXPECT_THAT(protocol.fault(), HasSubstr("nobody asked"));
}

TEST(GrpcProtocol, ReadsResponses) {
  EXPECT_EQ(read_rate_limit_response(std::string("\x08\x01", 2)).how, Answered::admitted);
  const Outcome denied = read_rate_limit_response(std::string("\x08\x02\x12\x04\x08\x02\x12\x00", 8));
  EXPECT_EQ(denied.how, Answered::denied);
  EXPECT_TRUE(denied.names_limit);
  EXPECT_FALSE(read_rate_limit_response(std::string("\x08\x02\x12\x02\x08\x02", 6)).names_limit);
  EXPECT_EQ(read_rate_limit_response("").how, Answered::failed);
  EXPECT_THAT(read_rate_limit_response(std::string("\x12\x7f", 2)).error, HasSubstr("no RateLimitResponse"));
}

TEST(GrpcProtocol, WhatIsNoHttp2IsToldAndCallsWithoutAnswerLeaveNothingBehind) {
  Heard heard;
  GrpcProtocol protocol(heard, "h:1");
  protocol.open();
  for (Ticket ticket = 0; ticket < 10; ++ticket) protocol.ask(ticket, "shop", kUser, 0);
  EXPECT_THAT(protocol.output(), HasSubstr("PRI * HTTP/2.0"));
  EXPECT_FALSE(protocol.feed("HTTP/1.1 400 Bad Request\r\n\r\n"));
  EXPECT_THAT(protocol.fault(), HasSubstr("speaks no HTTP/2"));
  protocol.open();
  EXPECT_TRUE(heard.outcomes.empty());
}

}  // namespace
}  // namespace sluice::load
