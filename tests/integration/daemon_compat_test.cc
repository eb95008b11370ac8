// The real binary in the place of envoyproxy/ratelimit: its environment, its ports, its answers.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/integration/redis_server.h"
#include "tests/integration/support/daemon.h"
#include "tests/integration/support/http_client.h"

namespace {

using sluice::test::HttpAnswer;
using sluice::test::HttpClient;
using sluice::test::Process;
using sluice::test::TempFolder;
using sluice::testing::RedisServer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kPolicy = R"(
domain: shop
descriptors:
  - key: user
    rate_limit: { unit: year, requests_per_unit: 3 }
  - key: none
    rate_limit: { unit: year, requests_per_unit: 0 }
  - key: plan
    value: free
    detailed_metric: true
    metadata: { tier: gold }
    rate_limit: { name: Free, unit: YEAR, requests_per_unit: 2 }
)";

/// With its policy in RUNTIME_ROOT/config, its counters in memory, and every port a free one.
class Compat {
 public:
  explicit Compat(const std::vector<std::string>& environment = {}, const std::string& policy = kPolicy)
      : process_(command(environment, policy)) {
    http_ = process_.line_after("listening http ").value_or("127.0.0.1:1");
  }
  [[nodiscard]] std::string http() const { return http_; }
  [[nodiscard]] std::string debug() const { return process_.line_after("listening admin ").value_or("127.0.0.1:1"); }
  [[nodiscard]] Process& process() { return process_; }
  [[nodiscard]] std::filesystem::path files() const { return folder_.path() / "root" / "config"; }
  void write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories((files() / name).parent_path());
    folder_.write("root/config/" + name, text);
  }
  HttpAnswer ask(const std::string& body) {
    HttpClient client(http_);
    return client.post("/json", body);
  }
  HttpAnswer look(const std::string& path) const {
    HttpClient client(debug());
    return client.get(path);
  }

 private:
  std::vector<std::string> command(const std::vector<std::string>& environment, const std::string& policy) {
    if (!policy.empty()) write("shop.yaml", policy);
    std::vector<std::string> words{"/usr/bin/env", "HOST=127.0.0.1", "PORT=0",         "DEBUG_HOST=127.0.0.1",
                                   "DEBUG_PORT=0", "GRPC_PORT=0",    "LOG_LEVEL=info", "USE_STATSD=false"};
    const auto names_redis = [](const std::string& line) { return line.starts_with("REDIS_URL="); };
    if (std::ranges::none_of(environment, names_redis)) words.emplace_back("SLUICE_STORE_REDIS_URL=");
    words.push_back("RUNTIME_ROOT=" + (folder_.path() / "root").string());
    words.insert(words.end(), environment.begin(), environment.end());
    words.insert(words.end(), {sluice::test::sluice_binary(), "serve", "--compat", "envoyproxy"});
    return words;
  }

  TempFolder folder_;
  Process process_;
  std::string http_;
};

std::string request(const std::string& descriptors, const std::string& more = {}) {
  return R"({"domain":"shop","descriptors":[)" + descriptors + "]" + more + "}";
}

std::string descriptor(const std::string& key, const std::string& value, const std::string& more = {}) {
  return R"({"entries":[{"key":")" + key + R"(","value":")" + value + "\"}]" + more + "}";
}

TEST(DaemonCompat, AnswersAndCountsAsTheOriginal) {
  Compat daemon;
  const std::string user = descriptor("user", "a");
  const HttpAnswer first = daemon.ask(request(user));
  EXPECT_EQ(first.status, 200) << daemon.process().output();
  EXPECT_THAT(first.body, HasSubstr(R"("limitRemaining":2)"));
  EXPECT_THAT(first.body, HasSubstr(R"("currentLimit":{"requestsPerUnit":3,"unit":"YEAR"})"));
  // Denied by the other, and charged all the same.
  const HttpAnswer denied = daemon.ask(request(descriptor("none", "x") + "," + user));
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.body, HasSubstr(R"("limitRemaining":1)"));
  EXPECT_EQ(daemon.ask(request(user)).status, 200);
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a", R"(,"hitsAddend":0)"))).status, 200) << "exactly full";
  EXPECT_EQ(daemon.ask(request(user)).status, 429);
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a", R"(,"hitsAddend":0)"))).status, 429) << "over";
}

