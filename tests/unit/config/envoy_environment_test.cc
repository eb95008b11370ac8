// The environment of envoyproxy/ratelimit, whole.
#include "config/envoy_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/resolve.h"

namespace {

using namespace std::chrono_literals;
using sluice::config::EnvoyEnvironment;
using sluice::config::EnvoyOptions;
using sluice::config::read_envoy_environment;
using sluice::config::resolve;
using sluice::config::Resolved;
using sluice::config::Settings;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Lines = std::vector<std::string>;

std::string value_of(const EnvoyEnvironment& read, const std::string& setting) {
  const auto found = std::ranges::find(read.values, setting, [](const auto& value) { return value.setting; });
  return found == read.values.end() ? "nothing" : found->value;
}

Resolved in_place(Lines environment) {
  environment.emplace_back("SLUICE_COMPAT=envoyproxy");
  return resolve(std::nullopt, environment, {});
}

TEST(EnvoyEnvironment, CountsMoreThanAServerFileAndLessThanOurVariables) {
  const sluice::config::File file{
      "sluice.yaml", "compat: envoyproxy\nlisten: { http: 127.0.0.1:1, grpc: 127.0.0.1:2 }\npolicy: [p/]\n"};
  const Resolved alone = resolve(file, Lines{}, {});
  EXPECT_EQ(alone.settings.listen_http.address.port, 1);
  EXPECT_THAT(alone.settings.policy, SizeIs(1));
  const Lines theirs{"PORT=3", "GRPC_PORT=4", "SLUICE_LISTEN_GRPC=127.0.0.1:5", "RUNTIME_ROOT=/data"};
  const Resolved resolved = resolve(file, theirs, {});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.listen_http.address.port, 3);
  EXPECT_EQ(resolved.settings.listen_grpc.address.port, 5);
  EXPECT_THAT(resolved.settings.policy, IsEmpty());
  EXPECT_THAT(resolved.warnings, Contains(HasSubstr("policy: gives way to RUNTIME_ROOT")));
}

TEST(EnvoyEnvironment, TlsWithoutACertificateIsRefused) {
  EXPECT_THAT(in_place({"GRPC_SERVER_USE_TLS=true"}).errors, Contains(HasSubstr("GRPC_SERVER_TLS_CERT")));
}

TEST(EnvoyEnvironment, DefaultsAreItsOwn) {
  const EnvoyEnvironment read = read_envoy_environment({});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_THAT(read.warnings, IsEmpty());
  EXPECT_EQ(value_of(read, "listen.http"), "0.0.0.0:8080");
  EXPECT_EQ(value_of(read, "listen.grpc"), "0.0.0.0:8081");
  EXPECT_EQ(value_of(read, "listen.admin"), "0.0.0.0:6070");
  EXPECT_EQ(value_of(read, "log.level"), "warn");
  EXPECT_EQ(read.options.statistics, EnvoyOptions::Statistics::statsd);
  EXPECT_EQ(read.options.runtime_root, "/srv/runtime_data/current");
  const Resolved resolved = in_place({});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.redis_url, "unix:///var/run/nutcracker/ratelimit.sock");
  EXPECT_EQ(resolved.settings.per_second, nullptr);
}

TEST(EnvoyEnvironment, NothingIsReadWithoutTheSwitch) {
  const Lines environment{"PORT=1", "USE_PROMETHEUS=nonsense", "BACKEND_TYPE=memcache"};
  const Resolved resolved = resolve(std::nullopt, environment, {});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.listen_http.address.port, 8080);
  EXPECT_EQ(resolved.settings.redis_url, "");
}

TEST(EnvoyEnvironment, SluicesOwnSettingsWin) {
  const Lines environment{"SLUICE_COMPAT=envoyproxy", "PORT=1", "SLUICE_LISTEN_HTTP=:2",
                          "SLUICE_STORE_REDIS_URL=", "REDIS_URL=h:1"};
  const Resolved resolved = resolve(std::nullopt, environment, {});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.listen_http.address.port, 2);
  EXPECT_EQ(resolved.settings.redis_url, "");
}

