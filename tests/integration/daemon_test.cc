// The real binary on the memory store: from its start to its end, over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"
#include "tests/integration/support/sanitizers.h"

namespace {

using namespace std::chrono_literals;
using sluice::test::Daemon;
using sluice::test::Ended;
using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::post_request;
using sluice::test::run_sluice;
using sluice::test::TempFolder;
using testing::HasSubstr;

const std::string kArticle = SLUICE_SOURCE_DIR "/examples/policies/article.yaml";
const std::string kUser42 = R"({"domain":"shop","descriptors":[{"user":"42"}]})";

// One a day: nothing comes back while a test runs.
std::string policy_of(int requests) {
  return "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { name: Daily, algorithm: token_bucket, period: "
         "366d, "
         "requests_per_unit: " +
         std::to_string(requests) + " }\n";
}

TEST(Daemon, ArticleCreateAllowsThirtyAtOnceAndDeniesTheNext) {
  Daemon daemon(kArticle);
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  HttpClient client(daemon.http());
  // In one piece, so that all are judged at one instant however slow the machine is.
  std::string requests;
  for (int i = 0; i < 31; ++i) requests += post_request("/v1/check", kUser42);
  client.send(requests);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(client.receive().status, 200) << i;
  const HttpAnswer denied = client.receive();
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.fields.at("retry-after"), "1");
  EXPECT_EQ(denied.fields.at("x-ratelimit-limit"), "30");
  EXPECT_EQ(denied.fields.at("x-ratelimit-remaining"), "0");
  EXPECT_THAT(denied.body, HasSubstr("ArticleCreate"));

  HttpClient admin(daemon.admin());
  const HttpAnswer metrics = admin.get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("ArticleCreate"));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_http_requests_total 31"));
  EXPECT_THAT(metrics.body, HasSubstr("sluice_memory_keys 1"));
}

TEST(Daemon, SaysThatItsCountersAreInMemory) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>(), std::vector<std::string>{"--store.redis.url", ""}}) {
    Daemon daemon(kArticle, flags);
    ASSERT_TRUE(daemon.ready()) << daemon.process().output();
    EXPECT_THAT(daemon.process().output(), HasSubstr(" info counters in memory\n"));
  }
}

TEST(Daemon, AnswersHealthOnBothListeners) {
  Daemon daemon(kArticle);
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").status, 200);
  EXPECT_EQ(HttpClient(daemon.admin()).get("/healthcheck").status, 200);
}

TEST(Daemon, OneLimitHoldsOverAllThreads) {
  const TempFolder folder;
  Daemon daemon(folder.write("p.yaml", policy_of(30)), {"--threads", "4"});
  ASSERT_TRUE(daemon.ready());
  int allowed = 0;
  for (int i = 0; i < 31; ++i) {
    if (HttpClient(daemon.http()).post("/v1/check", kUser42).status == 200) ++allowed;
  }
  EXPECT_EQ(allowed, 30);
}

TEST(Daemon, StopFinishesWhatIsInFlight) {
  Daemon daemon(kArticle, {"--threads", "1", "--drain_timeout", "1h"});
  ASSERT_TRUE(daemon.ready());
  HttpClient idle(daemon.http());
  EXPECT_EQ(idle.get("/healthcheck").status, 200);
  HttpClient busy(daemon.http());
  const std::string request = post_request("/v1/check", kUser42);
  EXPECT_EQ(busy.get("/healthcheck").status, 200);  // so that it is being served
  busy.send(request.substr(0, request.size() - 1));
  // Answered by the same thread, so what was sent before has been read by now.
  EXPECT_EQ(HttpClient(daemon.admin()).get("/healthcheck").status, 200);
  daemon.process().signal(SIGTERM);
  ASSERT_TRUE(daemon.process().has_printed("stopping"));
  EXPECT_TRUE(idle.ended());
  EXPECT_FALSE(HttpClient(daemon.http()).connected());
  busy.send(request.substr(request.size() - 1));
  EXPECT_EQ(busy.receive().status, 200);
  EXPECT_TRUE(busy.ended());
  EXPECT_EQ(daemon.process().wait(), 0);
}