TEST(DaemonCompat, ErrorsAreBadRequests) {
  Compat daemon;
  EXPECT_EQ(daemon.ask("{").status, 400);
  EXPECT_EQ(daemon.ask(R"({"domain":"shop","unknown":1})").status, 400);
  EXPECT_EQ(daemon.ask(R"({"domain":"","descriptors":[]})").body, "Bad Request\n");
  HttpClient client(daemon.http());
  EXPECT_EQ(client.get("/json").status, 400);
  EXPECT_EQ(client.get("/healthcheck").body, "OK");
}

TEST(DaemonCompat, ABodyThatIsNotTakenIsABadRequest) {
  Compat daemon;
  const HttpAnswer large = daemon.ask(std::string(100'000, ' '));
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.body, "Bad Request\n");
  HttpClient client(daemon.http());
  const std::string body = request(descriptor("user", "a"));
  client.send("POST /json HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(client.receive().status, 400);
}

TEST(DaemonCompat, MoreHitsThanAnyLimitHoldsAreDenied) {
  Compat daemon;
  for (const std::string_view hits : {"1000000000000001", "18446744073709551615"}) {
    const HttpAnswer answer =
        daemon.ask(request(descriptor("user", "a", R"(,"hitsAddend":")" + std::string(hits) + "\"")));
    EXPECT_EQ(answer.status, 429) << hits;
    EXPECT_THAT(answer.body, HasSubstr("OVER_LIMIT")) << hits;
  }
}

TEST(DaemonCompat, DecisionsGoOnWithoutTheDebugPort) {
  Compat first;
  const std::string taken = first.debug();
  Compat second({"DEBUG_PORT=" + taken.substr(taken.rfind(':') + 1)});
  EXPECT_EQ(second.ask(request(descriptor("user", "a"))).status, 200) << second.process().output();
  EXPECT_THAT(second.process().output(), HasSubstr(" error "));
}

TEST(DaemonCompat, WhatStandsBehindTheFirstDocumentDoesNotCount) {
  Compat daemon({}, kPolicy + "---\ndomain: other\n---\n}{ no: [ yaml\n");
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 200) << daemon.process().output();
  EXPECT_THAT(daemon.process().output(), HasSubstr("only the first YAML document counts"));
}

TEST(DaemonCompat, HeadersHaveTheNamesThatWereChosen) {
  Compat daemon({"LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_LIMIT_HEADER=X-Most"});
  const HttpAnswer answer = daemon.ask(request(descriptor("user", "a") + "," + descriptor("plan", "free")));
  EXPECT_THAT(answer.body, HasSubstr(R"("responseHeadersToAdd":[{"key":"X-Most","value":"2"},)"
                                     R"({"key":"RateLimit-Remaining","value":"1"},{"key":"RateLimit-Reset",)"));
  EXPECT_EQ(answer.fields.count("x-most"), 0U);
  Compat plain;
  EXPECT_THAT(plain.ask(request(descriptor("user", "a"))).body, Not(HasSubstr("responseHeadersToAdd")));
}

TEST(DaemonCompat, DynamicMetadata) {
  Compat daemon({"RESPONSE_DYNAMIC_METADATA=true"});
  EXPECT_THAT(
      daemon.ask(request(descriptor("plan", "free", R"(,"hitsAddend":1)"), R"(,"hitsAddend":2)")).body,
      HasSubstr(R"("dynamicMetadata":{"domain":"shop","descriptors":[{"entries":["plan=free"],"hitsAddend":1}],)"
                R"("hitsAddend":2,"metadata":{"tier":"gold"}})"));
}

TEST(DaemonCompat, ShadowModeLetsPass) {
  Compat daemon({"SHADOW_MODE=true"});
  const HttpAnswer answer = daemon.ask(request(descriptor("none", "x")));
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"({"overallCode":"OK","statuses":[{"code":"OVER_LIMIT")"));
  EXPECT_THAT(daemon.look("/stats").body, HasSubstr("ratelimit.service.global_shadow_mode: 1\n"));
}

