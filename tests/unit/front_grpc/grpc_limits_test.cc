// What a gRPC connection bears: malformed bytes, floods, slow peers, and its own end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

using metrics::Counter;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::Fields;
using testing_support::framed;
using testing_support::HeldStore;
using testing_support::Peer;
using testing_support::request_for;
using testing_support::Response;
using namespace std::string_literals;

constexpr std::int64_t kMillisecond = 1'000'000;

std::string frame(int type, int flags, std::uint32_t stream, std::string_view payload) {
  std::string out;
  for (int shift = 16; shift >= 0; shift -= 8) out += static_cast<char>(payload.size() >> static_cast<unsigned>(shift));
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> static_cast<unsigned>(shift));
  return out.append(payload);
}

std::string times(int n, const std::string& bytes) {
  std::string out;
  for (int i = 0; i < n; ++i) out += bytes;
  return out;
}

/// Sends `bytes` as the client; expects the connection to be ended by GOAWAY with `error`.
void expect_end(Peer& peer, std::string_view bytes, std::uint32_t error) {
  peer.pump();
  peer.feed(bytes);
  EXPECT_FALSE(peer.connection->finished()) << "there is a GOAWAY to send";
  peer.client_input(peer.server_output());
  EXPECT_THAT(peer.goaways, ElementsAre(error));
  EXPECT_TRUE(peer.connection->finished());
  EXPECT_FALSE(peer.feed("more"));
}

TEST(GrpcLimits, FirstOutputIsSettings) {
  Peer peer;
  const std::string settings = peer.server_output();
  ASSERT_GE(settings.size(), 27U);
  EXPECT_EQ(settings.substr(3, 6), "\x04\0\0\0\0\0"s);
  EXPECT_THAT(settings, HasSubstr("\0\x03\0\0\x03\xe8"s)) << "1000 streams at once";
  EXPECT_THAT(settings, HasSubstr("\0\x06\0\x01\0\0"s)) << "64 KiB of header fields";
}

TEST(GrpcLimits, AnotherProtocolIsTurnedAway) {
  for (const char* bytes : {"GET / HTTP/1.1\r\nHost: limits\r\n\r\n", "\x16\x03\x01\x02\x00", "*1\r\n$4\r\nPING\r\n"}) {
    Peer peer;
    EXPECT_FALSE(peer.feed(bytes)) << bytes;
    peer.server_output();
    EXPECT_TRUE(peer.connection->finished());
    EXPECT_EQ(peer.counted(Counter::protocol_errors), 1U);
  }
}

TEST(GrpcLimits, FrameLongerThanAllowedEndsTheConnection) {
  Peer peer;
  expect_end(peer, "\xff\xff\xff\0\0\0\0\0\1"s, NGHTTP2_FRAME_SIZE_ERROR);
}

TEST(GrpcLimits, BrokenHeaderCompressionEndsTheConnection) {
  Peer peer;
  expect_end(peer, frame(1, 5, 1, "\xff\xff\xff\xff\xff\xff"), NGHTTP2_COMPRESSION_ERROR);
}

TEST(GrpcLimits, MalformedRequestEndsItsStreamOnly) {
  Peer peer;
  const std::int32_t bad = peer.send({{":method", "POST"}, {":scheme", "http"}, {":authority", "a"}}, "");
  peer.pump();
  EXPECT_TRUE(peer.response(bad).was_reset);
  EXPECT_EQ(peer.response(bad).reset, NGHTTP2_PROTOCOL_ERROR);
  EXPECT_EQ(peer.connection->open_calls(), 0U);
  EXPECT_EQ(peer.ask("42").status(), 0);
}

TEST(GrpcLimits, HeadersOfAFinishedStreamEndTheConnection) {
  Peer peer;
  peer.ask("42");
  expect_end(peer, frame(1, 5, 1, "\x83\x86\x84"), NGHTTP2_STREAM_CLOSED);
}

TEST(GrpcLimits, HeadersOfAStreamThatTheClientResetEndTheConnection) {
  Peer peer;
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, "", {}, false);
  peer.pump();
  nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  expect_end(peer, frame(1, 5, 1, "\x83\x86\x84"), NGHTTP2_STREAM_CLOSED);
}

TEST(GrpcLimits, FramesOfAStreamThatThisEndResetAreIgnored) {
  Peer peer;
  const std::int32_t id = peer.call("/unknown", "", {}, false);
  peer.pump();
  ASSERT_TRUE(peer.response(id).was_reset);
  EXPECT_TRUE(peer.feed(frame(0, 0, 1, "on its way") + frame(0, 1, 1, "and its end")));
  EXPECT_EQ(peer.ask("42").status(), 0);
}