TEST(Daemon, StopClosesWhatDoesNotEndInTime) {
  Daemon daemon(kArticle, {"--drain_timeout", "50ms"});
  ASSERT_TRUE(daemon.ready());
  HttpClient slow(daemon.http());
  EXPECT_EQ(slow.get("/healthcheck").status, 200);
  slow.send("POST /v1/check HTTP/1.1\r\nHost: test\r\n");
  daemon.process().signal(SIGINT);
  EXPECT_EQ(daemon.process().wait(), 0);
}

TEST(Daemon, ASecondSignalEndsItAtOnce) {
  Daemon daemon(kArticle, {"--threads", "1", "--drain_timeout", "1h"});
  ASSERT_TRUE(daemon.ready());
  HttpClient slow(daemon.http());
  EXPECT_EQ(slow.get("/healthcheck").status, 200);
  slow.send(post_request("/v1/check", kUser42).substr(0, 80));
  // Answered by the same thread, so what was sent before has been read by now.
  EXPECT_EQ(HttpClient(daemon.admin()).get("/healthcheck").status, 200);
  daemon.process().signal(SIGTERM);
  ASSERT_TRUE(daemon.process().has_printed("stopping"));
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 1);
}

TEST(Daemon, HangUpLoadsThePolicyAgainAndKeepsTheState) {
  const TempFolder folder;
  const std::string policy = folder.write("p.yaml", policy_of(2));
  Daemon daemon(policy, {"--policy_watch", "false"});
  ASSERT_TRUE(daemon.ready());
  HttpClient client(daemon.http());
  EXPECT_EQ(client.post("/v1/check", kUser42).status, 200);
  EXPECT_EQ(client.post("/v1/check", kUser42).status, 200);
  EXPECT_EQ(client.post("/v1/check", kUser42).status, 429);

  // A full bucket of 5 whose 2 spent tokens stay spent is no fresh one.
  folder.write("p.yaml", policy_of(5));
  daemon.process().signal(SIGHUP);
  ASSERT_TRUE(daemon.process().has_printed("policy loaded again"));
  EXPECT_EQ(
      client.post("/v1/check", R"({"domain":"shop","descriptors":[{"user":"43"}]})").fields.at("x-ratelimit-limit"),
      "5");
  EXPECT_EQ(client.post("/v1/check", kUser42).status, 429);

  folder.write("p.yaml", "domain: shop\ndescriptors:\n  - key: user\n    rate_limits: {}\n");
  daemon.process().signal(SIGHUP);
  ASSERT_TRUE(daemon.process().has_printed("the old one stays in force"));
  EXPECT_TRUE(daemon.process().has_printed(policy + ":4:5: error: unknown key \"rate_limits\""));
  const std::string metrics = client.get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("sluice_policy_reloads_total{result=\"ok\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("sluice_policy_reloads_total{result=\"refused\"} 1\n"));
  EXPECT_EQ(client.post("/v1/check", kUser42).status, 429);
}

TEST(Daemon, RefusesConnectionsBeyondTheMost) {
  Daemon daemon(kArticle, {"--max_connections", "2"});
  ASSERT_TRUE(daemon.ready());
  auto first = std::make_unique<HttpClient>(daemon.http());
  HttpClient second(daemon.http());
  EXPECT_EQ(first->get("/healthcheck").status, 200);
  EXPECT_EQ(second.get("/healthcheck").status, 200);
  HttpClient third(daemon.http());
  EXPECT_EQ(third.receive().status, 503);
  EXPECT_TRUE(third.ended());
  EXPECT_TRUE(daemon.process().has_printed("max_connections is reached"));
  EXPECT_THAT(second.get("/metrics").body, HasSubstr("sluice_connections_refused_total 1"));
  first.reset();
  // The place is free as soon as the daemon has seen the end.
  const auto deadline = std::chrono::steady_clock::now() + sluice::test::kPatience;
  int status = 0;
  while (status != 200 && std::chrono::steady_clock::now() < deadline) {
    status = HttpClient(daemon.http()).get("/healthcheck").status;
  }
  EXPECT_EQ(status, 200);
}

