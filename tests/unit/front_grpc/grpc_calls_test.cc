// What a gRPC connection answers to calls, right and wrong ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

using metrics::Counter;
using testing::HasSubstr;
using testing_support::Fields;
using testing_support::framed;
using testing_support::HeldStore;
using testing_support::Peer;
using testing_support::request_for;
using testing_support::Response;
using namespace std::string_literals;

// OK; current_limit 10 per SECOND "ArticleCreate"; remaining 29; reset in 1 s.
const std::string kFirstOfThirty =
    "\x08\x01\x12\x1d\x08\x01\x12\x13\x08\x0a\x10\x01\x1a\x0d"
    "ArticleCreate\x18\x1d\x22\x02\x08\x01";

TEST(GrpcCalls, AllowedCall) {
  Peer peer;
  const Response& response = peer.ask("42");
  EXPECT_EQ(response.head,
            (std::map<std::string, std::string>{{":status", "200"}, {"content-type", "application/grpc"}}));
  EXPECT_EQ(response.body, framed(kFirstOfThirty));
  EXPECT_EQ(response.trailers, (std::map<std::string, std::string>{{"grpc-status", "0"}}));
  EXPECT_TRUE(response.closed);
  EXPECT_EQ(peer.counted(Counter::grpc_requests), 1U);
  EXPECT_EQ(peer.counted(Counter::grpc_errors), 0U);
}

TEST(GrpcCalls, ThirtyOneCallsAtOnceAreThirtyAndOneOverLimit) {
  Peer peer;
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 31; ++i) ids.push_back(peer.call(Peer::kShouldRateLimit, framed(request_for("42"))));
  peer.feed(peer.client_output());
  peer.client_input(peer.server_output());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(peer.response(ids[static_cast<std::size_t>(i)]).body[6], 1) << i;
  const Response& last = peer.response(ids.back());
  EXPECT_EQ(last.status(), 0);
  // OVER_LIMIT; nothing remains; reset in 1 s (100 ms, rounded up); Retry-After: 1.
  EXPECT_EQ(last.body, framed("\x08\x02\x12\x1b\x08\x02\x12\x13\x08\x0a\x10\x01\x1a\x0d"
                              "ArticleCreate\x22\x02\x08\x01\x1a\x10\x0a\x0bRetry-After\x12\x01"
                              "1"s));
}

TEST(GrpcCalls, TimeIsThatOfTheTurn) {
  Peer peer;
  for (int i = 0; i < 31; ++i) peer.ask("42");
  peer.advance(99'999'999);
  EXPECT_EQ(peer.ask("42").body[6], 2);
  peer.advance(1);
  EXPECT_EQ(peer.ask("42").body[6], 1);
}

TEST(GrpcCalls, HeadersByOption) {
  GrpcOptions options;
  options.headers = {.retry_after = false, .rate_limit = false, .x_rate_limit = true};
  Peer peer(Peer::kPolicy, options);
  EXPECT_THAT(peer.ask("42").body, HasSubstr("\x0a\x15X-RateLimit-Remaining\x12\x02"
                                             "29"));
}

TEST(GrpcCalls, ContentTypesOfGrpc) {
  Peer peer;
  for (const char* type : {"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8",
                           "application/grpc+proto; v=1"}) {
    EXPECT_EQ(peer.ask("42", {{"content-type", type}}).status(), 0) << type;
  }
}

TEST(GrpcCalls, OtherContentTypesAreHttp415) {
  Peer peer;
  for (const char* type : {"application/json", "application/grpc-web", "application/grpc+json", "application/grpcx"}) {
    const Response& response = peer.ask("42", {{"content-type", type}});
    EXPECT_EQ(response.head.at(":status"), "415") << type;
    EXPECT_EQ(response.status(), -1);
    EXPECT_THAT(response.body, HasSubstr("application/grpc"));
    EXPECT_TRUE(response.closed);
  }
  EXPECT_EQ(peer.counted(Counter::grpc_errors), 4U);
}

TEST(GrpcCalls, OtherMethodsThanPostAreHttp405) {
  Peer peer;
  const std::int32_t get =
      peer.send({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}}, "");
  const std::int32_t head =
      peer.send({{":method", "HEAD"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}}, "");
  peer.pump();
  EXPECT_EQ(peer.response(get).head.at(":status"), "405");
  EXPECT_EQ(peer.response(get).head.at("allow"), "POST");
  EXPECT_THAT(peer.response(get).body, HasSubstr("gRPC"));
  EXPECT_EQ(peer.response(head).head.at(":status"), "405");
  EXPECT_EQ(peer.response(head).body, "");
  EXPECT_TRUE(peer.response(head).closed);
}