TEST(GrpcLimits, FramesOfARefusedStreamAreIgnored) {
  GrpcOptions options;
  options.max_streams = 1;
  Peer peer(Peer::kPolicy, options);
  HeldStore& store = peer.hold();
  for (int i = 0; i < 3; ++i) peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
  peer.pump();
  store.answer_all();
  peer.pump();
  const Response& next = peer.ask("42");
  EXPECT_TRUE(peer.feed(frame(0, 1, 3, "late")));
  store.answer_all();
  peer.pump();
  EXPECT_EQ(next.status(), 0);
}

TEST(GrpcLimits, NewStreamWithAnOldNumberEndsTheConnection) {
  Peer peer;
  peer.pump();
  const std::string head =
      "\x83\x86\x84\x41\x01"
      "a";
  peer.feed(frame(1, 4, 5, head) + frame(1, 4, 3, head));
  peer.client_input(peer.server_output());
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_PROTOCOL_ERROR));
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcLimits, HeaderFieldsOfARequestAreLimited) {
  Peer peer;
  const Response& fits = peer.ask("42", {{"x-padding", std::string(60'000, 'a')}});
  EXPECT_EQ(fits.status(), 0);
  const Response& large =
      peer.ask("42", {{"x-padding", std::string(40'000, 'a')}, {"x-more", std::string(30'000, 'b')}});
  EXPECT_EQ(large.head.at(":status"), "431");
  EXPECT_TRUE(large.closed);
  EXPECT_EQ(peer.ask("42").status(), 0) << "the connection goes on";
}

// A kilobyte of header fields, kept in the compression table and referred to by one byte each.
TEST(GrpcLimits, HeaderBombEndsTheConnection) {
  Peer peer;
  peer.ask("42", {{"x-bomb", std::string(1'000, 'a')}});
  // The newest entries of the table are te, content-type and x-bomb; 1 MiB is reached after about a thousand
  // references.
  const std::string bomb = "\x83\x86\x84" + std::string(1'100, '\xc0');
  expect_end(peer, frame(1, 5, 3, bomb), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, ContinuationFloodEndsTheConnection) {
  Peer peer;
  peer.pump();
  peer.feed(frame(1, 0, 1, "\x83\x86\x84"));
  for (int i = 0; i < 10'000 && peer.reading; ++i) {
    peer.feed(frame(9, 0, 1, "\x40\x01x\x01y"));
  }
  EXPECT_FALSE(peer.reading);
}

TEST(GrpcLimits, StreamsAtOnceAreLimited) {
  Peer peer;
  HeldStore& store = peer.hold();
  peer.pump();
  for (int i = 0; i < 1'005; ++i) peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
  peer.pump();
  EXPECT_EQ(store.held.size(), 1'000U);
  EXPECT_EQ(peer.connection->open_calls(), 1'000U);
}

TEST(GrpcLimits, StreamBeyondTheLimitIsRefused) {
  GrpcOptions options;
  options.max_streams = 2;
  Peer peer(Peer::kPolicy, options);
  HeldStore& store = peer.hold();
  // Sent before the server's SETTINGS have come, as a client may.
  const Response* last = nullptr;
  for (int i = 0; i < 3; ++i) last = &peer.response(peer.call(Peer::kShouldRateLimit, framed(request_for("1"))));
  peer.pump();
  EXPECT_EQ(store.held.size(), 2U);
  EXPECT_TRUE(last->was_reset);
  EXPECT_EQ(last->reset, NGHTTP2_REFUSED_STREAM);
}

TEST(GrpcLimits, UnfinishedRequestsAreLimitedInAll) {
  GrpcOptions options;
  options.max_buffered = 1'000;
  Peer peer(Peer::kPolicy, options);
  const std::string unfinished = "\0\0\0\4\0"s + std::string(600, 'x');
  const std::int32_t first = peer.call(Peer::kShouldRateLimit, unfinished, {}, false);
  const std::int32_t second = peer.call(Peer::kShouldRateLimit, unfinished, {}, false);
  peer.pump();
  EXPECT_FALSE(peer.response(first).ended);
  EXPECT_EQ(peer.response(second).status(), 8);
  EXPECT_EQ(peer.response(second).message(), "too many unfinished requests on this connection");
  nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, first, NGHTTP2_CANCEL);
  peer.pump();
  const std::int32_t third = peer.call(Peer::kShouldRateLimit, unfinished, {}, false);
  peer.pump();
  EXPECT_FALSE(peer.response(third).ended) << "what was held has been let go";
  EXPECT_EQ(peer.ask("42").status(), 0);
}

TEST(GrpcLimits, KeepalivePingsAreAnswered) {
  Peer peer;
  for (int i = 0; i < 100; ++i) {
    nghttp2_submit_ping(peer.client, NGHTTP2_FLAG_NONE, nullptr);
    peer.pump();
    peer.advance(Peer::kSecond);
  }
  EXPECT_EQ(peer.ping_acks, 100);
  EXPECT_TRUE(peer.goaways.empty());
}

TEST(GrpcLimits, PingsThatComeWithCallsAreAnswered) {
  Peer peer;
  for (int i = 0; i < 3'000; ++i) {
    nghttp2_submit_ping(peer.client, NGHTTP2_FLAG_NONE, nullptr);
    ASSERT_EQ(peer.ask("42").status(), 0);
  }
  EXPECT_EQ(peer.ping_acks, 3'000);
}

TEST(GrpcLimits, PingFloodEndsTheConnection) {
  Peer peer;
  expect_end(peer, times(1'001, frame(6, 0, 0, "12345678")), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, PingFloodInPiecesEndsTheConnection) {
  Peer peer;
  peer.pump();
  for (int i = 0; i < 2'000 && peer.reading; ++i) {
    peer.feed(frame(6, 0, 0, "12345678"));
    peer.client_input(peer.server_output());
  }
  EXPECT_FALSE(peer.reading);
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_ENHANCE_YOUR_CALM));
}

TEST(GrpcLimits, SettingsFloodEndsTheConnection) {
  Peer peer;
  expect_end(peer, times(1'001, frame(4, 0, 0, "")), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, PriorityFloodEndsTheConnection) {
  Peer peer;
  expect_end(peer, times(1'001, frame(2, 0, 1, "\0\0\0\3\5"s)), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, WindowUpdateFloodEndsTheConnection) {
  Peer peer;
  expect_end(peer, times(1'001, frame(8, 0, 0, "\0\0\0\1"s)), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, EmptyDataFloodEndsTheConnection) {
  Peer peer;
  peer.call(Peer::kShouldRateLimit, "", {}, false);
  expect_end(peer, times(1'001, frame(0, 0, 1, "")), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(GrpcLimits, FloodsOfFramesThatSayNothingEndTheConnection) {
  const std::string head =
      "\x83\x86\x84\x41\x01"
      "a";
  for (const std::string& nothing : {
           frame(99, 0, 0, "of no known type"),
           frame(99, 0, 1, ""),
           frame(0, 8, 1, "\0"s),       // DATA, all of it padding's length
           frame(0, 8, 1, "\2\0\0"s),   // DATA, all of it padding
           frame(6, 1, 0, "12345678"),  // an answer to no PING
           frame(8, 0, 1, "\0\0\0\1"s),
       }) {
    Peer peer;
    peer.call(Peer::kShouldRateLimit, "", {}, false);
    expect_end(peer, times(1'001, nothing), NGHTTP2_ENHANCE_YOUR_CALM);
  }
  for (const std::string& late : {frame(8, 0, 1, "\0\0\0\1"s), frame(0, 0, 1, "x"), frame(1, 4, 1, head)}) {
    Peer peer;
    const std::int32_t id = peer.call("/unknown", "", {}, false);
    peer.pump();
    ASSERT_TRUE(peer.response(id).was_reset);
    expect_end(peer, times(1'011, late), NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

TEST(GrpcLimits, FloodInPiecesOfAFrameEndsTheConnection) {
  Peer peer;
  peer.pump();
  const std::string flood = times(1'500, frame(99, 0, 0, "of no known type"));
  std::size_t fed = 0;
  for (; fed < flood.size() && peer.reading; fed += 7) peer.feed(std::string_view(flood).substr(fed, 7));
  EXPECT_NEAR(static_cast<double>(fed), 1'000 * 25, 10 * 25);
  peer.client_input(peer.server_output());
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_ENHANCE_YOUR_CALM));
}

// Each call brings two window updates and a ping along, many calls come at once, and no time passes.
TEST(GrpcLimits, BusyClientIsNotTakenForAFlood) {
  Peer peer;
  peer.pump();
  for (int turn = 0; turn < 100; ++turn) {
    std::string bytes;
    for (int i = 0; i < 400; ++i) {
      peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
      bytes += peer.client_output();
      bytes += times(2, frame(8, 0, 0, "\0\0\0\1"s)) + frame(6, 0, 0, "12345678");
    }
    peer.feed(bytes);
    peer.client_input(peer.server_output());
  }
  EXPECT_TRUE(peer.reading);
  EXPECT_TRUE(peer.goaways.empty());
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcLimits, RapidResetsEndTheConnection) {
  Peer peer;
  peer.hold();
  peer.pump();
  int resets = 0;
  while (peer.reading && resets < 20'000) {
    const std::int32_t id = peer.call(Peer::kShouldRateLimit, framed(request_for("1")), {}, false);
    peer.feed(peer.client_output());
    nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    peer.feed(peer.client_output());
    peer.server_output();
    ++resets;
  }
  EXPECT_EQ(resets, 10'001);
}

TEST(GrpcLimits, ClientThatGivesUpOnSlowCallsIsNotDropped) {
  Peer peer;
  HeldStore& store = peer.hold();
  for (int i = 0; i < 20'000; ++i) {
    const std::int32_t id = peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
    peer.pump();
    nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    peer.pump();
    peer.advance(kMillisecond);
  }
  EXPECT_EQ(store.cancelled, 20'000);
  EXPECT_TRUE(peer.reading);
  EXPECT_TRUE(peer.goaways.empty());
}

TEST(GrpcLimits, OutputIsHandedOutInBoundedPieces) {
  Peer peer;
  peer.pump();
  for (int i = 0; i < 200; ++i) peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
  peer.feed(peer.client_output());
  std::string all;
  for (;;) {
    const std::string piece = peer.server_output(1'000);
    if (piece.empty()) break;
    EXPECT_LT(piece.size(), 1'000U + 16'384U + 9U);
    all += piece;
  }
  peer.client_input(all);
  for (std::int32_t id = 1; id < 400; id += 2) ASSERT_EQ(peer.response(id).status(), 0) << id;
}

TEST(GrpcLimits, AnswerWaitsForAWindow) {
  Peer peer;
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(peer.client, NGHTTP2_FLAG_NONE, &none, 1);
  peer.pump();
  const Response& response = peer.ask("42");
  EXPECT_EQ(response.head.at(":status"), "200");
  EXPECT_FALSE(response.ended);
  nghttp2_submit_window_update(peer.client, NGHTTP2_FLAG_NONE, 1, 10);
  peer.feed(peer.client_output());
  const std::string piece = peer.server_output();
  EXPECT_EQ(piece.size(), 9U + 10U);
  peer.client_input(piece);
  EXPECT_EQ(response.body.size(), 10U);
  EXPECT_FALSE(response.ended);
  peer.pump();  // nghttp2's client opens the window again and again
  EXPECT_EQ(response.status(), 0);
  EXPECT_EQ(response.body.size(), 38U);
}

TEST(GrpcLimits, AnswersThatWaitForAWindowAreLimited) {
  GrpcOptions options;
  options.max_waiting = 100;
  Peer peer(Peer::kPolicy, options);
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(peer.client, NGHTTP2_FLAG_NONE, &none, 1);
  peer.pump();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(peer.ask("42").was_reset);  // 38 bytes each
  const Response& refused = peer.ask("42");
  EXPECT_TRUE(refused.was_reset);
  EXPECT_EQ(refused.reset, NGHTTP2_REFUSED_STREAM);
  EXPECT_EQ(peer.connection->open_calls(), 3U);
  nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, 1, NGHTTP2_CANCEL);
  peer.pump();
  EXPECT_FALSE(peer.ask("42").was_reset) << "there is room again";
}

TEST(GrpcLimits, ManyAnswersInOneTurnAreNotHeldUp) {
  GrpcOptions options;
  options.max_waiting = 100;
  Peer peer(Peer::kPolicy, options);
  peer.pump();
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 50; ++i) peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
    peer.feed(peer.client_output());
    peer.pump();
  }
  for (std::int32_t id = 1; id < 300; id += 2) ASSERT_EQ(peer.response(id).status(), 0) << id;
}

TEST(GrpcLimits, CallThatIsNeverFinishedIsReset) {
  Peer peer;
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, "", {}, false);
  peer.pump();
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + 30 * Peer::kSecond);
  peer.advance(30 * Peer::kSecond - 1);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_FALSE(peer.response(id).was_reset);
  peer.advance(1);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_TRUE(peer.response(id).was_reset);
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcLimits, AnswerThatIsNeverTakenIsReset) {
  Peer peer;
  const nghttp2_settings_entry none{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
  nghttp2_submit_settings(peer.client, NGHTTP2_FLAG_NONE, &none, 1);
  peer.pump();
  for (int i = 0; i < 5; ++i) peer.ask("42");
  EXPECT_EQ(peer.connection->open_calls(), 5U);
  peer.advance(30 * Peer::kSecond);
  peer.connection->expire(peer.now);
  EXPECT_GT(peer.connection->next_deadline(), peer.now.steady) << "even while the resets are not sent";
  peer.pump();
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcLimits, PendingCallsAreCancelledWhenTheirStreamTimesOut) {
  Peer peer;
  HeldStore& store = peer.hold();
  const Response& response = peer.ask("42");
  peer.advance(30 * Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(store.cancelled, 1);
  EXPECT_TRUE(response.was_reset);
}

TEST(GrpcLimits, ClientThatSaysNothingIsDropped) {
  Peer peer;
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + 10 * Peer::kSecond);
  peer.advance(10 * Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.client_input(peer.server_output());
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_SETTINGS_TIMEOUT));
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcLimits, IdleConnectionIsClosed) {
  Peer peer;
  peer.ask("42");
  peer.advance(599 * Peer::kSecond);
  peer.ask("42");
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + 600 * Peer::kSecond);
  peer.advance(600 * Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR));
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcLimits, OldConnectionIsClosedWhenItsCallsAreAnswered) {
  GrpcOptions options;
  options.max_age = std::chrono::minutes(5);
  Peer peer(Peer::kPolicy, options);
  HeldStore& store = peer.hold();
  peer.pump();
  peer.advance(300 * Peer::kSecond);
  const Response& response = peer.ask("42");
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(peer.goaways.size(), 2U);
  EXPECT_FALSE(peer.connection->finished());
  store.answer_all();
  peer.pump();
  EXPECT_EQ(response.status(), 0);
  EXPECT_TRUE(peer.connection->finished());
}

// A call that was on its way when the server began to drain is still answered.
TEST(GrpcDrain, LosesNoCall) {
  Peer peer;
  peer.ask("1");
  peer.connection->drain(peer.now);
  const std::int32_t on_its_way = peer.call(Peer::kShouldRateLimit, framed(request_for("2")));
  peer.feed(peer.client_output());
  peer.pump();
  EXPECT_EQ(peer.response(on_its_way).status(), 0);
  EXPECT_THAT(peer.goaways, ElementsAre(NGHTTP2_NO_ERROR, NGHTTP2_NO_ERROR));
  EXPECT_THAT(peer.goaway_streams, ElementsAre(INT32_MAX, on_its_way));
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcDrain, FinishesWhatIsInFlight) {
  Peer peer;
  HeldStore& store = peer.hold();
  const Response& response = peer.ask("1");
  peer.connection->drain(peer.now);
  peer.pump();
  EXPECT_FALSE(peer.connection->finished());
  store.answer_all();
  peer.pump();
  EXPECT_EQ(response.status(), 0);
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcDrain, DoesNotWaitForAPeerThatDoesNotAnswerPings) {
  Peer peer;
  peer.ask("1");
  peer.connection->drain(peer.now);
  peer.server_output();
  EXPECT_FALSE(peer.connection->finished());
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + Peer::kSecond);
  peer.advance(Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.server_output();
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcDrain, TwiceIsOnce) {
  Peer peer;
  peer.ask("1");
  peer.connection->drain(peer.now);
  peer.connection->drain(peer.now);
  peer.pump();
  EXPECT_EQ(peer.goaways.size(), 2U);
}

TEST(GrpcLimits, GarbageNeverHangsOrCrashes) {
  std::mt19937 random(20'261'129);  // NOLINT(bugprone-random-generator-seed): the same each time, on purpose
  for (int round = 0; round < 300; ++round) {
    Peer peer;
    for (int i = 0; i < 3; ++i) peer.call(Peer::kShouldRateLimit, framed(request_for("1")));
    std::string bytes = peer.client_output();
    for (int changes = 0; changes < 1 + round % 8; ++changes) {
      bytes[24 + random() % (bytes.size() - 24)] = static_cast<char>(random());
    }
    for (std::size_t at = 0; at < bytes.size() && peer.reading; at += 50) {
      peer.feed(std::string_view(bytes).substr(at, 50));
      peer.server_output();
    }
    peer.advance(40 * Peer::kSecond);
    peer.connection->expire(peer.now);
    peer.server_output();
    EXPECT_TRUE(peer.connection->finished() || peer.connection->open_calls() == 0) << round;
  }
}

}  // namespace
}  // namespace sluice::front::grpc