TEST(Daemon, LivesOnWhenDescriptorsRunOut) {
  if (sluice::test::kAddressSanitizer) GTEST_SKIP() << "the sanitizers open descriptors themselves";
  Daemon daemon(kArticle, {"--threads", "1"}, [] {
    const rlimit limit{.rlim_cur = 40, .rlim_max = 40};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  });
  ASSERT_TRUE(daemon.ready()) << daemon.process().output();
  std::vector<std::unique_ptr<HttpClient>> clients;
  clients.reserve(60);
  for (int i = 0; i < 60; ++i) clients.push_back(std::make_unique<HttpClient>(daemon.http()));
  ASSERT_TRUE(daemon.process().has_printed("cannot accept connections"));
  EXPECT_EQ(clients.front()->get("/healthcheck").status, 200);
  HttpClient& last = *clients.back();
  last.send("GET /healthcheck HTTP/1.1\r\nHost: test\r\n\r\n");
  clients.erase(clients.begin(), clients.begin() + 40);
  EXPECT_EQ(last.receive().status, 200);
}

TEST(Daemon, SleepsWhenNothingIsAsked) {
  if (sluice::test::kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer has a thread of its own that wakes";
  Daemon daemon(kArticle);
  ASSERT_TRUE(daemon.ready());
  EXPECT_EQ(HttpClient(daemon.http()).get("/healthcheck").status, 200);
  const auto switches = [&] {
    std::string all;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(daemon.process().id()) + "/task")) {
      std::ifstream in(task.path() / "status");
      for (std::string line; std::getline(in, line);) {
        if (line.starts_with("voluntary_ctxt_switches")) all += line + "\n";
      }
    }
    return all;
  };
  // What the request above set in motion may take a moment; after that nothing wakes any more.
  std::string before = switches();
  bool quiet = false;
  for (int i = 0; i < 20 && !quiet; ++i) {
    std::this_thread::sleep_for(300ms);
    const std::string after = switches();
    quiet = after == before;
    before = after;
  }
  EXPECT_TRUE(quiet) << before;
}

