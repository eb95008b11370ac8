// Spans of decisions over gRPC.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "limiter/denial_log.h"
#include "tests/unit/front/slow_store.h"
#include "tests/unit/front/span_text.h"
#include "tests/unit/front_grpc/grpc_peer.h"
#include "tracing/tracer.h"

namespace sluice::front::grpc {
namespace {

using testing_support::Fields;
using testing_support::framed;
using testing_support::HeldStore;
using testing_support::Peer;
using testing_support::request_for;
using tracing::Span;

const Fields kSampled = {{"traceparent", kSampledParent}, {"tracestate", "a=1"}, {"tracestate", "b=2"}};

GrpcOptions with(tracing::Tracer& tracer) {
  GrpcOptions options;
  options.tracer = &tracer;
  return options;
}

TEST(GrpcSpans, ADecisionIsASpanOfItsCallersTrace) {
  limiter::DenialLog::configure(0, limiter::DenialLog::Keys::plain);
  const ManualClock clock;
  tracing::Tracer tracer(0, clock);
  Peer peer(Peer::kPolicy, with(tracer));
  EXPECT_EQ(peer.ask("42", kSampled).status(), 0);
  EXPECT_EQ(peer.ask("42", {{"traceparent", kSampledParent.substr(0, 53) + "00"}}).status(), 0);
  EXPECT_EQ(peer.ask("42").status(), 0);
  EXPECT_EQ(peer.ask("42", {{"traceparent", kSampledParent}, {"traceparent", kSampledParent}}).status(), 0);
  EXPECT_EQ(peer.exchange("/sluice.v1.Limiter/Check", framed(request_for("42")), kSampled).status(), 0);
  EXPECT_EQ(peer.exchange("/sluice.v1.Limiter/Peek", framed(request_for("42")), kSampled).status(), 0);
  EXPECT_EQ(peer.exchange("/sluice.v1.Limiter/Reset", framed(request_for("42")), kSampled).status(), 0);
  EXPECT_EQ(peer.exchange(Peer::kHealthCheck, framed(""), kSampled).status(), 0);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(peer.ask("43").status(), 0);
  EXPECT_EQ(peer.ask("43", kSampled).status(), 0);

  const std::vector<Span> spans = tracer.take();
  ASSERT_EQ(spans.size(), 3U);
  const Span& first = spans[0];
  EXPECT_EQ(first.name, "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit");
  EXPECT_EQ(first.trace[0], 0x4b);
  EXPECT_EQ(first.state, "a=1,b=2");
  EXPECT_EQ(text_of(first, "rpc.method"), "ShouldRateLimit");
  EXPECT_EQ(text_of(first, "rpc.grpc.status_code"), "0");
  EXPECT_EQ(text_of(first, "sluice.domain"), "shop");
  EXPECT_EQ(text_of(first, "sluice.verdict"), "allowed");
  EXPECT_EQ(text_of(first, "sluice.limit"), "ArticleCreate");
  EXPECT_EQ(text_of(first, "sluice.store"), "memory");
  EXPECT_EQ(text_of(first, "sluice.cost"), "1");
  EXPECT_EQ(text_of(first, "sluice.remaining"), "29");
  EXPECT_EQ(text_of(first, "sluice.key"), "42");
  EXPECT_EQ(spans[1].name, "sluice.v1.Limiter/Check");
  EXPECT_EQ(spans[1].state, "a=1,b=2");
  EXPECT_EQ(text_of(spans[2], "sluice.verdict"), "denied");
  EXPECT_FALSE(spans[2].failed);
  limiter::DenialLog::configure(0, limiter::DenialLog::Keys::hashed);
}

TEST(GrpcSpans, HowLongTheStoreTookIsTold) {
  ManualClock clock;
  tracing::Tracer tracer(1, clock);
  Peer peer(Peer::kPolicy, with(tracer));
  HeldStore& store = peer.hold();
  peer.now = clock.now();
  peer.ask("42");
  EXPECT_EQ(tracer.waiting(), 0U);
  clock.advance(std::chrono::milliseconds(7));
  store.answer_all();
  peer.pump();
  std::vector<Span> spans = tracer.take();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].ended - spans[0].begun, 7'000'000);
  EXPECT_FALSE(spans[0].has_parent);

  // A call whose deadline is over ends its span by an error.
  const std::int32_t id = peer.call(Peer::kShouldRateLimit, framed(request_for("42")), {{"grpc-timeout", "1S"}});
  peer.pump();
  peer.advance(2 * Peer::kSecond);
  peer.connection->expire(peer.now);
  peer.pump();
  EXPECT_EQ(peer.responses[id].status(), 4);
  spans = tracer.take();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_TRUE(spans[0].failed);
  EXPECT_EQ(text_of(spans[0], "rpc.grpc.status_code"), "4");
  EXPECT_EQ(text_of(spans[0], "sluice.verdict"), "-");
}

TEST(GrpcSpans, SpansWithoutRoomAreCounted) {
  const ManualClock clock;
  tracing::Tracer tracer(1, clock);
  for (std::size_t i = 0; i < tracing::Tracer::kMostWaiting; ++i) {
    ASSERT_TRUE(tracer.end(tracer.begin("other", {}, clock.now())));
  }
  Peer peer(Peer::kPolicy, with(tracer));
  EXPECT_EQ(peer.ask("42").status(), 0);
  EXPECT_EQ(peer.counted(metrics::Counter::spans_dropped), 1U);
}

}  // namespace
}  // namespace sluice::front::grpc
