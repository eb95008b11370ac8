#include "config/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using sluice::config::File;
using sluice::config::Flag;
using sluice::config::Resolved;
using testing::ElementsAre;
using testing::IsEmpty;

Resolved resolve(std::optional<std::string> file, const std::vector<std::string>& environment = {},
                 const std::vector<Flag>& flags = {}) {
  std::optional<File> read;
  if (file) read = File{.name = "conf/sluice.yaml", .text = *std::move(file)};
  return sluice::config::resolve(read, environment, flags);
}

std::string origin(const Resolved& resolved, std::string_view name) {
  for (std::size_t row = 0; row < resolved.sources.size(); ++row) {
    if (sluice::config::all_settings()[row].name == name) return resolved.sources[row].origin;
  }
  return "no such setting";
}

TEST(Resolve, DefaultsAreThoseOfTheManual) {
  const Resolved resolved = resolve(std::nullopt);
  EXPECT_THAT(resolved.errors, IsEmpty());
  const auto& settings = resolved.settings;
  EXPECT_EQ(to_text(settings.listen_grpc.address), "127.0.0.1:8081");
  EXPECT_EQ(to_text(settings.listen_http.address), "127.0.0.1:8080");
  EXPECT_EQ(to_text(settings.listen_admin.address), "127.0.0.1:6070");
  EXPECT_THAT(settings.policy, IsEmpty());
  EXPECT_EQ(settings.redis_url, "");
  EXPECT_EQ(settings.redis_timeout, 20ms);
  EXPECT_EQ(settings.redis_prefix, "sluice:");
  EXPECT_EQ(settings.redis_failures, 5U);
  EXPECT_EQ(settings.redis_probe_interval, 500ms);
  EXPECT_EQ(settings.memory_max_keys, 10'000'000U);
  EXPECT_EQ(settings.threads, 0U);
  EXPECT_EQ(settings.drain_timeout, 10s);
  EXPECT_TRUE(settings.http_header_retry_after && settings.http_header_rate_limit && settings.http_header_x_rate_limit);
  EXPECT_TRUE(settings.http_headers_on_allowed && settings.grpc_header_retry_after);
  EXPECT_FALSE(settings.grpc_header_rate_limit || settings.grpc_header_x_rate_limit);
  EXPECT_EQ(settings.http_deny_status, 429U);
  EXPECT_EQ(settings.http_store_failure_status, 503U);
  EXPECT_EQ(settings.http_idle_timeout, 75s);
  EXPECT_EQ(settings.grpc_idle_timeout, 10min);
  EXPECT_EQ(settings.grpc_max_connection_age, 24h);
  EXPECT_EQ(settings.log_level, sluice::log::Level::info);
  EXPECT_EQ(settings.log_format, sluice::log::Format::text);
  EXPECT_EQ(origin(resolved, "listen.http"), "default");
}

TEST(Resolve, ReadsAFile) {
  const Resolved resolved = resolve(
      "listen:\n"
      "  http: 0.0.0.0:80\n"
      "  grpc: off\n"
      "policy: [ policies/, /etc/sluice ]\n"
      "store:\n"
      "  redis:\n"
      "    url: redis://127.0.0.1:6379\n"
      "    timeout: 5ms\n"
      "http: { headers: { x_rate_limit: false } }\n"
      "log: { level: warn, format: json }\n");
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(to_text(resolved.settings.listen_http.address), "0.0.0.0:80");
  EXPECT_TRUE(resolved.settings.listen_grpc.address.off);
  EXPECT_THAT(resolved.settings.policy, ElementsAre("conf/policies/", "/etc/sluice"));
  EXPECT_EQ(resolved.settings.redis_timeout, 5ms);
  EXPECT_FALSE(resolved.settings.http_header_x_rate_limit);
  EXPECT_EQ(resolved.settings.log_level, sluice::log::Level::warn);
  EXPECT_EQ(resolved.settings.log_format, sluice::log::Format::json);
  EXPECT_EQ(origin(resolved, "store.redis.timeout"), "conf/sluice.yaml:8:14");
  EXPECT_EQ(origin(resolved, "threads"), "default");
}