void expect_error(const Response& response, int code, std::string_view message) {
  EXPECT_EQ(response.head.at(":status"), "200");
  EXPECT_EQ(response.head.at("content-type"), "application/grpc");
  EXPECT_EQ(response.status(), code);
  EXPECT_THAT(response.message(), HasSubstr(message));
  EXPECT_EQ(response.body, "");
  EXPECT_TRUE(response.trailers.empty());
  EXPECT_TRUE(response.closed);
}

TEST(GrpcCalls, UnknownMethodsAreUnimplemented) {
  Peer peer;
  for (const char* path : {"/", "/envoy.service.ratelimit.v3.RateLimitService/Other", "/grpc.health.v1.Health/List",
                           "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit"}) {
    expect_error(peer.exchange(path, framed(request_for("42"))), 12, "unknown method");
  }
}

TEST(GrpcCalls, RequestsThatCannotBeJudged) {
  Peer peer;
  const auto ask = [&](std::string_view message) { return peer.exchange(Peer::kShouldRateLimit, framed(message)); };
  expect_error(ask(request_for("42", "")), 3, "the domain of a rate limit request must not be empty");
  expect_error(ask("\x0a\x04shop"), 3, "a rate limit request must have descriptors");
  expect_error(ask(""), 3, "the domain of a rate limit request must not be empty");
  expect_error(ask("\x0a\x04sh"), 3, "RateLimitRequest is not valid protobuf");
  expect_error(ask("\x0a\x04shop\x12\x06\x0a\x04\x0a\x02id\x12\x02\x20\x01"), 12, "is_negative_hits");
  // hits_addend 10^15 + 1 of one descriptor
  expect_error(ask("\x0a\x04shop\x12\x13\x0a\x06\x0a\x04user\x1a\x09\x08\x81\x80\x9a\xa6\xea\xaf\xe3\x01"), 3,
               "hits_addend is out of range, expected 0 to 1000000000000000");
  EXPECT_EQ(peer.counted(Counter::grpc_errors), 6U);
}

TEST(GrpcCalls, WithoutAPolicyUnavailable) {
  Peer peer("");
  expect_error(peer.ask("42"), 14, "no rate limit policy is loaded");
}

// Unknown domain: OK, as the service has nothing against it.
TEST(GrpcCalls, public_report_68) {
  Peer peer;
  const std::string two = "\x0a\x01?\x12\x06\x0a\x04\x0a\x02id\x12\x06\x0a\x04\x0a\x02id";
  EXPECT_EQ(peer.exchange(Peer::kShouldRateLimit, framed(two)).body,
            framed("\x08\x01\x12\x02\x08\x01\x12\x02\x08\x01"));
}

// A descriptor that nothing limits beside one that is: its own verdict is always OK.
TEST(GrpcCalls, public_report_71) {
  Peer peer(
      "domain: shop\n"
      "descriptors:\n"
      "  - key: free\n"
      "    rate_limit: { unlimited: true }\n"
      "  - key: paid\n"
      "    rate_limit: { unit: second, requests_per_unit: 5 }\n");
  const std::string both =
      "\x0a\x04shop\x12\x08\x0a\x06\x0a\x04"
      "free\x12\x08\x0a\x06\x0a\x04paid";
  const std::string free = "\x12\x08\x08\x01\x18\xff\xff\xff\xff\x0f";
  for (int i = 0; i < 5; ++i) {
    const Response& response = peer.exchange(Peer::kShouldRateLimit, framed(both));
    EXPECT_EQ(response.body.substr(5, 12), "\x08\x01" + free) << i;
  }
  const Response& sixth = peer.exchange(Peer::kShouldRateLimit, framed(both));
  EXPECT_EQ(sixth.body.substr(5, 12), "\x08\x02" + free);
  EXPECT_EQ(sixth.body.substr(19, 2), "\x08\x02");
}

TEST(GrpcCalls, CompressedMessagesAreRefusedProperly) {
  Peer peer;
  const Response& response =
      peer.exchange(Peer::kShouldRateLimit, framed("compressed", 1), {{"grpc-encoding", "gzip"}});
  expect_error(response, 12, "compressed messages are not supported");
  EXPECT_EQ(response.head.at("grpc-accept-encoding"), "identity");
}

TEST(GrpcCalls, UncompressedMessageOfAClientThatCouldCompress) {
  Peer peer;
  EXPECT_EQ(peer.ask("42", {{"grpc-encoding", "gzip"}, {"grpc-accept-encoding", "gzip"}}).status(), 0);
}

TEST(GrpcCalls, BrokenFraming) {
  Peer peer;
  const auto send = [&](std::string body) { return peer.exchange(Peer::kShouldRateLimit, std::move(body)); };
  const std::string good = framed(request_for("42"));
  expect_error(send(""), 13, "before its message was complete");
  expect_error(send(good.substr(0, 4)), 13, "before its message was complete");
  expect_error(send(good.substr(0, good.size() - 1)), 13, "before its message was complete");
  expect_error(send(framed(request_for("42"), 2)), 13, "must be 0 or 1");
  expect_error(send(good + good), 13, "more than one message");
  expect_error(send(good + '\0'), 13, "more than one message");
}

