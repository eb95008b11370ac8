// Answers that wait for a leaky bucket's slot.
#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <chrono>
#include <string_view>

#include "tests/unit/front_grpc/grpc_peer.h"

namespace sluice::front::grpc {
namespace {

using testing_support::framed;
using testing_support::HeldStore;
using testing_support::Peer;
using testing_support::request_for;
using testing_support::Response;

constexpr std::string_view kPolicy =
    "domain: shop\n"
    "descriptors:\n"
    "  - key: user\n"
    "    rate_limit: { unit: second, requests_per_unit: 10, algorithm: leaky_bucket, queue: 5, delay: hold }\n";
constexpr std::int64_t kSlot = 100'000'000;
constexpr char kOk = 1;
constexpr char kOverLimit = 2;

TEST(GrpcHold, AnswersLeaveAtTheirSlots) {
  Peer peer(kPolicy);
  EXPECT_EQ(peer.ask("42").body[6], kOk);
  const std::int32_t second = peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
  const std::int32_t third = peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
  peer.pump();
  EXPECT_FALSE(peer.response(second).closed);
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + kSlot);
  peer.advance(kSlot - 1);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_FALSE(peer.response(second).closed);
  peer.advance(1);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(peer.response(second).body[6], kOk);
  EXPECT_FALSE(peer.response(third).closed);
  peer.advance(kSlot);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(peer.response(third).body[6], kOk);
}

TEST(GrpcHold, WhatWouldComeAfterTheDeadlineIsDeniedAtOnce) {
  Peer peer(kPolicy);
  EXPECT_EQ(peer.ask("42", {{"grpc-timeout", "50m"}}).body[6], kOk);
  const Response& denied = peer.ask("42", {{"grpc-timeout", "100m"}});
  EXPECT_TRUE(denied.closed);
  EXPECT_EQ(denied.status(), 0);
  EXPECT_EQ(denied.body[6], kOverLimit);
}

TEST(GrpcHold, ACallThatIsGivenUpWaitsNoLonger) {
  Peer peer(kPolicy);
  peer.ask("42");
  const std::int32_t held = peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
  peer.pump();
  EXPECT_EQ(peer.connection->open_calls(), 1U);
  nghttp2_submit_rst_stream(peer.client, NGHTTP2_FLAG_NONE, held, NGHTTP2_CANCEL);
  peer.pump();
  EXPECT_EQ(peer.connection->open_calls(), 0U);
}

TEST(GrpcHold, AnAnswerThatComesLaterIsHeldFromThen) {
  Peer peer(kPolicy);
  HeldStore& store = peer.hold();
  const std::int32_t held = peer.call(Peer::kShouldRateLimit, framed(request_for("42")));
  peer.pump();
  ASSERT_EQ(store.held.size(), 1U);
  peer.advance(7);
  store.held.front()->decisions.front().delay = Wait(std::chrono::nanoseconds(kSlot));
  store.held.front()->decisions.front().allowed = true;
  store::Check* const check = store.held.front();
  store.held.clear();
  check->complete();
  EXPECT_EQ(peer.outputs_announced, 1);
  EXPECT_LE(peer.connection->next_deadline(), peer.now.steady);
  peer.connection->expire(peer.now);
  EXPECT_EQ(peer.connection->next_deadline(), peer.now.steady + kSlot);
  peer.advance(kSlot);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(peer.response(held).body[6], kOk);
}

}  // namespace
}  // namespace sluice::front::grpc