TEST(DaemonCompat, QuotaModeDeniesOnlyWithAllOver) {
  Compat daemon({"QUOTA_MODE=true"});
  EXPECT_EQ(daemon.ask(request(descriptor("none", "x") + "," + descriptor("user", "a"))).status, 200);
  EXPECT_EQ(daemon.ask(request(descriptor("none", "x"))).status, 429);
}

TEST(DaemonCompat, StopsCountingWhenOver) {
  Compat daemon({"STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true"});
  EXPECT_EQ(daemon.ask(request(descriptor("none", "x") + "," + descriptor("user", "a"))).status, 429);
  EXPECT_THAT(daemon.ask(request(descriptor("user", "a"))).body, HasSubstr(R"("limitRemaining":2)"));
}

TEST(DaemonCompat, DebugPortTellsWhatItKnows) {
  Compat daemon;
  EXPECT_THAT(daemon.look("/").body, HasSubstr("/rlconfig: print out"));
  EXPECT_THAT(daemon.look("/rlconfig").body,
              HasSubstr("shop.user: unit=YEAR requests_per_unit=3, shadow_mode: false, quota_mode: false\n"));
  for (int i = 0; i < 4; ++i) daemon.ask(request(descriptor("user", "a") + "," + descriptor("plan", "free")));
  daemon.ask(R"({"domain":"other","descriptors":[{"entries":[{"key":"k"}]}]})");
  daemon.ask(R"({"domain":"","descriptors":[]})");
  const std::string stats = daemon.look("/stats").body;
  for (const std::string_view line :
       {"rate_limit.shop.user.total_hits: 4\n", "rate_limit.shop.user.over_limit: 1\n",
        "rate_limit.shop.user.near_limit: 1\n", "rate_limit.shop.user.within_limit: 3\n",
        "rate_limit.shop.plan_free.over_limit: 2\n", "rate_limit.other.domain_not_found: 1\n",
        "call.should_rate_limit.service_error: 1\n", "config_load_success: 1\n"}) {
    EXPECT_THAT(stats, HasSubstr("ratelimit.service." + std::string(line)));
  }
}

TEST(DaemonCompat, PrometheusHasAPortOfItsOwn) {
  Compat daemon({"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=127.0.0.1:0", "PROMETHEUS_PATH=/m"});
  daemon.ask(request(descriptor("user", "a")));
  HttpClient client(daemon.process().line_after("listening metrics ").value_or("127.0.0.1:1"));
  EXPECT_THAT(client.get("/m").body,
              HasSubstr("ratelimit_service_rate_limit_total_hits{domain=\"shop\",key1=\"user\"} 1\n"));
}