TEST(EnvoyEnvironment, Listeners) {
  const EnvoyEnvironment read =
      read_envoy_environment(Lines{"HOST=::1", "PORT=1", "DEBUG_HOST=127.0.0.1", "DEBUG_PORT=2", "GRPC_HOST=h",
                                   "GRPC_PORT=3", "GRPC_MAX_CONNECTION_AGE=1h30m"});
  EXPECT_EQ(value_of(read, "listen.http"), "[::1]:1");
  EXPECT_EQ(value_of(read, "listen.admin"), "127.0.0.1:2");
  EXPECT_EQ(value_of(read, "listen.grpc"), "h:3");
  const auto tls = in_place({"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=/c.pem", "GRPC_SERVER_TLS_KEY=/k.pem",
                             "GRPC_CLIENT_TLS_CACERT=/ca.pem", "GRPC_CLIENT_TLS_SAN=envoy"})
                       .settings.listen_grpc.tls;
  EXPECT_EQ(tls.cert, "/c.pem");
  EXPECT_EQ(tls.key, "/k.pem");
  EXPECT_EQ(tls.client_ca, "/ca.pem");
  EXPECT_THAT(tls.client_names, testing::ElementsAre("envoy"));
  EXPECT_FALSE(in_place({"GRPC_SERVER_TLS_CERT=/c.pem"}).settings.listen_grpc.tls.enabled());
  EXPECT_EQ(in_place({"GRPC_MAX_CONNECTION_AGE=1h30m"}).settings.grpc_max_connection_age, 90min);
  EXPECT_EQ(in_place({"GRPC_UDS=/run/rl.sock"}).settings.listen_grpc.address.socket, "/run/rl.sock");
}

TEST(EnvoyEnvironment, DecisionsAndHeaders) {
  const EnvoyEnvironment read = read_envoy_environment(
      Lines{"MERGE_DOMAIN_CONFIG=true", "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=1", "SHADOW_MODE=t", "QUOTA_MODE=True",
            "RESPONSE_DYNAMIC_METADATA=true", "NEAR_LIMIT_RATIO=0.5", "LIMIT_RESPONSE_HEADERS_ENABLED=true",
            "LIMIT_LIMIT_HEADER=X-L", "LIMIT_REMAINING_HEADER=X-R", "LIMIT_RESET_HEADER=X-S", "CACHE_KEY_PREFIX=p:"});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_TRUE(read.options.merges_domains && read.options.stops_when_over && read.options.shadow_mode &&
              read.options.quota_mode && read.options.dynamic_metadata && read.options.limit_headers);
  EXPECT_FLOAT_EQ(read.options.near_limit_ratio, 0.5F);
  EXPECT_EQ(read.options.limit_header + read.options.remaining_header + read.options.reset_header, "X-LX-RX-S");
  EXPECT_EQ(value_of(read, "store.redis.prefix"), "p:sluice:");
}

TEST(EnvoyEnvironment, Statistics) {
  const EnvoyEnvironment read = read_envoy_environment(
      Lines{"USE_STATSD=false", "USE_DOG_STATSD=true", "STATSD_HOST=s", "STATSD_PORT=9", "STATS_FLUSH_INTERVAL=1s",
            "EXTRA_TAGS=a:b,c:d:e", "USE_DOG_STATSD_MOGRIFIERS=ONE", "DOG_STATSD_MOGRIFIER_ONE_PATTERN=^(.*)$",
            "DOG_STATSD_MOGRIFIER_ONE_NAME=$1", "DOG_STATSD_MOGRIFIER_ONE_TAGS=k:$1"});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_EQ(read.options.statistics, EnvoyOptions::Statistics::dogstatsd);
  EXPECT_EQ(read.options.flush_interval, 1s);
  EXPECT_THAT(read.options.extra_tags, ElementsAre(std::pair("a", "b"), std::pair("c", "d:e")));
  ASSERT_THAT(read.options.mogrifiers, SizeIs(1));
  EXPECT_THAT(read.options.mogrifiers[0].tags, ElementsAre(std::pair("k", "$1")));
  EXPECT_EQ(read_envoy_environment(Lines{"DISABLE_STATS=true"}).options.statistics, EnvoyOptions::Statistics::none);
}

