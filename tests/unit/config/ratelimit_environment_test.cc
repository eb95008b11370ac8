#include "config/ratelimit_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "config/resolve.h"

namespace {

using sluice::config::RatelimitEnvironment;
using sluice::config::read_ratelimit_environment;
using sluice::config::Resolved;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Lines = std::vector<std::string>;

// "setting=value", in order.
Lines read(const Lines& environment) {
  const RatelimitEnvironment read = read_ratelimit_environment(environment);
  EXPECT_THAT(read.errors, IsEmpty());
  Lines lines;
  for (const auto& value : read.values) lines.push_back(value.setting + "=" + value.value);
  return lines;
}

std::string error(const Lines& environment) {
  const RatelimitEnvironment read = read_ratelimit_environment(environment);
  return read.errors.size() == 1 ? read.errors.front() : std::to_string(read.errors.size()) + " errors";
}

TEST(RatelimitEnvironment, WhereRedisIs) {
  const auto url = [](const std::string& text) { return ElementsAre("store.redis.url=" + text); };
  EXPECT_THAT(read({"REDIS_SOCKET_TYPE=tcp", "REDIS_URL=redis:6379"}), url("redis://redis:6379"));
  EXPECT_THAT(read({"REDIS_SOCKET_TYPE=TCP", "REDIS_TYPE=single", "REDIS_URL=h"}), url("redis://h"));
  EXPECT_THAT(read({"REDIS_SOCKET_TYPE=unix", "REDIS_URL=/run/r.sock"}), url("unix:///run/r.sock"));
  EXPECT_THAT(read({"REDIS_URL=/run/r.sock"}), url("unix:///run/r.sock"));
  EXPECT_THAT(read({"REDIS_URL=h:1"}), url("redis://h:1"));
  EXPECT_THAT(read({"REDIS_URL=h:1", "REDIS_TLS=true"}), url("rediss://h:1"));
  EXPECT_THAT(read({"REDIS_URL=redis://:pw@h:1/2"}), url("redis://:pw@h:1/2"));
  EXPECT_THAT(read({"REDIS_URL=redis://h:1", "REDIS_TLS=1"}), url("rediss://h:1"));
  EXPECT_THAT(read({"REDIS_TYPE=SENTINEL", "REDIS_URL=mymaster,a:1,b:2"}), url("redis-sentinel://a:1,b:2/mymaster"));
  EXPECT_THAT(read({"REDIS_TYPE=Sentinel", "REDIS_URL=m,[::1]:1", "REDIS_TLS=t"}), url("rediss-sentinel://[::1]:1/m"));
  EXPECT_THAT(read({"REDIS_TYPE=cluster", "REDIS_URL=a:1,b:2"}), url("redis+cluster://a:1,b:2"));
  EXPECT_THAT(read({"REDIS_TYPE=CLUSTER", "REDIS_URL=a:1", "REDIS_TLS=TRUE"}), url("rediss+cluster://a:1"));
}

TEST(RatelimitEnvironment, CredentialsTlsAndTime) {
  EXPECT_THAT(read({"REDIS_URL=h", "REDIS_AUTH=pass"}),
              ElementsAre("store.redis.url=redis://h", "store.redis.password=pass"));
  EXPECT_THAT(read({"REDIS_URL=h", "REDIS_AUTH=user:pa:ss"}),
              ElementsAre("store.redis.url=redis://h", "store.redis.username=user", "store.redis.password=pa:ss"));
  EXPECT_THAT(read({"REDIS_TYPE=SENTINEL", "REDIS_URL=m,h", "REDIS_SENTINEL_AUTH=u:p"}),
              ElementsAre("store.redis.url=redis-sentinel://h/m", "store.redis.sentinel.username=u",
                          "store.redis.sentinel.password=p"));
  EXPECT_THAT(read({"REDIS_URL=h", "REDIS_TLS=true", "REDIS_TLS_CACERT=/ca", "REDIS_TLS_CLIENT_CERT=/c",
                    "REDIS_TLS_CLIENT_KEY=/k", "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION=true", "REDIS_TIMEOUT=1s"}),
              ElementsAre("store.redis.url=rediss://h", "store.redis.tls.ca=/ca", "store.redis.tls.cert=/c",
                          "store.redis.tls.key=/k", "store.redis.tls.verify_name=false", "store.redis.timeout=1s"));
}

// A URL of our own forms needs no REDIS_TLS beside it.
TEST(RatelimitEnvironment, AUrlMayAskForTls) {
  EXPECT_THAT(read({"REDIS_URL=rediss://h", "REDIS_TLS_CACERT=/ca"}),
              ElementsAre("store.redis.url=rediss://h", "store.redis.tls.ca=/ca"));
  EXPECT_THAT(read({"REDIS_URL=rediss-host:1"}), ElementsAre("store.redis.url=redis://rediss-host:1"));
  for (const char* url : {"REDIS_URL=/run/r.sock", "REDIS_URL=unix:///run/r.sock"}) {
    EXPECT_THAT(error({url, "REDIS_TLS=true"}), testing::AllOf(HasSubstr("REDIS_TLS: "), HasSubstr("/run/r.sock")));
  }
}

TEST(RatelimitEnvironment, WithoutAUrlNothingIsRead) {
  EXPECT_THAT(read({}), IsEmpty());
  EXPECT_THAT(read({"REDIS_URL=", "REDIS_AUTH=x", "REDIS_TYPE=nonsense"}), IsEmpty());
  // What Kubernetes sets for a service named "redis".
  EXPECT_THAT(read({"REDIS_PORT=tcp://10.0.0.1:6379", "REDIS_SERVICE_HOST=10.0.0.1", "REDIS_SERVICE_PORT=6379"}),
              IsEmpty());
}

TEST(RatelimitEnvironment, WhatHasNoMeaningIsToldOnceAReason) {
  const RatelimitEnvironment read = read_ratelimit_environment(
      Lines{"REDIS_URL=h", "REDIS_POOL_SIZE=10", "REDIS_PIPELINE_WINDOW=1ms", "REDIS_PERSECOND=true",
            "REDIS_PERSECOND_URL=g", "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION=true", "REDIS_SENTINEL_AUTH=x",
            "REDIS_TLS_CACERT=/ca", "REDIS_PIPELINE_LIMIT="});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_THAT(read.warnings, ElementsAre("REDIS_SENTINEL_AUTH has no effect: REDIS_TYPE is not SENTINEL",
                                         "REDIS_TLS_CACERT has no effect: REDIS_TLS is not true",
                                         testing::StartsWith("REDIS_POOL_SIZE, REDIS_PIPELINE_WINDOW have no effect: "),
                                         testing::StartsWith("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION has no effect: "),
                                         testing::StartsWith("REDIS_PERSECOND, REDIS_PERSECOND_URL have no effect: ")));
}

TEST(RatelimitEnvironment, MistakesNameTheVariable) {
  EXPECT_EQ(error({"REDIS_URL=h", "REDIS_TYPE=ring"}),
            "REDIS_TYPE: expected SINGLE, SENTINEL or CLUSTER, found 'ring'");
  EXPECT_EQ(error({"REDIS_URL=h", "REDIS_SOCKET_TYPE=udp"}), "REDIS_SOCKET_TYPE: expected tcp or unix, found 'udp'");
  EXPECT_EQ(error({"REDIS_URL=h", "REDIS_TLS=yes"}), "REDIS_TLS: expected true or false, found 'yes'");
  EXPECT_THAT(error({"REDIS_URL=h:1", "REDIS_SOCKET_TYPE=unix"}), HasSubstr("the socket's absolute path"));
  EXPECT_EQ(
      error({"REDIS_URL=/run/r.sock", "REDIS_TYPE=CLUSTER"}),
      "REDIS_URL: with REDIS_TYPE CLUSTER expected addresses HOST:PORT, as only one server (SINGLE) is reached by a "
      "socket's path, found '/run/r.sock'");
  EXPECT_THAT(error({"REDIS_URL=mymaster,/run/r.sock", "REDIS_TYPE=sentinel"}), HasSubstr("with REDIS_TYPE sentinel"));
  EXPECT_THAT(error({"REDIS_URL=h:1", "REDIS_TYPE=CLUSTER", "REDIS_SOCKET_TYPE=unix"}),
              HasSubstr("found 'h:1' and REDIS_SOCKET_TYPE unix"));
  EXPECT_THAT(error({"REDIS_URL=a,b"}), HasSubstr("REDIS_TYPE=CLUSTER"));
  for (const char* url : {"REDIS_URL=m", "REDIS_URL=,h", "REDIS_URL=m,", "REDIS_URL=a:1,b:2", "REDIS_URL=[::1]:1,b"}) {
    EXPECT_THAT(error({url, "REDIS_TYPE=SENTINEL"}), HasSubstr("NAME,HOST:PORT")) << url;
  }
  const std::string told = error({"REDIS_URL=redis://u:secret@h", "REDIS_TYPE=CLUSTER"});
  EXPECT_THAT(told, HasSubstr("without a scheme"));
  EXPECT_THAT(told, testing::Not(HasSubstr("secret")));
}

Resolved resolve(const char* file, const Lines& environment, const std::vector<sluice::config::Flag>& flags = {}) {
  std::optional<sluice::config::File> read;
  if (file != nullptr) read = sluice::config::File{.name = "s.yaml", .text = file};
  return sluice::config::resolve(read, environment, flags);
}

std::string origin(const Resolved& resolved, std::string_view name) {
  for (std::size_t row = 0; row < resolved.sources.size(); ++row) {
    if (sluice::config::all_settings()[row].name == name) return resolved.sources[row].origin;
  }
  return "no such setting";
}

TEST(RatelimitEnvironment, CountsWhereNothingOfOursSaysWhereRedisIs) {
  const Lines theirs{"REDIS_URL=h:1", "REDIS_AUTH=secret", "REDIS_TIMEOUT=1s", "REDIS_POOL_SIZE=3"};
  const Resolved taken = resolve("threads: 1", theirs);
  EXPECT_THAT(taken.errors, IsEmpty());
  EXPECT_EQ(taken.settings.redis_url, "redis://h:1");
  EXPECT_EQ(taken.settings.redis_password, "secret");
  EXPECT_EQ(origin(taken, "store.redis.url"), "REDIS_URL");
  EXPECT_EQ(origin(taken, "store.redis.password"), "REDIS_AUTH");
  EXPECT_EQ(taken.settings.redis_timeout, std::chrono::seconds(1));
  EXPECT_EQ(taken.warnings.size(), 1U);
  // One of ours wins, and the rest is theirs.
  EXPECT_EQ(resolve("store: { redis: { timeout: 2s } }", theirs).settings.redis_timeout, std::chrono::seconds(2));
  EXPECT_EQ(resolve("store: { redis: { timeout: 2s } }", theirs).settings.redis_url, "redis://h:1");
  // Where Redis is comes as a whole.
  Lines both = theirs;
  both.emplace_back("SLUICE_STORE_REDIS_URL=redis://ours");
  for (const Resolved& ours : {resolve("store: { redis: { url: redis://ours } }", theirs), resolve(nullptr, both),
                               resolve(nullptr, theirs, {{.name = "store.redis.url", .values = {"redis://ours"}}})}) {
    EXPECT_EQ(ours.settings.redis_url, "redis://ours");
    EXPECT_EQ(ours.settings.redis_password, "");
    EXPECT_EQ(ours.settings.redis_timeout, std::chrono::milliseconds(20));
    EXPECT_THAT(ours.warnings, IsEmpty());
  }
  both.back() = "SLUICE_STORE_REDIS_URL=";
  EXPECT_EQ(resolve(nullptr, both).settings.redis_url, "");
}

TEST(RatelimitEnvironment, ValuesAreReadAsOurs) {
  EXPECT_THAT(resolve(nullptr, {"REDIS_URL=h", "REDIS_TIMEOUT=1us"}).errors,
              ElementsAre("REDIS_TIMEOUT: expected 1ms to 10s, found '1us'"));
}

TEST(RatelimitEnvironment, TheManualHasEachVariable) {
  std::ifstream in(SLUICE_SOURCE_DIR "/docs/envoy.md");
  const std::string manual((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  for (const char* name : {"REDIS_URL",
                           "REDIS_TYPE",
                           "REDIS_SOCKET_TYPE",
                           "REDIS_AUTH",
                           "REDIS_SENTINEL_AUTH",
                           "REDIS_TLS",
                           "REDIS_TLS_CACERT",
                           "REDIS_TLS_CLIENT_CERT",
                           "REDIS_TLS_CLIENT_KEY",
                           "REDIS_TLS_SKIP_HOSTNAME_VERIFICATION",
                           "REDIS_TIMEOUT",
                           "REDIS_POOL_SIZE",
                           "REDIS_POOL_ON_EMPTY_BEHAVIOR",
                           "REDIS_PIPELINE_WINDOW",
                           "REDIS_PIPELINE_LIMIT",
                           "REDIS_CLUSTER_PIPELINE_PARALLELISM",
                           "REDIS_STARTUP_INITIAL_INTERVAL",
                           "REDIS_STARTUP_MAX_INTERVAL",
                           "REDIS_STARTUP_MAX_ELAPSED_TIME",
                           "REDIS_HEALTH_CHECK_ACTIVE_CONNECTION",
                           "REDIS_PERSECOND"}) {
    EXPECT_THAT(manual, HasSubstr("`" + std::string(name) + "`")) << name;
  }
}

}  // namespace
