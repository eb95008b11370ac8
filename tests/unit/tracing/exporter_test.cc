// To a real HTTP server.
#include "tracing/exporter.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "tests/integration/support/collector.h"
#include "tests/integration/support/process.h"

namespace sluice::tracing {
namespace {

using namespace std::chrono_literals;
using metrics::Counter;
using test::Collector;
using test::CollectorAnswer;

class ExporterTest : public testing::Test {
 protected:
  static constexpr ExportTimes kQuick{
      .gather = 10ms, .timeout = test::kPatience, .pause = 10ms, .longest_pause = 20ms, .farewell = test::kPatience};

  void start(const std::string& url, ExportTimes times = kQuick) {
    exporter_ = std::make_unique<Exporter>(tracer_, *http_client::parse_upstream(url), nullptr,
                                           Sender{.service = "sluice", .version = "1", .instance = "i"}, shard_, times);
  }
  void add(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!tracer_.end(tracer_.begin(std::to_string(added_++), {}, clock_.now()))) ++dropped_;
    }
  }
  /// Is it so, now or in time?
  template <typename Is>
  static bool comes(Is is) {
    const auto end = std::chrono::steady_clock::now() + test::kPatience;
    while (!is() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(5ms);
    return is();
  }
  [[nodiscard]] std::uint64_t counted(Counter counter) const { return shard_.value(counter); }

  SystemClock clock_;
  Tracer tracer_{1, clock_};
  metrics::Registry registry_;
  metrics::Shard& shard_ = registry_.add_shard();
  std::unique_ptr<Exporter> exporter_;
  std::size_t added_ = 0;
  std::size_t dropped_ = 0;
};

TEST_F(ExporterTest, SpansGoInBatchesAndInOrder) {
  const Collector collector;
  add(1'100);
  start(collector.url() + "/otlp");
  add(100);
  const auto spans = collector.wait_for(1'200);
  ASSERT_EQ(spans.size(), 1'200U);
  for (std::size_t i = 0; i < spans.size(); ++i) EXPECT_EQ(spans[i].name, std::to_string(i));
  for (const test::SeenExport& one : collector.exports()) {
    EXPECT_EQ(one.head, "POST /otlp/v1/traces application/x-protobuf");
    EXPECT_LE(one.spans.size(), Tracer::kBatch);
    EXPECT_EQ(one.resource.at("service.name"), "sluice");
  }
  EXPECT_TRUE(comes([&] { return counted(Counter::spans_exported) == 1'200; }));
  EXPECT_EQ(counted(Counter::span_export_failures), 0U);
}

TEST_F(ExporterTest, WhatFailsIsTriedAgain) {
  const Collector collector([](std::size_t before) {
    constexpr std::array<unsigned, 4> statuses{503, 429, 502, 504};
    return CollectorAnswer{.status = before < statuses.size() ? statuses[before] : 200};
  });
  start(collector.url());
  add(3);
  EXPECT_EQ(collector.wait_for(3).size(), 3U);
  EXPECT_TRUE(comes([&] { return counted(Counter::spans_exported) == 3; }));
  EXPECT_EQ(counted(Counter::span_export_failures), 4U);
  EXPECT_EQ(counted(Counter::spans_refused), 0U);
}

TEST_F(ExporterTest, WhatIsRefusedIsDroppedAndWhatFollowsGoes) {
  const Collector collector([](std::size_t before) { return CollectorAnswer{.status = before == 0 ? 400U : 200U}; });
  start(collector.url());
  add(2);
  EXPECT_TRUE(comes([&] { return counted(Counter::spans_refused) == 2; }));
  add(1);
  const auto spans = collector.wait_for(1);
  ASSERT_EQ(spans.size(), 1U);
  EXPECT_EQ(spans[0].name, "2");
}

TEST_F(ExporterTest, WhatIsRefusedInPartIsCounted) {
  const Collector collector([](std::size_t) { return CollectorAnswer{.body = std::string("\x0a\x02\x08\x02", 4)}; });
  start(collector.url());
  add(5);
  EXPECT_TRUE(comes([&] { return counted(Counter::spans_exported) == 3; }));
  EXPECT_EQ(counted(Counter::spans_refused), 2U);
}

TEST_F(ExporterTest, ADeadCollectorCostsABoundedNumberOfSpans) {
  std::string nobody;
  {
    const Collector gone;
    nobody = gone.url();
  }
  ExportTimes hasty = kQuick;
  hasty.gather = 1ns;  // the timer and a full batch come together
  start(nobody, hasty);
  add(Tracer::kBatch);
  EXPECT_TRUE(comes([&] { return counted(Counter::span_export_failures) >= 2; }));
  add(2 * Tracer::kMostWaiting);
  EXPECT_GE(dropped_, Tracer::kMostWaiting);
  EXPECT_LE(tracer_.waiting(), Tracer::kMostWaiting);
  EXPECT_GE(tracer_.waiting() + dropped_ + Tracer::kBatch, added_);  // but for those, one batch is on its way
  EXPECT_EQ(counted(Counter::spans_exported), 0U);
  // It ends all the same, and soon.
  const auto begun = std::chrono::steady_clock::now();
  exporter_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, test::kPatience);
}

TEST_F(ExporterTest, WhatWaitsAtTheEndIsSent) {
  const Collector collector;
  ExportTimes slow = kQuick;
  slow.gather = std::chrono::hours(1);
  start(collector.url(), slow);
  add(700);
  exporter_.reset();
  EXPECT_EQ(collector.spans().size(), 700U);
  EXPECT_EQ(counted(Counter::spans_exported), 700U);
}

}  // namespace
}  // namespace sluice::tracing