TEST(DaemonStart, APortInUseIsOneLine) {
  Daemon first(kArticle);
  ASSERT_TRUE(first.ready());
  const Ended second = run_sluice(
      {"serve", "--policy", kArticle, "--listen.http", first.http(), "--listen.grpc", "off", "--listen.admin", "off"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output, "sluice: cannot listen on " + first.http() + " (listen.http): Address already in use\n");
}

struct Refusal {
  std::string name;
  std::vector<std::string> arguments;
  std::string output;

  // What a failing row is shown as.
  friend std::ostream& operator<<(std::ostream& out, const Refusal& row) { return out << row.name; }
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, IsOneClearLineAndExitCodeOne) {
  const Ended ended = run_sluice(GetParam().arguments);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.output, GetParam().output + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    DaemonStart, Refused,
    testing::Values(
        Refusal{"UnknownFlag",
                {"serve", "--policy", kArticle, "--listn.http", "127.0.0.1:0"},
                "sluice serve: unknown flag --listn.http; did you mean --listen.http?"},
        Refusal{"UnknownCommand", {"sevre"}, "sluice: unknown command 'sevre'; did you mean 'serve'?"},
        Refusal{"NoPolicy", {"serve"}, "sluice: no policy: name a file or directory with --policy"},
        Refusal{"MissingPolicy",
                {"serve", "--policy", "/nonexistent/p.yaml"},
                "sluice: /nonexistent/p.yaml: error: no such file or directory"},
        Refusal{"MissingConfig",
                {"serve", "--config", "/nonexistent.yaml"},
                "sluice: /nonexistent.yaml: cannot read the server file: No such file or directory"},
        Refusal{
            "ConfigIsADirectory", {"serve", "--config", "/"}, "sluice: /: cannot read the server file: Is a directory"},
        Refusal{"BadAddress",
                {"serve", "--policy", kArticle, "--listen.http", "8080"},
                "sluice: --listen.http: expected HOST:PORT, [IPV6]:PORT, :PORT, unix:PATH or off, found '8080'"},
        Refusal{"ForeignAddress",
                {"serve", "--policy", kArticle, "--listen.http", "192.0.2.1:0", "--listen.grpc", "off",
                 "--listen.admin", "off"},
                "sluice: cannot listen on 192.0.2.1:0 (listen.http): Cannot assign requested address"},
        Refusal{
            "NothingToServe",
            {"serve", "--policy", kArticle, "--listen.http", "off", "--listen.grpc", "off", "--listen.admin", "off"},
            "sluice: every listener is off: nothing to serve"},
        Refusal{"FlagTwice",
                {"serve", "--threads", "1", "--threads", "2"},
                "sluice serve: --threads is given more than once"},
        Refusal{"FlagWithoutValue", {"serve", "--threads"}, "sluice serve: --threads needs a value"},
        Refusal{"BadRedisUrl",
                {"serve", "--policy", kArticle, "--store.redis.url", "redis://:secret@h:99999"},
                "sluice: store.redis: Redis URL: the port must be 1 … 65535"}),
    [](const testing::TestParamInfo<Refusal>& row) { return row.param.name; });

TEST(DaemonStart, ABadPolicyIsToldLineByLine) {
  const TempFolder folder;
  const std::string policy = folder.write(
      "p.yaml", "domain: shop\ndescriptors:\n  - key: user\n    rate_limit: { unit: second, requests_per_units: 1 }\n");
  const Ended ended = run_sluice({"serve", "--policy", policy});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr("sluice: " + policy +
                                      ":4:33: error: unknown key \"requests_per_units\" in `rate_limit`; did you mean "
                                      "`requests_per_unit`?\n"));
}

TEST(DaemonStart, AMistakeInTheServerFileNamesItsPlace) {
  const TempFolder folder;
  const std::string config = folder.write("sluice.yaml", "listen:\n  htp: 127.0.0.1:0\n");
  const Ended ended = run_sluice({"serve", "--config", config});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.output, "sluice: " + config + ":2:3: unknown setting 'listen.htp'; did you mean 'listen.http'?\n");
}

TEST(DaemonStart, FileEnvironmentAndFlagsWorkTogether) {
  const TempFolder folder;
  folder.write("p.yaml", policy_of(7));
  const std::string config = folder.write("sluice.yaml",
                                          "listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0, admin: off }\n"
                                          "policy: p.yaml\n"
                                          "http: { headers: { x_rate_limit: false } }\n");
  sluice::test::Process daemon({sluice::test::sluice_binary(), "serve", "--config", config, "--listen.grpc", "off"});
  const std::string http = daemon.line_after("listening http ").value_or("");
  ASSERT_NE(http, "") << daemon.output();
  const HttpAnswer answer = HttpClient(http).post("/v1/check", kUser42);
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.fields.contains("x-ratelimit-limit"));
  EXPECT_TRUE(answer.fields.contains("ratelimit"));
  EXPECT_THAT(daemon.output(), testing::Not(HasSubstr("listening grpc")));
}