/// What comes to a port of 127.0.0.1, until `text` has.
class Sink {
 public:
  explicit Sink(int type) : socket_(::socket(AF_INET, type, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    EXPECT_EQ(::bind(socket_, name, size), 0);
    if (type == SOCK_STREAM) {
      EXPECT_EQ(::listen(socket_, 1), 0);
    }
    EXPECT_EQ(::getsockname(socket_, name, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Sink() {
    if (connection_ >= 0) ::close(connection_);
    ::close(socket_);
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  [[nodiscard]] std::string read_until(std::string_view text, bool over_tcp) {
    if (over_tcp && connection_ < 0) connection_ = ::accept(socket_, nullptr, nullptr);
    std::string all;
    std::array<char, 65536> buffer{};
    while (all.find(text) == std::string::npos) {
      const ssize_t size = ::recv(over_tcp ? connection_ : socket_, buffer.data(), buffer.size(), 0);
      if (size <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(size));
    }
    return all;
  }

 private:
  int socket_;
  int connection_ = -1;
  unsigned port_ = 0;
};

TEST(DaemonCompat, StatisticsGoToStatsd) {
  Sink sink(SOCK_STREAM);
  Compat daemon({"USE_STATSD=true", "STATSD_HOST=127.0.0.1", "STATSD_PORT=" + sink.port(), "STATS_FLUSH_INTERVAL=20ms",
                 "EXTRA_TAGS=zone:a"});
  daemon.ask(request(descriptor("user", "a")));
  const std::string line = "ratelimit.service.rate_limit.shop.user.total_hits.__zone=a:1|c\n";
  EXPECT_THAT(sink.read_until(line, true), HasSubstr(line));
}

TEST(DaemonCompat, StatisticsGoToDogstatsd) {
  Sink sink(SOCK_DGRAM);
  Compat daemon({"USE_DOG_STATSD=true", "STATSD_HOST=127.0.0.1", "STATSD_PORT=" + sink.port(),
                 "STATS_FLUSH_INTERVAL=20ms", "USE_DOG_STATSD_MOGRIFIERS=M",
                 R"(DOG_STATSD_MOGRIFIER_M_PATTERN=^ratelimit\.service\.rate_limit\.(.*)\.(.*)\.total_hits$)",
                 "DOG_STATSD_MOGRIFIER_M_NAME=hits", "DOG_STATSD_MOGRIFIER_M_TAGS=domain:$1,key:$2"});
  daemon.ask(request(descriptor("user", "a")));
  const std::string line = "hits:1|c|#domain:shop,key:user\n";
  EXPECT_THAT(sink.read_until(line, false), HasSubstr(line));
}

TEST(DaemonCompat, GrpcOverAUnixSocket) {
  const TempFolder folder;
  const std::string path = (folder.path() / "rl.sock").string();
  Compat daemon({"GRPC_UDS=" + path});
  EXPECT_EQ(daemon.process().line_after("listening grpc "), "unix:" + path);
  EXPECT_TRUE(std::filesystem::is_socket(path));
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(DaemonCompat, WhatHasNoEffectIsTold) {
  Compat daemon({"TRACING_SERVICE_NAME=x", "LOCAL_CACHE_SIZE_IN_BYTES=3"});
  EXPECT_THAT(daemon.process().output(), HasSubstr("TRACING_SERVICE_NAME has no effect"));
  EXPECT_THAT(daemon.process().output(), HasSubstr("LOCAL_CACHE_SIZE_IN_BYTES has no effect"));
}

TEST(DaemonCompat, ABadValueEndsIt) {
  Compat daemon({"NEAR_LIMIT_RATIO=much"});
  EXPECT_EQ(daemon.process().wait(), 1);
  EXPECT_THAT(daemon.process().output(), HasSubstr("NEAR_LIMIT_RATIO: expected a number of 0 to 1, found 'much'"));
}

// ---- files

TEST(DaemonCompat, FilesOfAnyNameAndDepthAreLoaded) {
  Compat daemon({"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true"});
  daemon.write("more/other.txt",
               "domain: other\ndescriptors: [ { key: k, rate_limit: { unit: day, requests_per_unit: 1 } } ]\n");
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
  EXPECT_THAT(daemon.look("/rlconfig").body, HasSubstr("other.k: unit=DAY"));
}

TEST(DaemonCompat, DotFilesAreLeftOutWhenTold) {
  Compat daemon({"RUNTIME_IGNOREDOTFILES=true"});
  daemon.write("..2026/shop.yaml", "nonsense: true");
  daemon.write(".hidden", "nonsense: true");
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
}

TEST(DaemonCompat, StartsWithoutAPolicyAndSaysSo) {
  Compat daemon({"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true"}, "domain: shop\nnonsense: true\n");
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 400);
  HttpClient client(daemon.http());
  EXPECT_EQ(client.get("/healthcheck").status, 500);
  // In one step, so that it is not read half written, and nothing is loaded twice.
  const TempFolder folder;
  std::filesystem::rename(folder.write("shop.yaml", kPolicy), daemon.files() / "shop.yaml");
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 200);
  EXPECT_THAT(daemon.look("/stats").body, AllOf(HasSubstr("ratelimit.service.config_load_success: 1\n"),
                                                HasSubstr("ratelimit.service.config_load_error: 1\n")));
}

TEST(DaemonCompat, APipeAmongTheFilesIsPassedOver) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "limits/config");
  folder.write("limits/config/shop.yaml", kPolicy);
  ASSERT_EQ(::mkfifo((folder.path() / "limits/config/pipe").c_str(), 0600), 0);
  // And the slash at the front of a part of the path does no harm.
  Compat daemon({"RUNTIME_ROOT=" + folder.path().string(), "RUNTIME_SUBDIRECTORY=/limits"});
  EXPECT_THAT(daemon.look("/rlconfig").body, HasSubstr("shop.user: unit=YEAR requests_per_unit=3,"));
  EXPECT_TRUE(daemon.process().has_printed("config/pipe: warning: passed over: it is a pipe, not a regular file"))
      << daemon.process().output();
  // A warning stays one, also beside an error.
  folder.write("limits/config/bad.yaml", "nonsense: true\n");
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("the old one stays in force")) << daemon.process().output();
  EXPECT_THAT(daemon.process().output(), testing::ContainsRegex("warn [^\n]*config/pipe: warning: passed over"));
  EXPECT_THAT(daemon.process().output(), Not(testing::ContainsRegex("error [^\n]*config/pipe: warning")));
  daemon.process().signal(SIGTERM);
  EXPECT_EQ(daemon.process().wait(), 0);
}

TEST(DaemonCompat, MergesADomainOfSeveralFiles) {
  Compat daemon({"MERGE_DOMAIN_CONFIG=true"});
  daemon.write("more.yaml",
               "domain: shop\ndescriptors: [ { key: k, rate_limit: { unit: day, requests_per_unit: 1 } } ]\n");
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
  EXPECT_THAT(daemon.look("/rlconfig").body, HasSubstr("shop.k: unit=DAY"));
}

TEST(DaemonCompat, AnotherRootIsLoadedByItself) {
  const TempFolder folder;
  const auto write = [&](const std::string& root, const std::string& limit) {
    std::filesystem::create_directories(folder.path() / root / "config");
    folder.write(
        root + "/config/shop.yaml",
        "domain: shop\ndescriptors: [ { key: user, rate_limit: { unit: year, requests_per_unit: " + limit + " } } ]\n");
  };
  write("one", "1");
  write("two", "2");
  std::filesystem::create_directory_symlink("one", folder.path() / "current");
  Compat daemon({"RUNTIME_ROOT=" + (folder.path() / "current").string()});
  EXPECT_THAT(daemon.look("/rlconfig").body, HasSubstr("shop.user: unit=YEAR requests_per_unit=1,"));
  std::filesystem::create_directory_symlink("two", folder.path() / "next");
  std::filesystem::rename(folder.path() / "next", folder.path() / "current");
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
  EXPECT_THAT(daemon.look("/rlconfig").body, HasSubstr("shop.user: unit=YEAR requests_per_unit=2,"));
}

// ---- on Redis

std::vector<std::string> on(const RedisServer& redis, const std::string& prefix = "REDIS_") {
  return {"REDIS_TIMEOUT=5s", prefix + "SOCKET_TYPE=tcp", prefix + "URL=127.0.0.1:" + std::to_string(redis.port())};
}

TEST(DaemonCompatOnRedis, LimitsPerSecondHaveAServerOfTheirOwn) {
  RedisServer main;
  RedisServer seconds;
  std::vector<std::string> environment = on(main);
  for (const std::string& line : on(seconds, "REDIS_PERSECOND_")) environment.push_back(line);
  environment.insert(environment.end(), {"REDIS_PERSECOND=true", "CACHE_KEY_PREFIX=mine:"});
  Compat daemon(environment,
                "domain: shop\ndescriptors:\n  - { key: s, rate_limit: { unit: second, requests_per_unit: 1000 } }\n"
                "  - { key: y, rate_limit: { unit: year, requests_per_unit: 1000 } }\n");
  const std::string both = request(descriptor("s", "1") + "," + descriptor("y", "1"));
  EXPECT_EQ(daemon.ask(both).status, 200);
  EXPECT_EQ(daemon.ask(both).status, 200);
  EXPECT_GT(seconds.calls("evalsha") + seconds.calls("eval"), 0U);
  const auto keys = main.command({"KEYS", "*"});
  ASSERT_EQ(keys->elements, 1U);
  EXPECT_THAT(std::string(keys->element[0]->str), testing::StartsWith("mine:sluice:"));
  EXPECT_THAT(daemon.ask(request(descriptor("y", "1"))).body, HasSubstr(R"("limitRemaining":997)"));
}

// There: 400 for each request, and /healthcheck says OK. Here a local counter answers.
TEST(DaemonCompatOnRedis, ALocalCounterStandsInForAFailedRedis) {
  RedisServer redis;
  Compat daemon(on(redis));
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 200);
  redis.kill();
  for (const int status : {200, 200, 200, 429}) {
    EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, status);
  }
  HttpClient client(daemon.http());
  EXPECT_EQ(client.get("/healthcheck").body, "OK");
  EXPECT_THAT(daemon.look("/stats").body, HasSubstr("should_rate_limit.redis_error: 4\n"));
}

