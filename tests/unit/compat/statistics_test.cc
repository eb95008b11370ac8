// Statistics by the names of envoyproxy/ratelimit: what is counted, and how it is written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compat/mogrify.h"
#include "compat/prometheus_page.h"
#include "compat/statsd_text.h"
#include "metrics/limit_stats.h"

namespace sluice::compat {
namespace {

using metrics::LimitHits;
using metrics::LimitStats;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Of a limit of 10 with the ratio 0.8.
LimitHits split(std::uint64_t cost, std::uint64_t counted, bool shadow = false) {
  return LimitStats::split({.cost = cost, .counted = counted, .limit = 10, .over = counted > 10, .shadow = shadow},
                           0.8F);
}

TEST(LimitStats, AHitIsWithinNearOrOver) {
  EXPECT_EQ(split(1, 8).within, 1U);
  EXPECT_EQ(split(1, 8).near, 0U);
  EXPECT_EQ(split(1, 9).near, 1U);
  EXPECT_EQ(split(1, 9).within, 1U);
  EXPECT_EQ(split(1, 11).over, 1U);
  EXPECT_EQ(split(1, 11).near, 0U);
  EXPECT_EQ(split(1, 11).within, 0U);
}

TEST(LimitStats, ALargeHitIsSpread) {
  EXPECT_EQ(split(9, 9).near, 1U);
  EXPECT_EQ(split(9, 9).within, 9U);
  EXPECT_EQ(split(15, 15).over, 5U);
  EXPECT_EQ(split(15, 15).near, 2U);
  EXPECT_EQ(split(15, 15, true).shadow, 5U);
  EXPECT_EQ(split(3, 30).over, 3U);
}

TEST(LimitStats, NamesAreBounded) {
  LimitStats stats(0.8F);
  for (std::size_t i = 0; i < LimitStats::kMostNames + 5; ++i) {
    stats.count("d.k_" + std::to_string(i), {.cost = 1, .counted = 1, .limit = 10});
  }
  LimitStats::Sums sums;
  stats.add_to(sums);
  EXPECT_EQ(sums.limits.size(), LimitStats::kMostNames + 1);
  EXPECT_EQ(sums.limits["other"].total, 5U);
}

Statistics some_statistics() {
  Statistics statistics;
  statistics.counters = {{"ratelimit.service.rate_limit.d.k1_v.k2.k3.total_hits", 4},
                         {"ratelimit.service.rate_limit.d.k1_v.k2.k9.total_hits", 5},
                         {"ratelimit.service.rate_limit.d.k1.over_limit", 2},
                         {"ratelimit.service.call.should_rate_limit.service_error", 3},
                         {"ratelimit.service.config_load_success", 1},
                         {"ratelimit_server.ShouldRateLimit.total_requests", 7}};
  statistics.service.calls = 2;
  statistics.service.milliseconds = 7;
  statistics.service.took[0] = 1;  // 0 ms
  statistics.service.took[4] = 1;  // 6 … 10 ms
  return statistics;
}

TEST(Prometheus, NamesAreThoseOfTheDefaultMapping) {
  const std::string text = to_prometheus(some_statistics(), {});
  EXPECT_THAT(text, HasSubstr("ratelimit_service_rate_limit_total_hits{domain=\"d\",key1=\"k1_v\",key2=\"k2\"} 9\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_rate_limit_over_limit{domain=\"d\",key1=\"k1\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_should_rate_limit_error{err_type=\"service_error\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_config_load_success 1\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("response_time_seconds_bucket{grpc_method=\"ShouldRateLimit\",le=\"0.005\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("response_time_seconds_bucket{grpc_method=\"ShouldRateLimit\",le=\"0.01\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("response_time_seconds_sum{grpc_method=\"ShouldRateLimit\"} 0.007\n"));
  config::EnvoyOptions options;
  options.prometheus_milliseconds = true;
  EXPECT_THAT(to_prometheus(some_statistics(), options),
              HasSubstr("response_time_seconds_sum{grpc_method=\"ShouldRateLimit\"} 7\n"));
}

TEST(Prometheus, WhatTheMappingDoesNotNameIsThere) {
  Statistics statistics;
  statistics.counters = {{"ratelimit.service.rate_limit.a.b-c\u00e9.domain_not_found", 2},
                         {"ratelimit_server.ShouldRateLimit.total_requests", 7}};
  const std::string text = to_prometheus(statistics, {});
  EXPECT_THAT(text, HasSubstr("# TYPE ratelimit_service_rate_limit_a_b_c__domain_not_found counter\n"
                              "ratelimit_service_rate_limit_a_b_c__domain_not_found 2\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} 7\n"));
}

TEST(Prometheus, ExtraTagsAreLabels) {
  config::EnvoyOptions options;
  options.extra_tags = {{"zone", "a\"b"}, {"domain", "x"}, {"my-app", "y"}};
  const std::string text = to_prometheus(some_statistics(), options);
  const std::string tags = R"(exported_domain="x",my_app="y",zone="a\"b"})";
  EXPECT_THAT(text, HasSubstr("ratelimit_service_rate_limit_over_limit{domain=\"d\",key1=\"k1\"," + tags + " 2\n"));
  EXPECT_THAT(text, HasSubstr("ratelimit_service_config_load_success{" + tags + " 1\n"));
  EXPECT_THAT(text, HasSubstr("response_time_seconds_count{grpc_method=\"ShouldRateLimit\"," + tags + " 2\n"));
}

TEST(StatsdText, CountersGoAsDifferences) {
  config::EnvoyOptions options;
  options.extra_tags = {{"zone", "a"}, {"app", "b"}};
  StatsdText text(options);
  Statistics statistics;
  statistics.counters = {{"ratelimit.service.config_load_success", 1}, {"x", 0}};
  EXPECT_THAT(text.lines(statistics), ElementsAre("ratelimit.service.config_load_success.__app=b.__zone=a:1|c\n"));
  statistics.counters[1].value = 3;
  EXPECT_EQ(text.lines(statistics).size(), 2U) << "what has not gone is still to go";
  text.sent();
  EXPECT_TRUE(text.lines(statistics).empty());
}

TEST(StatsdText, TimesGoAsTheirMean) {
  StatsdText text(config::EnvoyOptions{});
  Statistics statistics;
  statistics.service.calls = 4;
  statistics.service.milliseconds = 10;
  EXPECT_THAT(text.lines(statistics),
              ElementsAre("ratelimit_server.ShouldRateLimit.response_time:2.500000|ms|@0.250000000\n"));
}

TEST(StatsdText, DogstatsdHasTags) {
  config::EnvoyOptions options;
  options.statistics = config::EnvoyOptions::Statistics::dogstatsd;
  options.extra_tags = {{"app", "b"}};
  options.mogrifiers = {{.pattern = R"(^ratelimit\.service\.rate_limit\.(.*)\.(.*)\.total_hits$)",
                         .name = "ratelimit.total_hits",
                         .tags = {{"domain", "$1"}, {"key", "$2"}}}};
  StatsdText text(options);
  Statistics statistics;
  statistics.counters = {{"ratelimit.service.rate_limit.d.k1.total_hits", 2}, {"other", 1}};
  EXPECT_THAT(text.lines(statistics),
              ElementsAre("ratelimit.total_hits:2|c|#app:b,domain:d,key:k1\n", "other:1|c|#app:b\n"));
}

TEST(Mogrify, AGroupThatIsNotThereStays) {
  const Mogrify mogrify(std::vector<config::Mogrifier>{{.pattern = "a(b)", .name = "$0-$1-$2-$", .tags = {}}});
  EXPECT_EQ(mogrify("xaby").name, "ab-b-$2-$");
  EXPECT_EQ(mogrify("none").name, "none");
}

}  // namespace
}  // namespace sluice::compat
