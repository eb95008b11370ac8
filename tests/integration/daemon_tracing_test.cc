// Spans of decisions, from the real binary to a real HTTP server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/integration/support/collector.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/verbs.h"

namespace {

using sluice::test::ask;
using sluice::test::Collector;
using sluice::test::CollectorAnswer;
using sluice::test::Daemon;
using sluice::test::HttpClient;
using sluice::test::run_sluice;
using sluice::test::SeenSpan;
using testing::HasSubstr;
using testing::StartsWith;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";
constexpr const char* kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr const char* kCaller = "00f067aa0ba902b7";

std::string check(const std::string& flags, const std::string& more = {}) {
  const std::string body = R"({"domain":"shop","descriptors":[{"user":"42"}],"cost":3})";
  return "POST /v1/check HTTP/1.1\r\nHost: x\r\nTraceparent: 00-" + std::string(kTrace) + '-' + kCaller + '-' + flags +
         "\r\n" + more + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(DaemonTracing, ADecisionIsASpanOfItsCallersTrace) {
  const Collector collector;
  Daemon daemon(kArticle, {"--tracing.endpoint", collector.url(), "--tracing.sample_ratio", "0", "--log.denial_keys",
                           "plain", "--tracing.service", "limits"});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  client.send(check("00"));  // the caller does not sample
  EXPECT_EQ(client.receive().status, 200);
  client.send(check("01", "TraceState: rojo=1\r\ntracestate: congo=t61rcWkgMzE\r\n"));
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(ask(client, "check", "user", "42").status, 200);  // no caller's word, and none are sampled here

  const std::vector<SeenSpan> spans = collector.wait_for(1);
  ASSERT_EQ(spans.size(), 1U);
  const SeenSpan& span = spans[0];
  EXPECT_EQ(span.trace, kTrace);
  EXPECT_EQ(span.parent, kCaller);
  EXPECT_EQ(span.state, "rojo=1,congo=t61rcWkgMzE");
  EXPECT_EQ(span.name, "POST /v1/check");
  EXPECT_EQ(span.kind, 2U);
  EXPECT_GE(span.ended, span.begun);
  EXPECT_EQ(span.status, 0U);
  EXPECT_EQ(span.attributes.at("http.route"), "/v1/check");
  EXPECT_EQ(span.attributes.at("http.response.status_code"), "200");
  EXPECT_EQ(span.attributes.at("sluice.domain"), "shop");
  EXPECT_EQ(span.attributes.at("sluice.verdict"), "allowed");
  EXPECT_EQ(span.attributes.at("sluice.limit"), "ArticleCreate");
  EXPECT_EQ(span.attributes.at("sluice.store"), "memory");
  EXPECT_EQ(span.attributes.at("sluice.cost"), "3");
  EXPECT_THAT(span.attributes.at("sluice.key"), StartsWith("42"));
  EXPECT_EQ(collector.exports()[0].resource.at("service.name"), "limits");
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 0);
  EXPECT_EQ(collector.spans().size(), 1U);
}

TEST(DaemonTracing, EveryDecisionCanHaveASpanAndWhatIsLeftGoesAtTheEnd) {
  const Collector collector;
  Daemon daemon(kArticle, {"--tracing.endpoint", collector.url(), "--tracing.sample_ratio", "1"});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  constexpr std::size_t asked = 700;
  for (std::size_t i = 0; i < asked; ++i) (void)ask(client, "check", "user", "42");
  EXPECT_EQ(client.get("/healthcheck").status, 200);
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 0);
  EXPECT_EQ(collector.spans().size(), asked);
  EXPECT_THAT(collector.spans()[0].attributes.at("sluice.key"), StartsWith("#"));
}

TEST(DaemonTracing, ACollectorThatIsDownHurtsNobody) {
  std::string nobody;
  {
    const Collector gone;
    nobody = gone.url();
  }
  Daemon daemon(kArticle, {"--tracing.endpoint", nobody, "--tracing.sample_ratio", "1"});
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  for (int i = 0; i < 6'000; ++i) ASSERT_NE(ask(client, "check", "user", "42").status, 0);
  EXPECT_TRUE(daemon.process().has_printed("the collector of tracing.endpoint takes no spans"));
  const std::string metrics = HttpClient(daemon.admin()).get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("sluice_trace_spans_total{result=\"exported\"} 0\n"));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("sluice_trace_spans_total{result=\"dropped\"} 0\n")));
  EXPECT_THAT(metrics, testing::Not(HasSubstr("sluice_trace_export_failures_total 0\n")));
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 0);
}

TEST(DaemonTracing, WhatIsWrongIsToldAtTheStart) {
  const auto start = [](const std::vector<std::string>& flags) {
    std::vector<std::string> words{"serve", "--policy", kArticle, "--listen.http", "127.0.0.1:0"};
    words.insert(words.end(), flags.begin(), flags.end());
    return run_sluice(words).output;
  };
  EXPECT_THAT(start({"--tracing.endpoint", "127.0.0.1:4318"}), HasSubstr("expected a URL such as http://"));
  EXPECT_THAT(start({"--tracing.sample_ratio", "1.5"}), HasSubstr("expected a number of 0 to 1, found '1.5'"));
  EXPECT_THAT(start({"--tracing.ca", kArticle}), HasSubstr("tracing.ca: does nothing without tracing.endpoint"));
  EXPECT_THAT(start({"--tracing.endpoint", "http://127.0.0.1:4318", "--tracing.ca", kArticle}),
              HasSubstr("tracing.ca: only for a tracing.endpoint of https://"));
  EXPECT_THAT(start({"--tracing.endpoint", "https://127.0.0.1:4318", "--tracing.ca", kArticle}),
              HasSubstr("tracing.ca: " + kArticle + ": cannot use it as the trusted authorities' certificates"));
}

}  // namespace