TEST(DaemonCompatOnRedis, IsHealthyWhenRedisHasBeenReached) {
  const RedisServer redis;
  Compat never({"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=127.0.0.1:1"});
  HttpClient client(never.http());
  EXPECT_EQ(client.get("/healthcheck").status, 500);
  EXPECT_EQ(never.ask(request(descriptor("user", "a"))).status, 200) << "a local counter";
  EXPECT_EQ(client.get("/healthcheck").status, 500);
  std::vector<std::string> environment = on(redis);
  environment.insert(environment.end(),
                     {"REDIS_PERSECOND=true", "REDIS_PERSECOND_SOCKET_TYPE=tcp", "REDIS_PERSECOND_URL=127.0.0.1:1"});
  Compat half(environment);
  EXPECT_TRUE(half.process().has_printed("redis: connected")) << half.process().output();
  HttpClient other(half.http());
  EXPECT_EQ(other.get("/healthcheck").status, 500) << "the Redis of limits per second has not been";
}

TEST(DaemonCompatOnRedis, HealthFollowsTheConnectionWhereTold) {
  RedisServer redis;
  std::vector<std::string> environment = on(redis);
  environment.emplace_back("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true");
  Compat daemon(environment);
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 200);
  HttpClient client(daemon.http());
  EXPECT_EQ(client.get("/healthcheck").status, 200);
  redis.kill();
  EXPECT_TRUE(daemon.process().has_printed("redis: not available")) << daemon.process().output();
  EXPECT_EQ(client.get("/healthcheck").status, 500);
}