TEST(Cli, HelpAndVersion) {
  const Ended help = run_sluice({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const std::string_view word : {"serve", "check", "lint", "config", "Examples:"}) {
    EXPECT_THAT(help.output, HasSubstr(word));
  }
  EXPECT_EQ(run_sluice({}).exit_code, 1);
  EXPECT_EQ(run_sluice({"--version"}).exit_code, 0);
  for (const std::string command : {"serve", "check", "lint", "config"}) {
    const Ended ended = run_sluice({command, "--help"});
    EXPECT_EQ(ended.exit_code, 0) << command;
    EXPECT_THAT(ended.output, HasSubstr("Usage: sluice " + command)) << command;
  }
}

TEST(Cli, CheckTellsItsDecisionByExitCode) {
  EXPECT_EQ(run_sluice({"check", "--policy", kArticle, "user=42"}).exit_code, 0);
  EXPECT_EQ(run_sluice({"check", "--policy", kArticle, "--cost", "31", "user=42"}).exit_code, 2);
  EXPECT_EQ(run_sluice({"check", "--policy", "/nonexistent.yaml", "user=42"}).exit_code, 1);
  EXPECT_EQ(run_sluice({"check", "--policy", kArticle}).exit_code, 1);
  EXPECT_EQ(run_sluice({"check", "user=42"}).exit_code, 1);
  for (const std::string odd : {"x", "0x1", "010x", "1_000", "-1", "+1", "1.0", ""}) {
    const Ended refused = run_sluice({"check", "--policy", kArticle, "--cost=" + odd, "user=42"});
    EXPECT_EQ(refused.exit_code, 1) << odd;
    EXPECT_THAT(refused.output, HasSubstr("--cost")) << odd;
  }
  EXPECT_EQ(run_sluice({"check", "--policy", kArticle, "--cost", "030", "user=42"}).exit_code, 0);
  const Ended json = run_sluice({"check", "--policy", kArticle, "--json", "user=42"});
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_TRUE(json.output.starts_with("{")) << json.output;
  EXPECT_THAT(json.output, HasSubstr("ArticleCreate"));
}

TEST(Cli, LintTellsByExitCode) {
  const TempFolder folder;
  const std::string bad = folder.write("bad.yaml", "domain: shop\nfoo: 1\n");
  EXPECT_EQ(run_sluice({"lint", SLUICE_SOURCE_DIR "/examples/policies"}).exit_code, 0);
  const Ended ended = run_sluice({"lint", bad});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.output, HasSubstr(bad + ":2:1: error: "));
  EXPECT_EQ(run_sluice({"lint"}).exit_code, 1);
  EXPECT_EQ(run_sluice({"lint", "/nonexistent.yaml"}).exit_code, 1);
}

TEST(Cli, ConfigShowsSettingsWithTheirSourceAndNoPassword) {
  const Ended ended = run_sluice({"config", "--store.redis.url", "redis://:secret@127.0.0.1:1", "--policy", "a"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_THAT(ended.output, HasSubstr("store.redis.url: redis://:***@127.0.0.1:1  # --store.redis.url\n"));
  EXPECT_THAT(ended.output, HasSubstr("policy: [a]  # --policy\n"));
  EXPECT_THAT(ended.output, HasSubstr("listen.http: 127.0.0.1:8080  # default\n"));
  EXPECT_THAT(ended.output, testing::Not(HasSubstr("secret")));
  for (const std::string url : {"redis://127.0.0.1:1?password=secret", "redis:u:secret@h", "secret://u:secret@h"}) {
    const Ended refused = run_sluice({"config", "--store.redis.url", url});
    EXPECT_EQ(refused.exit_code, 1) << url;
    EXPECT_THAT(refused.output, testing::Not(HasSubstr(":secret"))) << url;
  }
  const Ended collector = run_sluice({"config", "--tracing.endpoint", "http://u:secret@127.0.0.1:1/"});
  EXPECT_EQ(collector.exit_code, 1);
  EXPECT_THAT(collector.output, HasSubstr("found 'http://***@127.0.0.1:1/'"));
}

}  // namespace