TEST(GrpcCalls, MessageSizeIsLimited) {
  Peer peer;
  // Padded to exactly 64 KiB by an unknown field.
  std::string message = request_for("42");
  const std::size_t padding = 65'536 - message.size() - 4;
  message += "\x7a"s + static_cast<char>(0x80U | (padding & 0x7FU)) +
             static_cast<char>(0x80U | ((padding >> 7U) & 0x7FU)) + static_cast<char>(padding >> 14U) +
             std::string(padding, 'x');
  ASSERT_EQ(message.size(), 65'536U);
  EXPECT_EQ(peer.exchange(Peer::kShouldRateLimit, framed(message)).status(), 0);
  const Response& response = peer.exchange(Peer::kShouldRateLimit, framed(message + 'x'));
  EXPECT_EQ(response.status(), 8);
  EXPECT_EQ(response.message(), "a request of 65537 bytes is larger than the limit of 65536");
}

TEST(GrpcCalls, LargeMessageIsRefusedByItsHeadAlone) {
  Peer peer;
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, "\x00\xff\xff\xff\xff"s, {}, false);
  peer.pump();
  EXPECT_EQ(peer.response(id).status(), 8);
  // The client is told not to send the rest.
  EXPECT_TRUE(peer.response(id).was_reset);
  EXPECT_EQ(peer.response(id).reset, NGHTTP2_NO_ERROR);
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcCalls, HeadAloneIsEnoughToRefuse) {
  Peer peer;
  const std::int32_t id = peer.call("/unknown", "", {}, false);
  peer.pump();
  EXPECT_EQ(peer.response(id).status(), 12);
  EXPECT_TRUE(peer.response(id).was_reset);
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcCalls, MessageMayComeInAnyPieces) {
  Peer peer;
  peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
  const std::string bytes = peer.client_output();
  for (const char byte : bytes) ASSERT_TRUE(peer.feed({&byte, 1}));
  peer.pump();
  EXPECT_EQ(peer.response(1).body, framed(kFirstOfThirty));
}

TEST(GrpcCalls, MessageMayComeInManyFrames) {
  Peer peer;
  const std::string message = framed(request_for("42"));
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, message.substr(0, 3), {}, false);
  peer.pump();
  const std::int32_t other = peer.call(Peer::kShouldRateLimit, message);
  peer.pump();
  EXPECT_EQ(peer.response(other).status(), 0);
  EXPECT_FALSE(peer.response(id).ended);
  // The rest in two DATA frames, the last of which ends the stream.
  const auto data_frame = [](std::string_view bytes, char flags) {
    return "\0\0"s + static_cast<char>(bytes.size()) + '\0' + flags + "\0\0\0\1"s + std::string(bytes);
  };
  ASSERT_EQ(id, 1);
  peer.feed(data_frame(message.substr(3, 10), 0) + data_frame(message.substr(13), 1));
  peer.client_input(peer.server_output());
  EXPECT_EQ(peer.response(id).status(), 0);
}

TEST(GrpcCalls, RequestTrailersAreAllowed) {
  Peer peer;
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, framed(request_for("42")), {}, false);
  peer.pump();
  const nghttp2_nv field{reinterpret_cast<std::uint8_t*>(const_cast<char*>("x-done")),  // NOLINT: nghttp2 only reads
                         reinterpret_cast<std::uint8_t*>(const_cast<char*>("1")), 6, 1, 0};
  nghttp2_submit_headers(peer.client, NGHTTP2_FLAG_END_STREAM, id, nullptr, &field, 1, nullptr);
  peer.pump();
  EXPECT_EQ(peer.response(id).status(), 0);
}

TEST(GrpcCalls, TimeoutThatIsOver) {
  Peer peer;
  expect_error(peer.ask("42", {{"grpc-timeout", "0n"}}), 4, "deadline");
  EXPECT_EQ(peer.ask("42", {{"grpc-timeout", "1n"}}).status(), 0);
}

TEST(GrpcCalls, TimeoutThatPassesWhileTheRequestComes) {
  Peer peer;
  peer.call(Peer::kShouldRateLimit, framed(request_for("42")), {{"grpc-timeout", "10m"}});
  const std::string bytes = peer.client_output();
  peer.feed(std::string_view(bytes).substr(0, bytes.size() - 1));
  peer.advance(10'000'000);
  peer.feed(std::string_view(bytes).substr(bytes.size() - 1));
  peer.pump();
  expect_error(peer.response(1), 4, "deadline");
}