// ---- what was tried on the original

TEST(DaemonCompat, CallersCannotDrainAnotherKey) {
  Compat daemon({},
                "domain: shop\ndescriptors:\n  - { key: u, rate_limit: { unit: year, requests_per_unit: 1 } }\n"
                "  - { key: u_x, rate_limit: { unit: year, requests_per_unit: 1 } }\n");
  EXPECT_EQ(daemon.ask(request(descriptor("u", "x_y"))).status, 200);
  EXPECT_EQ(daemon.ask(request(descriptor("u", "x_y"))).status, 429);
  EXPECT_EQ(daemon.ask(request(descriptor("u_x", "y"))).status, 200);
}

TEST(DaemonCompat, FieldsAtTheirDefaultAreLeftOut) {
  Compat daemon;
  const std::string body = daemon.ask(request(descriptor("none", "x"))).body;
  EXPECT_THAT(body, Not(HasSubstr("limitRemaining")));
  EXPECT_THAT(body, HasSubstr(R"("currentLimit":{"unit":"YEAR"},"durationUntilReset":")"));
}

TEST(DaemonCompat, AKeyInAPlaceWhereItDoesNothingIsNoMistake) {
  Compat daemon({},
                "domain: shop\ndescriptors: [ { key: user, unit: day, rate_limit: { unit: year, "
                "requests_per_unit: 1 } } ]\n");
  EXPECT_EQ(daemon.ask(request(descriptor("user", "a"))).status, 200);
}

// ---- reports about the original

/// The policy was refused, the reason told, and the old one still answers.
void expect_refused(Compat& daemon, std::string_view reason) {
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("the old one stays in force")) << daemon.process().output();
  EXPECT_THAT(daemon.process().output(), HasSubstr(std::string(reason)));
  EXPECT_EQ(daemon.ask(request(descriptor("none", "x"))).status, 429);
}

TEST(DaemonCompat, public_report_69_one_domain_in_two_files_is_refused) {
  Compat daemon;
  daemon.write("zweite.yaml", "domain: shop\ndescriptors: []\n");
  expect_refused(daemon, "the domain \"shop\" is already that of");
  EXPECT_THAT(daemon.process().output(), HasSubstr("zweite.yaml:1:9"));
}

