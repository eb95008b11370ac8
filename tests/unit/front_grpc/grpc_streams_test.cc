// Calls with several messages: health that is watched, and reflection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>
#include <string>

#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

using testing::HasSubstr;
using testing_support::framed;
using testing_support::Peer;
using testing_support::Response;
using namespace std::string_literals;

const std::string kServing = framed("\x08\x01");
const std::string kNotServing = framed("\x08\x02");
const std::string kWatch = "/grpc.health.v1.Health/Watch";
const std::string kReflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

void let_a_second_pass(Peer& peer) {
  peer.advance(Peer::kSecond);
  EXPECT_LE(peer.connection->next_deadline(), peer.now.steady);
  peer.connection->expire(peer.now);
  peer.pump();
}

TEST(GrpcWatch, TellsEachChangeAndStaysOpen) {
  Peer peer;
  const std::int32_t id = peer.call(kWatch, framed(""));
  peer.pump();
  EXPECT_EQ(peer.response(id).body, kServing);
  EXPECT_FALSE(peer.response(id).ended);
  let_a_second_pass(peer);
  EXPECT_EQ(peer.response(id).body, kServing);
  const auto policy = peer.policies.set(nullptr);
  let_a_second_pass(peer);
  EXPECT_EQ(peer.response(id).body, kServing + kNotServing);
  peer.policies.set(policy);
  let_a_second_pass(peer);
  EXPECT_EQ(peer.response(id).body, kServing + kNotServing + kServing);
  // Longer than any unary call may take, and longer than an idle connection is kept.
  peer.advance(3'600 * Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_FALSE(peer.response(id).closed);
  EXPECT_TRUE(peer.goaways.empty());
  EXPECT_EQ(peer.ask("42").status(), 0);
}

TEST(GrpcWatch, EndsInGoodOrderWithTheConnection) {
  Peer peer;
  const std::int32_t id = peer.call(kWatch, framed(""));
  peer.pump();
  peer.draining = true;
  peer.connection->drain(peer.now);
  peer.pump();
  EXPECT_EQ(peer.response(id).body, kServing + kNotServing);
  EXPECT_EQ(peer.response(id).status(), 0);
  EXPECT_TRUE(peer.response(id).ended);
  EXPECT_TRUE(peer.connection->finished());
}

TEST(GrpcWatch, OfAnUnknownServiceSaysSo) {
  Peer peer;
  const std::int32_t id = peer.call(kWatch, framed("\x0a\x04nope"));
  peer.pump();
  EXPECT_EQ(peer.response(id).body, framed("\x08\x03"));
  EXPECT_FALSE(peer.response(id).ended);
  EXPECT_EQ(peer.exchange(kWatch, framed("\x0a\xff")).status(), 3);
}

TEST(GrpcWatch, GoesWithItsClient) {
  auto peer = std::make_unique<Peer>();
  peer->call(kWatch, framed(""));
  peer->pump();
  peer.reset();
}

std::string reflection_request(std::uint32_t field, const std::string& text) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(field, text);
  return framed(out);
}

TEST(GrpcReflection, AnswersEachMessageAsItComes) {
  Peer peer;
  const std::int32_t id = peer.call(kReflection, reflection_request(7, "*"), {}, false);
  peer.pump();
  EXPECT_THAT(peer.response(id).body, HasSubstr("sluice.v1.Limiter"));
  EXPECT_THAT(peer.response(id).body, HasSubstr("envoy.service.ratelimit.v3.RateLimitService"));
  EXPECT_THAT(peer.response(id).body, HasSubstr("grpc.health.v1.Health"));
  EXPECT_FALSE(peer.response(id).ended);
}

// Connections of one thread make their frames in the same room. Each is taken a frame at a time here, in turns.
TEST(GrpcConnections, ShareTheRoomForFramesAndNothingElse) {
  struct Other final : testing_support::Client, Connection::Owner {
    void output_ready() override {}
  } other;
  Peer peer;
  Connection connection(other, peer.service, peer.options, peer.now);
  const std::string path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const std::string large = reflection_request(4, "sluice.v1.Limiter");
  const std::string other_large = reflection_request(4, "envoy.service.ratelimit.v3.RateLimitService");
  Peer alone;
  const std::string expected = alone.exchange(path, large).body;
  const std::string other_expected = Peer().exchange(path, other_large).body;
  ASSERT_NE(expected, other_expected);

  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> other_ids;
  for (int i = 0; i < 20; ++i) {
    ids.push_back(peer.call(path, large));
    other_ids.push_back(other.call(path, other_large));
  }
  for (bool silent = false; !silent;) {
    silent = true;
    for (int turn = 0; turn < 2; ++turn) {
      std::string out = turn == 0 ? peer.client_output() : other.client_output();
      if (!out.empty()) {
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(out.data());
        EXPECT_TRUE((turn == 0 ? *peer.connection : connection).feed({bytes, out.size()}, peer.now));
      }
      std::string back;
      (turn == 0 ? *peer.connection : connection).take_output(back, 1);
      if (turn == 0) {
        peer.client_input(back);
      } else {
        other.client_input(back);
      }
      silent = silent && out.empty() && back.empty();
    }
  }
  for (const std::int32_t id : ids) EXPECT_EQ(peer.response(id).body, expected);
  for (const std::int32_t id : other_ids) EXPECT_EQ(other.response(id).body, other_expected);
}

TEST(GrpcReflection, TellsFilesByNameAndBySymbol) {
  for (const std::string version : {"v1", "v1alpha"}) {
    Peer peer;
    const std::string path = "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo";
    for (const std::string symbol : {"sluice.v1.Limiter", "sluice.v1.Limiter.Check", "sluice.v1.Verdict"}) {
      const Response& response = peer.exchange(path, reflection_request(4, symbol));
      EXPECT_EQ(response.status(), 0);
      EXPECT_THAT(response.body, HasSubstr("sluice/v1/limiter.proto")) << symbol;
    }
    EXPECT_THAT(peer.exchange(path, reflection_request(3, "envoy/service/ratelimit/v3/rls.proto")).body,
                HasSubstr("ShouldRateLimit"));
    EXPECT_THAT(peer.exchange(path, reflection_request(3, "google/protobuf/duration.proto")).body,
                HasSubstr("Duration"));
    EXPECT_THAT(peer.exchange(path, reflection_request(4, "nobody")).body, HasSubstr("not known here: nobody"));
    EXPECT_TRUE(peer.exchange(path, framed("\x0a\xff")).was_reset);
    EXPECT_EQ(peer.exchange(path, "").status(), 0);
  }
}

}  // namespace
}  // namespace sluice::front::grpc