TEST(Resolve, EmptyFilesAndGroupsSetNothing) {
  EXPECT_THAT(resolve("").errors, IsEmpty());
  EXPECT_THAT(resolve("# nothing\n").errors, IsEmpty());
  EXPECT_THAT(resolve("store:\n  redis:\n").errors, IsEmpty());
}

TEST(Resolve, FlagsWinOverEnvironmentOverFile) {
  const std::string file = "threads: 1\ndrain_timeout: 1s\nmax_connections: 1\npolicy: a\n";
  const Resolved resolved = resolve(file, {"SLUICE_DRAIN_TIMEOUT=2s", "SLUICE_MAX_CONNECTIONS=2", "HOME=/root"},
                                    {{.name = "max_connections", .values = {"3"}}});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.threads, 1U);
  EXPECT_EQ(resolved.settings.drain_timeout, 2s);
  EXPECT_EQ(resolved.settings.max_connections, 3U);
  EXPECT_EQ(origin(resolved, "threads"), "conf/sluice.yaml:1:10");
  EXPECT_EQ(origin(resolved, "drain_timeout"), "SLUICE_DRAIN_TIMEOUT");
  EXPECT_EQ(origin(resolved, "max_connections"), "--max_connections");
}

TEST(Resolve, AListIsReplacedAsAWhole) {
  EXPECT_THAT(resolve("policy: [ a, b ]\n").settings.policy, ElementsAre("conf/a", "conf/b"));
  EXPECT_THAT(resolve("policy: [ a, b ]\n", {"SLUICE_POLICY=c,d,"}).settings.policy, ElementsAre("c", "d"));
  EXPECT_THAT(resolve("policy: a\n", {"SLUICE_POLICY=c"}, {{.name = "policy", .values = {"e", "f,g"}}}).settings.policy,
              ElementsAre("e", "f,g"));
}

TEST(Resolve, TellsAllMistakesWithTheirPlaces) {
  const Resolved resolved = resolve(
      "listen:\n"
      "  htp: 0.0.0.0:80\n"
      "  http: 80\n"
      "stor: { redis: {} }\n"
      "threads: [ 1 ]\n"
      "something_else: 1\n"
      "drain_timeout: 10\n"
      "store: { redis: 6379 }\n"
      "log: { level: }\n"
      "threads: 2\n",
      {"SLUICE_STORE_REDIS_TIMEOUT=1h"}, {{.name = "log.format", .values = {"xml"}}});
  EXPECT_THAT(
      resolved.errors,
      ElementsAre(
          "conf/sluice.yaml:2:3: unknown setting 'listen.htp'; did you mean 'listen.http'?",
          "conf/sluice.yaml:4:1: unknown setting 'stor'; did you mean 'store'?",
          "conf/sluice.yaml:5:10: threads: expected one NUMBER, found a list",
          "conf/sluice.yaml:6:1: unknown setting 'something_else'; 'sluice serve --help' lists all",
          "conf/sluice.yaml:8:17: expected settings below 'store.redis' as 'name: value'",
          "conf/sluice.yaml:9:15: log.level: expected one LEVEL, found nothing",
          "conf/sluice.yaml:10:1: 'threads' is set twice",
          "conf/sluice.yaml:3:9: listen.http: expected HOST:PORT, [IPV6]:PORT, :PORT, unix:PATH or off, found '80'",
          "conf/sluice.yaml:7:16: drain_timeout: expected a duration such as 20ms, 1.5s or 1m30s, found '10'",
          "SLUICE_STORE_REDIS_TIMEOUT: expected 1ms to 10s, found '1h'",
          "--log.format: expected one of text, json, found 'xml'"));
}