TEST(EnvoyEnvironment, LimitsPerSecondHaveARedisOfTheirOwn) {
  const Resolved resolved =
      in_place({"REDIS_URL=a:1", "REDIS_SOCKET_TYPE=tcp", "REDIS_AUTH=secret", "REDIS_PERSECOND=true",
                "REDIS_PERSECOND_URL=b:2", "REDIS_PERSECOND_SOCKET_TYPE=tcp", "REDIS_PERSECOND_TIMEOUT=7ms"});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.redis_url, "redis://a:1");
  ASSERT_NE(resolved.settings.per_second, nullptr);
  EXPECT_EQ(resolved.settings.per_second->redis_url, "redis://b:2");
  EXPECT_EQ(resolved.settings.per_second->redis_password, "");
  EXPECT_EQ(resolved.settings.per_second->redis_timeout, 7ms);
  EXPECT_THAT(in_place({"REDIS_URL=a:1", "REDIS_PERSECOND=true", "REDIS_PERSECOND_TYPE=X"}).errors,
              Contains(HasSubstr("REDIS_PERSECOND_TYPE: expected")));
}

TEST(EnvoyEnvironment, TheSecondRedisTellsWhatHasNoEffectByItsOwnNames) {
  const Resolved resolved =
      in_place({"REDIS_URL=a:1", "REDIS_TLS_CACERT=/ca", "REDIS_PERSECOND=true", "REDIS_PERSECOND_URL=b:2",
                "REDIS_PERSECOND_POOL_SIZE=3", "REDIS_PERSECOND_SENTINEL_AUTH=x", "REDIS_PERSECOND_TIMEOUT=30s"});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.per_second->redis_timeout, 10s);
  EXPECT_THAT(
      resolved.warnings,
      testing::UnorderedElementsAre("REDIS_TLS_CACERT has no effect: REDIS_TLS is not true",
                                    "REDIS_PERSECOND_SENTINEL_AUTH has no effect: REDIS_PERSECOND_TYPE is not SENTINEL",
                                    testing::StartsWith("REDIS_PERSECOND_POOL_SIZE has no effect: "),
                                    testing::StartsWith("REDIS_PERSECOND_TIMEOUT: '30s' counts as 10s")));
}

TEST(EnvoyEnvironment, TimesBeyondOurs) {
  for (const char* age : {"0", "0s", "10000h"}) {
    const EnvoyEnvironment read = read_envoy_environment(Lines{"GRPC_MAX_CONNECTION_AGE=" + std::string(age)});
    EXPECT_EQ(value_of(read, "grpc.max_connection_age"), "366d");
    EXPECT_THAT(read.warnings, ElementsAre(HasSubstr("'" + std::string(age) + "' counts as 366 days"))) << age;
  }
  for (const char* timeout : {"0", "0s", "1m", "10.001s", "-1s"}) {
    const Resolved resolved = in_place({"REDIS_URL=a:1", "REDIS_TIMEOUT=" + std::string(timeout)});
    EXPECT_THAT(resolved.errors, IsEmpty()) << timeout;
    EXPECT_EQ(resolved.settings.redis_timeout, 10s) << timeout;
    EXPECT_THAT(resolved.warnings, ElementsAre(HasSubstr("counts as 10s"))) << timeout;
  }
  EXPECT_THAT(in_place({"REDIS_URL=a:1", "REDIS_TIMEOUT=-x"}).errors, Contains(HasSubstr("REDIS_TIMEOUT")));
}

TEST(EnvoyEnvironment, BadValuesAreErrors) {
  const auto error = [](const std::string& line) {
    const EnvoyEnvironment read = read_envoy_environment(Lines{line});
    return read.errors.size() == 1 ? read.errors.front() : std::to_string(read.errors.size()) + " errors";
  };
  EXPECT_EQ(error("PORT=http"), "PORT: expected a whole number of 0 to 65535, found 'http'");
  EXPECT_EQ(error("GRPC_PORT=65536"), "GRPC_PORT: expected a whole number of 0 to 65535, found '65536'");
  EXPECT_EQ(error("SHADOW_MODE=maybe"), "SHADOW_MODE: expected true or false, found 'maybe'");
  for (const char* ratio : {"0,8", " 1", "1x", "nan(1)"}) {
    EXPECT_EQ(error("NEAR_LIMIT_RATIO=" + std::string(ratio)),
              "NEAR_LIMIT_RATIO: expected a number of 0 to 1, found '" + std::string(ratio) + "'");
  }
  EXPECT_EQ(error("STATS_FLUSH_INTERVAL=0s"), "STATS_FLUSH_INTERVAL: expected a duration above 0, found '0s'");
  EXPECT_EQ(error("GRPC_MAX_CONNECTION_AGE=long"),
            "GRPC_MAX_CONNECTION_AGE: expected a duration such as 10s, found 'long'");
  EXPECT_THAT(error("BACKEND_TYPE=memcache"), HasSubstr("no memcached here"));
  EXPECT_THAT(error("CONFIG_TYPE=GRPC_XDS_SOTW"), HasSubstr("do not come over xDS"));
  EXPECT_THAT(error("LOG_LEVEL=loud"), HasSubstr("expected trace, debug"));
  EXPECT_THAT(error("LIMIT_RESET_HEADER=a b"), HasSubstr("name of a header field"));
  EXPECT_THAT(error("USE_PROMETHEUS=true"), HasSubstr("only one of them"));
  EXPECT_THAT(error("EXTRA_TAGS=a"), HasSubstr("NAME:VALUE"));
  EXPECT_THAT(read_envoy_environment(Lines{"USE_DOG_STATSD_MOGRIFIERS=A"}).errors,
              Contains(HasSubstr("DOG_STATSD_MOGRIFIER_A_PATTERN")));
}

