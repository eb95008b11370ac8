#include "tracing/tracer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/front/slow_store.h"

namespace sluice::tracing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr std::string_view kNotSampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

TraceFields fields_of(std::string_view parent) {
  TraceFields fields;
  if (!parent.empty()) fields.add_parent(parent);
  fields.add_state("a=1");
  return fields;
}

TEST(Tracer, TheCallersWordCounts) {
  const front::ManualClock clock;
  const Tracer never(0, clock);
  const Tracer always(1, clock);
  const auto span = never.begin("check", fields_of(kSampled), clock.now());
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->trace[0], 0x4b);
  EXPECT_EQ(span->parent[1], 0xf0);
  EXPECT_TRUE(span->has_parent);
  EXPECT_EQ(span->state, "a=1");
  EXPECT_EQ(span->flags, 1);
  EXPECT_NE(span->id, SpanId{});
  EXPECT_NE(span->id, span->parent);
  EXPECT_EQ(always.begin("check", fields_of(kNotSampled), clock.now()), nullptr);
}

TEST(Tracer, OfTracesThatBeginHereAPartIsSampled) {
  const front::ManualClock clock;
  for (const std::string_view parent : {"", "00-no-parent-01"}) {
    EXPECT_EQ(Tracer(0, clock).begin("check", fields_of(parent), clock.now()), nullptr);
    const auto span = Tracer(1, clock).begin("check", fields_of(parent), clock.now());
    ASSERT_NE(span, nullptr);
    EXPECT_FALSE(span->has_parent);
    EXPECT_EQ(span->state, "");
    EXPECT_NE(span->trace, TraceId{});
  }
  const Tracer some(0.25, clock);
  int sampled = 0;
  std::set<TraceId> traces;
  constexpr int asked = 20'000;
  for (int i = 0; i < asked; ++i) {
    const auto span = some.begin("check", {}, clock.now());
    if (span == nullptr) continue;
    ++sampled;
    traces.insert(span->trace);
  }
  // Ten standard deviations.
  EXPECT_NEAR(sampled, asked / 4.0, 10 * std::sqrt(asked * 0.25 * 0.75));
  EXPECT_EQ(traces.size(), static_cast<std::size_t>(sampled));
}

TEST(Tracer, TellsHowLongItTook) {
  front::ManualClock clock;
  Tracer tracer(1, clock);
  auto span = tracer.begin("check", {}, clock.now());
  clock.time.steady += 5'000;
  clock.time.utc -= 3'600'000'000'000;  // the system's clock is set back
  ASSERT_TRUE(tracer.end(std::move(span)));
  const std::vector<Span> spans = tracer.take();
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].begun, 1'767'225'600'000'000'000);
  EXPECT_EQ(spans[0].ended, spans[0].begun + 5'000);
}

TEST(Tracer, KeepsNoMoreThanItsBoundAndWakesWhoTakes) {
  const front::ManualClock clock;
  Tracer tracer(1, clock);
  int woken = 0;
  tracer.on_spans([&] { ++woken; });
  const auto add = [&](const std::string& name) { return tracer.end(tracer.begin(name, {}, clock.now())); };
  for (std::size_t i = 0; i < Tracer::kMostWaiting; ++i) ASSERT_TRUE(add(std::to_string(i)));
  EXPECT_EQ(woken, 2);  // by the first, and by the one that filled a batch
  EXPECT_FALSE(add("more"));
  EXPECT_EQ(tracer.waiting(), Tracer::kMostWaiting);
  std::size_t next = 0;
  while (tracer.waiting() != 0) {
    const std::vector<Span> spans = tracer.take();
    EXPECT_EQ(spans.size(), Tracer::kBatch);
    for (const Span& span : spans) EXPECT_EQ(span.name, std::to_string(next++));
  }
  EXPECT_EQ(next, Tracer::kMostWaiting);
  EXPECT_TRUE(add("again"));
  EXPECT_EQ(woken, 3);
}

TEST(Tracer, ThreadsEndSpansWhileOneTakesThem) {
  const front::ManualClock clock;
  Tracer tracer(1, clock);
  std::atomic<int> dropped{0};
  constexpr int each = 5'000;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < each; ++n) {
        if (!tracer.end(tracer.begin("check", {}, clock.now()))) ++dropped;
      }
    });
  }
  std::size_t taken = 0;
  for (std::thread& thread : threads) {
    taken += tracer.take().size();
    thread.join();
  }
  while (tracer.waiting() != 0) taken += tracer.take().size();
  EXPECT_EQ(taken + static_cast<std::size_t>(dropped), 3U * each);
}

}  // namespace
}  // namespace sluice::tracing