TEST(GrpcCalls, MalformedTimeout) {
  Peer peer;
  expect_error(peer.ask("42", {{"grpc-timeout", "soon"}}), 13, "malformed grpc-timeout");
}

TEST(GrpcCalls, Health) {
  Peer peer;
  const auto check = [&](std::string_view message) { return peer.exchange(Peer::kHealthCheck, framed(message)); };
  const std::string serving = framed("\x08\x01");
  const std::string not_serving = framed("\x08\x02");
  EXPECT_EQ(check("").body, serving);
  EXPECT_EQ(check("\x0a\x09ratelimit").body, serving);
  EXPECT_EQ(check("\x0a\x2b"
                  "envoy.service.ratelimit.v3.RateLimitService")
                .body,
            serving);
  expect_error(check("\x0a\x05other"), 5, "unknown service");
  expect_error(check("\x0a\x05oth"), 3, "HealthCheckRequest is not valid protobuf");

  peer.draining = true;
  EXPECT_EQ(check("").body, not_serving);
  peer.draining = false;
  peer.hold().is_ready = false;
  EXPECT_EQ(check("\x0a\x09ratelimit").body, not_serving);

  Peer without_policy("");
  EXPECT_EQ(without_policy.exchange(Peer::kHealthCheck, framed("")).body, not_serving);
}

TEST(GrpcCalls, MessagesOfErrorsArePercentEncoded) {
  Peer peer;
  // The text of a decoding error is ASCII; what has to be encoded is shown in grpc_text_test.
  EXPECT_EQ(peer.ask("42", {{"grpc-timeout", "x"}}).message(),
            "malformed grpc-timeout, expected 1 to 8 digits and one of HMSmun");
}

TEST(GrpcPending, AnsweredLater) {
  Peer peer;
  HeldStore& store = peer.hold();
  const Response& first = peer.ask("1");
  const Response& second = peer.ask("2");
  EXPECT_FALSE(first.ended);
  EXPECT_EQ(peer.outputs_announced, 0);
  store.answer_all();
  EXPECT_EQ(peer.outputs_announced, 1) << "one announcement for all answers of a turn";
  peer.pump();
  EXPECT_EQ(first.status(), 0);
  EXPECT_EQ(second.status(), 0);
  EXPECT_EQ(first.body, framed("\x08\x01\x12\x1b\x08\x01\x12\x13\x08\x0a\x10\x01\x1a\x0d"
                               "ArticleCreate\x18\x1d\x22\x00"s))
      << "figures of the store's own decision";
  peer.ask("3");
  store.answer_all();
  EXPECT_EQ(peer.outputs_announced, 2);
}

TEST(GrpcPending, DeadlineCancelsAtTheStore) {
  Peer peer;
  HeldStore& store = peer.hold();
  const Response& hurried = peer.ask("1", {{"grpc-timeout", "20m"}});
  const Response& patient = peer.ask("2", {{"grpc-timeout", "5S"}});
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + 20'000'000);
  peer.advance(19'999'999);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_FALSE(hurried.ended);
  peer.advance(1);
  peer.connection->expire(peer.now);
  peer.pump();
  expect_error(hurried, 4, "the store did not answer before the call's deadline");
  EXPECT_EQ(store.cancelled, 1);
  EXPECT_FALSE(patient.ended);
  store.answer_all();
  peer.pump();
  EXPECT_EQ(patient.status(), 0);
}

TEST(GrpcPending, ResetByTheClientCancels) {
  Peer peer;
  HeldStore& store = peer.hold();
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
  peer.pump();
  nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  peer.pump();
  EXPECT_EQ(store.cancelled, 1);
  EXPECT_TRUE(store.held.empty());
  EXPECT_EQ(peer.connection->open_calls(), 0U);
  EXPECT_EQ(peer.ask("2").ended, false);
  store.answer_all();
  peer.pump();
  EXPECT_EQ(peer.response(id + 2).status(), 0) << "the connection goes on";
}

TEST(GrpcPending, EndOfTheConnectionCancels) {
  Peer peer;
  HeldStore& store = peer.hold();
  for (int i = 0; i < 3; ++i) peer.ask("1");
  peer.connection.reset();
  EXPECT_EQ(store.cancelled, 3);
  EXPECT_TRUE(store.held.empty());
}

TEST(GrpcPending, StreamsAreUsedAgain) {
  Peer peer;
  HeldStore& store = peer.hold();
  for (int round = 0; round < 50; ++round) {
    const Response& response = peer.ask(std::to_string(round));
    store.answer_all();
    peer.pump();
    ASSERT_EQ(response.status(), 0);
    ASSERT_EQ(response.body.size(), 36U);
  }
}

}  // namespace
}  // namespace sluice::front::grpc