TEST(DaemonCompat, public_report_70_a_descriptor_twice_is_refused) {
  Compat daemon;
  daemon.write("two.yaml",
               "domain: two\ndescriptors:\n  - { key: messaging, value: foo }\n  - { key: messaging, value: foo }\n");
  expect_refused(daemon, "the descriptor \"messaging_foo\" is already on this level");
}

TEST(DaemonCompat, public_report_71_unlimited_does_not_lift_another_limit) {
  Compat daemon({},
                "domain: shop\ndescriptors:\n  - { key: a, rate_limit: { unlimited: true } }\n"
                "  - { key: b, rate_limit: { unit: year, requests_per_unit: 5 } }\n");
  const std::string both = request(descriptor("a", "1") + "," + descriptor("b", "1"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(daemon.ask(both).status, 200);
  const HttpAnswer denied = daemon.ask(both);
  EXPECT_EQ(denied.status, 429);
  EXPECT_THAT(denied.body, HasSubstr(R"("statuses":[{"code":"OK","limitRemaining":4294967295},{"code":"OVER_LIMIT")"));
}

TEST(DaemonCompat, public_report_72_wildcards_on_every_level) {
  const std::string paths =
      "{ key: path, value: /api/*, rate_limit: { unit: year, requests_per_unit: 1 } }, "
      "{ key: path, value: /api/exact, rate_limit: { unit: year, requests_per_unit: 7 } }, "
      "{ key: path, rate_limit: { unit: year, requests_per_unit: 9 } }";
  Compat daemon({}, "domain: shop\ndescriptors: [ " + paths + ", { key: app, descriptors: [ " + paths + " ] } ]\n");
  for (const std::string above : {"", R"({"key":"app","value":"x"},)"}) {
    const auto ask = [&](const std::string& path) {
      return daemon.ask(request(R"({"entries":[)" + above + R"({"key":"path","value":")" + path + R"("}]})"));
    };
    EXPECT_EQ(ask("/api/feed").status, 200);
    EXPECT_EQ(ask("/api/x").status, 200) << "a counter of its own";
    EXPECT_EQ(ask("/api/feed").status, 429);
    EXPECT_THAT(ask("/api/exact").body, HasSubstr(R"("requestsPerUnit":7)"));
    EXPECT_THAT(ask("/ap").body, HasSubstr(R"("requestsPerUnit":9)"));
  }
}

TEST(DaemonCompat, public_report_74_mistakes_are_refused_with_their_place) {
  Compat daemon;
  int count = 0;
  const auto limit = [](const std::string& text) {
    return "domain: x\ndescriptors: [ { key: k, rate_limit: " + text + " } ]\n";
  };
  for (const auto& [text, reason] : std::vector<std::pair<std::string, std::string>>{
           {limit("{ unit: foo, requests_per_unit: 1 }"), "unit"},
           {limit("{ unlimited: true, unit: day }"), "unlimited"},
           {limit("{ unit: day, requests_per_unit: 1, name: n, replaces: [ { name: n } ] }"), "cannot replace itself"},
           {limit("{ unit: day, requests_per_unit: 1, replaces: [ { name: '' } ] }"), "replaces"},
           {limit("{ unit: day, requests_per_units: 1 }"), "requests_per_units"},
           {limit("{ unit: day, requests_per_unit: 1.5 }"), "1.5"},
           {"domain: x\ndescriptors: [ { key: '' } ]\n", "key"},
           {"domain: ''\ndescriptors: []\n", "domain"}}) {
    const std::string name = "bad" + std::to_string(++count) + ".yaml";
    daemon.write(name, text);
    daemon.process().signal(SIGHUP);
    EXPECT_THAT(daemon.process().line_after(name).value_or(""), HasSubstr(reason)) << text;
    EXPECT_EQ(daemon.ask(request(descriptor("none", "x"))).status, 429);
    std::filesystem::remove(daemon.files() / name);
  }
  daemon.write("good.yaml", limit("{ unit: Day, requests_per_unit: 1 }"));
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("policy loaded again")) << daemon.process().output();
}

TEST(DaemonCompat, public_report_75_shapes_that_generators_write) {
  Compat daemon({},
                "name: generated\ndomain: shop\ndescriptors:\n"
                "  - { key: a, rate_limit: null, descriptors: [] }\n"
                "  - { key: b, rate_limit: { unit: MONTH, requests_per_unit: 4294967295 } }\n");
  EXPECT_THAT(daemon.ask(request(descriptor("a", "1"))).body, HasSubstr(R"({"code":"OK"})"));
  EXPECT_THAT(daemon.ask(request(descriptor("b", "1"))).body, HasSubstr(R"("limitRemaining":4294967294)"));
  daemon.write("big.yaml",
               "domain: x\ndescriptors: [ { key: k, rate_limit: { unit: day, requests_per_unit: 4294967296 } } ]\n");
  daemon.process().signal(SIGHUP);
  EXPECT_TRUE(daemon.process().has_printed("big.yaml:")) << daemon.process().output();
}

TEST(DaemonCompat, public_report_76_a_shadow_rule_ends_nothing) {
  Compat daemon({},
                "domain: shop\ndescriptors:\n"
                "  - { key: s, shadow_mode: true, rate_limit: { unit: year, requests_per_unit: 0 } }\n"
                "  - { key: e, rate_limit: { unit: year, requests_per_unit: 1 } }\n");
  const std::string both = request(descriptor("s", "1") + "," + descriptor("e", "1"));
  EXPECT_EQ(daemon.ask(both).status, 200);
  EXPECT_EQ(daemon.ask(both).status, 429);
  const std::string stats = daemon.look("/stats").body;
  EXPECT_THAT(stats, HasSubstr("rate_limit.shop.s.shadow_mode: 2\n"));
  EXPECT_THAT(stats, HasSubstr("rate_limit.shop.e.over_limit: 1\n"));
}

// ---- throttlecrab

TEST(DaemonThrottle, DeniedAnswersHaveTheStatusThatWasChosen) {
  for (const auto& [status, code] : {std::pair("200", 200), std::pair("429", 429)}) {
    Compat daemon({std::string("SLUICE_HTTP_THROTTLE=") + status});
    HttpClient client(daemon.http());
    const std::string body = R"({"key":"k","max_burst":2,"count_per_period":1,"period":3600,"more":[1]})";
    EXPECT_EQ(client.post("/throttle", body).body,
              R"({"allowed":true,"limit":2,"remaining":1,"reset_after":3600,"retry_after":0})");
    EXPECT_EQ(client.post("/throttle", body).status, 200);
    const HttpAnswer denied = client.post("/throttle", body);
    EXPECT_EQ(denied.status, code);
    EXPECT_THAT(denied.body, HasSubstr(R"("allowed":false,"limit":2,"remaining":0)"));
    EXPECT_EQ(client.get("/health").body, "OK");
  }
}

TEST(DaemonThrottle, ABurstOfOneLimits) {
  Compat daemon({"SLUICE_HTTP_THROTTLE=200"});
  HttpClient client(daemon.http());
  const std::string body = R"({"key":"k","max_burst":1,"count_per_period":1,"period":3600,"quantity":1})";
  EXPECT_THAT(client.post("/throttle", body).body, HasSubstr(R"("allowed":true)"));
  EXPECT_THAT(client.post("/throttle", body).body, HasSubstr(R"("allowed":false)"));
}

TEST(DaemonThrottle, Mistakes) {
  Compat daemon({"SLUICE_HTTP_THROTTLE=200"});
  HttpClient client(daemon.http());
  EXPECT_EQ(client.post("/throttle", "{").status, 400);
  EXPECT_EQ(client.post("/throttle", R"({"key":"k"})").status, 422);
  EXPECT_EQ(client.post("/throttle", R"({"key":1,"max_burst":2,"count_per_period":1,"period":1})").status, 422);
  EXPECT_EQ(client.post("/throttle", R"({"key":"k","max_burst":0,"count_per_period":1,"period":1})").status, 400);
  EXPECT_EQ(
      client.post("/throttle", R"({"key":"k","max_burst":1,"count_per_period":1,"period":1,"quantity":-1})").status,
      400);
  EXPECT_EQ(client.get("/throttle").status, 405);
  Compat off;
  HttpClient other(off.http());
  EXPECT_EQ(other.post("/throttle", "{}").status, 404);
}

}  // namespace