TEST(Resolve, TellsBrokenYaml) {
  EXPECT_THAT(resolve("listen: [\n").errors,
              ElementsAre(testing::StartsWith("conf/sluice.yaml:2:1: not valid YAML: ")));
  EXPECT_THAT(resolve("- a\n").errors, ElementsAre("conf/sluice.yaml:1:1: expected settings as 'name: value'"));
  EXPECT_THAT(resolve("a: 1\n---\nb: 1\n").errors,
              ElementsAre("conf/sluice.yaml:3:1: expected one YAML document, found 2"));
  EXPECT_THAT(resolve("[a]: 1\n").errors, ElementsAre("conf/sluice.yaml:1:1: expected the name of a setting"));
  // Tokens that no value begins with: the parser doesn't get past them.
  for (const std::string text : {",", "]", "}", "threads: 1\n,", "[1] ]"}) {
    EXPECT_THAT(resolve(text).errors, ElementsAre(testing::HasSubstr(": not valid YAML: "))) << text;
  }
}

TEST(Resolve, SurvivesDeepAndCyclicYaml) {
  EXPECT_THAT(resolve(std::string(100'000, '[')).errors, testing::SizeIs(1));
  EXPECT_THAT(resolve("store: &a { redis: *a }\n").errors, testing::SizeIs(1));
}

TEST(Resolve, NumbersHaveRanges) {
  const auto error = [](std::string name, std::string value) {
    const Resolved resolved = resolve(std::nullopt, {}, {{.name = std::move(name), .values = {std::move(value)}}});
    return resolved.errors.empty() ? "" : resolved.errors.front();
  };
  EXPECT_EQ(error("threads", "0"), "--threads: expected auto or a whole number of 1 to 256, found '0'");
  EXPECT_EQ(error("threads", "257"), "--threads: expected auto or a whole number of 1 to 256, found '257'");
  EXPECT_EQ(error("threads", "2.5"), "--threads: expected auto or a whole number of 1 to 256, found '2.5'");
  EXPECT_EQ(error("threads", "-1"), "--threads: expected auto or a whole number of 1 to 256, found '-1'");
  EXPECT_EQ(error("threads", "99999999999999999999"),
            "--threads: expected auto or a whole number of 1 to 256, found '99999999999999999999'");
  EXPECT_EQ(error("threads", "256"), "");
  EXPECT_EQ(error("threads", "auto"), "");
  EXPECT_EQ(error("drain_timeout", "61m"), "--drain_timeout: expected 0s to 1h, found '61m'");
  EXPECT_EQ(error("store.redis.prefix", "a{b}"),
            "--store.redis.prefix: expected at most 64 printable characters without spaces and braces");
  EXPECT_EQ(error("store.redis.prefix", ""), "");
  for (const std::string port : {"99999", "65536", "0", "", "x", "-1", "+1", "8 0"}) {
    EXPECT_EQ(error("tracing.endpoint", "http://127.0.0.1:" + port),
              "--tracing.endpoint: expected a URL such as http://127.0.0.1:9000 or https://example.org, found "
              "'http://127.0.0.1:" +
                  port + "'");
  }
  EXPECT_EQ(error("tracing.endpoint", "http://[::1]:65535/otlp"), "");
  for (const std::string word : {"true", "false", "yes", "no", "on", "off"}) {
    EXPECT_EQ(error("http.headers.retry_after", word), "");
  }
  EXPECT_EQ(error("http.headers.retry_after", "maybe"),
            "--http.headers.retry_after: expected one of true, false, yes, no, on, off, found 'maybe'");
}

TEST(Resolve, NeverShowsAPassword) {
  const Resolved resolved = resolve(std::nullopt, {}, {{.name = "store.redis.url", .values = {"http://u:secret@h"}}});
  EXPECT_THAT(resolved.errors, ElementsAre("--store.redis.url: expected a URL such as redis://127.0.0.1:6379 or "
                                           "unix:///run/redis.sock, found 'http://u:***@h'"));
}

TEST(Resolve, WarnsOfMisspeltVariablesOnly) {
  const Resolved resolved =
      resolve(std::nullopt, {"SLUICE_THREAD=2", "SLUICE_PORT=tcp://10.0.0.1:80", "SLUICE_SERVICE_HOST=x"});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_THAT(resolved.warnings, ElementsAre("SLUICE_THREAD: not a setting; did you mean SLUICE_THREADS?"));
}

}  // namespace