TEST(EnvoyEnvironment, WhatMakesNoSenseIsToldInOneLineEach) {
  const EnvoyEnvironment read =
      read_envoy_environment(Lines{"MEMCACHE_HOST_PORT=h:1", "XDS_CLIENT_BACKOFF_JITTER=true",
                                   "LOCAL_CACHE_SIZE_IN_BYTES=1000", "FORCE_START_WITHOUT_INITIAL_CONFIG=true",
                                   "SOMETHING_ELSE=1", "GRPC_CLIENT_TLS_CACERT=/ca", "GRPC_CLIENT_TLS_SAN="});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_THAT(read.warnings, SizeIs(5));
  EXPECT_THAT(read.warnings, Contains("GRPC_CLIENT_TLS_CACERT has no effect: GRPC_SERVER_USE_TLS is not true"));
}

TEST(EnvoyEnvironment, TracingGoesToACollector) {
  const Resolved resolved =
      in_place({"SLUICE_STORE_REDIS_URL=", "TRACING_ENABLED=true", "TRACING_SERVICE_NAME=limits",
                "TRACING_SAMPLING_RATE=0.5", "OTEL_EXPORTER_OTLP_ENDPOINT=http://other:1",
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://collector:4318/v1/traces", "TRACING_SERVICE_NAMESPACE=n"});
  EXPECT_THAT(resolved.errors, IsEmpty());
  EXPECT_EQ(resolved.settings.tracing_endpoint, "http://collector:4318");
  EXPECT_EQ(resolved.settings.tracing_service, "limits");
  EXPECT_EQ(resolved.settings.tracing_sample_ratio, 0.5);
  EXPECT_THAT(resolved.warnings, ElementsAre(HasSubstr("TRACING_SERVICE_NAMESPACE has no effect: spans tell")));
  const Resolved bare = in_place({"SLUICE_STORE_REDIS_URL=", "TRACING_ENABLED=true"});
  EXPECT_EQ(bare.settings.tracing_endpoint, "https://localhost:4318");
  EXPECT_EQ(bare.settings.tracing_sample_ratio, 1);
  EXPECT_EQ(bare.settings.tracing_service, "RateLimit");
  const Resolved off = in_place({"SLUICE_STORE_REDIS_URL=", "OTEL_EXPORTER_OTLP_ENDPOINT=http://h:1"});
  EXPECT_EQ(off.settings.tracing_endpoint, "");
  EXPECT_THAT(off.warnings, ElementsAre("OTEL_EXPORTER_OTLP_ENDPOINT has no effect: TRACING_ENABLED is not true"));
  const Resolved grpc = in_place({"SLUICE_STORE_REDIS_URL=", "TRACING_ENABLED=true", "TRACING_EXPORTER_PROTOCOL=grpc"});
  EXPECT_EQ(grpc.settings.tracing_endpoint, "");
  EXPECT_THAT(grpc.warnings, ElementsAre(HasSubstr("TRACING_ENABLED, TRACING_EXPORTER_PROTOCOL have no effect")));
  EXPECT_THAT(in_place({"TRACING_ENABLED=true", "TRACING_EXPORTER_PROTOCOL=udp"}).errors,
              Contains(HasSubstr("expected http or grpc")));
}

TEST(EnvoyEnvironment, OddNumbersCountAsTheNearestThatMeanSomething) {
  const auto ratio = [](const std::string& value, std::size_t warnings) {
    const EnvoyEnvironment read = read_envoy_environment(Lines{"NEAR_LIMIT_RATIO=" + value});
    EXPECT_THAT(read.errors, IsEmpty()) << value;
    EXPECT_THAT(read.warnings, SizeIs(warnings)) << value;
    return read.options.near_limit_ratio;
  };
  EXPECT_FLOAT_EQ(ratio("+0.8", 0), 0.8F);
  EXPECT_FLOAT_EQ(ratio(".5", 0), 0.5F);
  EXPECT_FLOAT_EQ(ratio("1e-3", 0), 0.001F);
  EXPECT_FLOAT_EQ(ratio("0x1p-2", 0), 0.25F);
  EXPECT_FLOAT_EQ(ratio("1.5", 1), 1);
  EXPECT_FLOAT_EQ(ratio("-1", 1), 0);
  EXPECT_FLOAT_EQ(ratio("NaN", 1), 1);
  EXPECT_FLOAT_EQ(ratio("Inf", 1), 1);
  const EnvoyEnvironment read = read_envoy_environment(Lines{"STATS_FLUSH_INTERVAL=1ms", "LOG_FORMAT=xml"});
  EXPECT_THAT(read.errors, IsEmpty());
  EXPECT_EQ(read.options.flush_interval, 10ms);
  EXPECT_EQ(value_of(read, "log.format"), "text");
  EXPECT_THAT(read.warnings, testing::UnorderedElementsAre("STATS_FLUSH_INTERVAL: '1ms' counts as 10ms",
                                                           "LOG_FORMAT: 'xml' counts as text"));
}

TEST(EnvoyEnvironment, AnyPrefixOfKeysIsTaken) {
  const auto prefix = [](const std::string& value) {
    const Resolved resolved = in_place({"SLUICE_STORE_REDIS_URL=", "CACHE_KEY_PREFIX=" + value});
    EXPECT_THAT(resolved.errors, IsEmpty()) << value;
    EXPECT_THAT(resolved.warnings, SizeIs(1)) << value;
    return resolved.settings.redis_prefix;
  };
  EXPECT_EQ(prefix("{a}:"), "%7Ba%7D:sluice:");
  EXPECT_EQ(prefix("a b\n"), "a%20b%0Asluice:");
  const std::string longest(300, 'x');
  EXPECT_THAT(prefix(longest), testing::MatchesRegex("x{20}%[0-9a-f]{16}:sluice:"));
  EXPECT_NE(prefix(longest), prefix(longest + "y"));
}

TEST(EnvoyEnvironment, AnEmptyAppDirectoryIsNone) {
  EXPECT_EQ(read_envoy_environment(Lines{"RUNTIME_APPDIRECTORY="}).options.runtime_app_directory, "");
  EXPECT_EQ(read_envoy_environment({}).options.runtime_app_directory, "config");
}

TEST(EnvoyEnvironment, WhatNoSettingShowsIsListed) {
  const Resolved resolved = in_place({"RUNTIME_ROOT=/data", "REDIS_URL=a:1", "REDIS_PERSECOND=true",
                                      "REDIS_PERSECOND_URL=redis://:secret@b:2", "NEAR_LIMIT_RATIO=0.9",
                                      "USE_STATSD=false", "USE_PROMETHEUS=true", "EXTRA_TAGS=a:1,b:2,a:3"});
  EXPECT_THAT(resolved.errors, IsEmpty());
  const auto shown = [&](const std::string& variable) {
    const auto found = std::ranges::find(resolved.variables, variable, [](const auto& one) { return one.first; });
    return found == resolved.variables.end() ? "nothing" : found->second.values.front() + " # " + found->second.origin;
  };
  EXPECT_EQ(shown("RUNTIME_ROOT"), "/data # environment");
  EXPECT_EQ(shown("RUNTIME_APPDIRECTORY"), "config # default of --compat envoyproxy");
  EXPECT_EQ(shown("NEAR_LIMIT_RATIO"), "0.9 # environment");
  EXPECT_EQ(shown("EXTRA_TAGS"), "a:3,b:2 # environment");
  EXPECT_EQ(shown("PROMETHEUS_ADDR"), ":9090 # default of --compat envoyproxy");
  EXPECT_EQ(shown("REDIS_PERSECOND_URL"), "redis://:***@b:2 # REDIS_PERSECOND_URL");
  EXPECT_THAT(resolve(std::nullopt, Lines{}, {}).variables, IsEmpty());
}

}  // namespace
