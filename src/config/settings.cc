#include "config/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

#include "base/duration.h"
#include "http_client/upstream.h"

namespace sluice::config {
namespace {

using std::chrono::nanoseconds;

template <std::uint64_t kLeast, std::uint64_t kMost>
Result<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < kLeast || value > kMost) {
    return Error{"expected a whole number of " + std::to_string(kLeast) + " to " + std::to_string(kMost) + ", found '" +
                 std::string(text) + "'"};
  }
  return value;
}

constexpr std::uint64_t kMostThreads = 256;

Result<std::uint64_t> parse_threads(std::string_view text) {
  if (text == "auto") return std::uint64_t{0};
  auto number = parse_number<1, kMostThreads>(text);
  if (!number) return Error{"expected auto or " + number.error().message.substr(sizeof("expected ") - 1)};
  return number;
}

template <std::int64_t kLeastMilliseconds, std::int64_t kMostMilliseconds>
Result<nanoseconds> parse_duration_of(std::string_view text) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  constexpr nanoseconds least = std::chrono::milliseconds(kLeastMilliseconds);
  constexpr nanoseconds most = std::chrono::milliseconds(kMostMilliseconds);
  if (*duration < least || *duration > most) {
    return Error{"expected " + sluice::to_text(least) + " to " + sluice::to_text(most) + ", found '" +
                 std::string(text) + "'"};
  }
  return *duration;
}

template <typename T, std::size_t kCount>
Result<T> parse_name(std::string_view text, const std::array<std::pair<std::string_view, T>, kCount>& names) {
  std::string expected;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    if (!expected.empty()) expected += ", ";
    expected += name;
  }
  return Error{"expected one of " + expected + ", found '" + std::string(text) + "'"};
}

Result<bool> parse_bool(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, bool>, 6> names{
      {{"true", true}, {"false", false}, {"yes", true}, {"no", false}, {"on", true}, {"off", false}}};
  return parse_name(text, names);
}

// Is the text of the script to be the literal one?
Result<bool> parse_script_style(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> names{{{"fast", false}, {"literal", true}}};
  return parse_name(text, names);
}

Result<log::Level> parse_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, log::Level>, 4> names{{{"debug", log::Level::debug},
                                                                          {"info", log::Level::info},
                                                                          {"warn", log::Level::warn},
                                                                          {"error", log::Level::error}}};
  return parse_name(text, names);
}

Result<log::Format> parse_format(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, log::Format>, 2> names{
      {{"text", log::Format::text}, {"json", log::Format::json}}};
  return parse_name(text, names);
}

Result<Compat> parse_compat(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Compat>, 2> names{
      {{"off", Compat::none}, {"envoyproxy", Compat::envoyproxy}}};
  return parse_name(text, names);
}

Result<Throttle> parse_throttle(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Throttle>, 3> names{
      {{"off", Throttle::off}, {"200", Throttle::ok}, {"429", Throttle::too_many}}};
  return parse_name(text, names);
}

Result<DenialKeys> parse_denial_keys(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, DenialKeys>, 3> names{
      {{"plain", DenialKeys::plain}, {"hashed", DenialKeys::hashed}, {"none", DenialKeys::none}}};
  return parse_name(text, names);
}

// What the store itself knows better is its to refuse; this catches what is no URL at all.
Result<std::string> parse_redis_url(std::string_view text) {
  const std::string_view scheme = text.substr(0, std::min(text.find("://"), text.size()));
  if (text.empty() || scheme == "unix" || scheme.starts_with("redis")) return std::string(text);
  return Error{"expected a URL such as redis://127.0.0.1:6379 or unix:///run/redis.sock, found '" +
               without_password(text) + "'"};
}

Result<std::string> parse_text(std::string_view text) {
  if (text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) return Error{"expected one line"};
  return std::string(text);
}

Result<std::string> parse_endpoint(std::string_view text) {
  if (!text.empty()) {
    if (const auto upstream = http_client::parse_upstream(text); !upstream) return upstream.error();
  }
  return std::string(text);
}

Result<std::string> parse_service(std::string_view text) {
  constexpr std::size_t most = 100;
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  if (is_plain && !text.empty() && text.size() <= most) return std::string(text);
  return Error{"expected 1 to 100 printable characters without spaces"};
}

Result<double> parse_ratio(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= 1) return value;
  return Error{"expected a number of 0 to 1, found '" + std::string(text) + "'"};
}

Result<SentinelTls> parse_sentinel_tls(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, SentinelTls>, 3> names{
      {{"same", SentinelTls::same}, {"on", SentinelTls::on}, {"off", SentinelTls::off}}};
  return parse_name(text, names);
}

Result<std::string> parse_prefix(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '{' && c != '}'; });
  if (plain && text.size() <= 64) return std::string(text);
  return Error{"expected at most 64 printable characters without spaces and braces"};
}

template <auto kMember, auto kParse>
std::optional<Error> set_one(Settings& settings, std::span<const std::string> values) {
  auto value = kParse(values.front());
  if (!value) return value.error();
  settings.*kMember = *std::move(value);
  return std::nullopt;
}

std::optional<Error> set_policy(Settings& settings, std::span<const std::string> values) {
  if (std::ranges::any_of(values, [](const std::string& path) { return path.empty(); })) {
    return Error{"expected a file or directory, found an empty name"};
  }
  settings.policy.assign(values.begin(), values.end());
  return std::nullopt;
}

std::optional<Error> set_proxy_protocol(Settings& settings, std::span<const std::string> values) {
  for (const std::string& name : values) {
    if (name != "grpc" && name != "http" && name != "resp" && name != "admin") {
      return Error{"expected names of listeners: grpc, http, resp, admin; found '" + name + "'"};
    }
  }
  settings.listen_proxy_protocol.assign(values.begin(), values.end());
  return std::nullopt;
}

constexpr std::int64_t kSecond = 1'000;  // in milliseconds
constexpr std::int64_t kHour = 3'600 * kSecond;
constexpr std::int64_t kDay = 24 * kHour;

template <auto kListen, auto kMember, auto kParse>
std::optional<Error> set_listen(Settings& settings, std::span<const std::string> values) {
  auto value = kParse(values.front());
  if (!value) return value.error();
  settings.*kListen.*kMember = *std::move(value);
  return std::nullopt;
}

template <auto kListen, auto kMember, auto kParse>
std::optional<Error> set_tls(Settings& settings, std::span<const std::string> values) {
  auto value = kParse(values.front());
  if (!value) return value.error();
  (settings.*kListen).tls.*kMember = *std::move(value);
  return std::nullopt;
}

template <auto kListen>
std::optional<Error> set_client_names(Settings& settings, std::span<const std::string> values) {
  if (std::ranges::any_of(values, [](const std::string& name) { return name.empty(); })) {
    return Error{"expected a name as it stands in certificates, found an empty one"};
  }
  (settings.*kListen).tls.client_names.assign(values.begin(), values.end());
  return std::nullopt;
}

// May clients show no certificate?
Result<bool> parse_client_cert(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, bool>, 2> names{{{"required", false}, {"optional", true}}};
  return parse_name(text, names);
}

/// What can be chosen for each listener beside its address. `names` of the settings, in this order.
template <auto kListen>
constexpr std::array<Setting, 6> listener_settings(const std::array<std::string_view, 6>& names) {
  return {
      {{.name = names[0],
        .value = "NUMBER",
        .fallback = "0",
        .help = "Most connections at once of this listener; 0: no bound but max_connections",
        .set = set_listen<kListen, &Listen::max_connections, parse_number<0, 1'000'000>>},
       {.name = names[1],
        .value = "PATH",
        .fallback = "",
        .help = "TLS: our certificate and its chain (PEM), read again when it changes; without it no TLS",
        .is_path = true,
        .set = set_tls<kListen, &tls::ServerOptions::cert, parse_text>},
       {.name = names[2],
        .value = "PATH",
        .fallback = "",
        .help = "Key (PEM) of that certificate, without a passphrase",
        .is_path = true,
        .set = set_tls<kListen, &tls::ServerOptions::key, parse_text>},
       {.name = names[3],
        .value = "PATH",
        .fallback = "",
        .help = "Certificates (PEM) of the authorities that clients must be certified by; without it they show none",
        .is_path = true,
        .set = set_tls<kListen, &tls::ServerOptions::client_ca, parse_text>},
       {.name = names[4],
        .value = "NAME",
        .fallback = "",
        .help = "Names (SAN: DNS, URI, email) of which a client's certificate must have one; without them any will do",
        .is_list = true,
        .set = set_client_names<kListen>},
       {.name = names[5],
        .value = "MODE",
        .fallback = "required",
        .help = "Must clients show a certificate, where client_ca is set? required or optional",
        .set = set_tls<kListen, &tls::ServerOptions::client_optional, parse_client_cert>}}};
}

constexpr auto kListenerSettings = std::to_array({
    listener_settings<&Settings::listen_grpc>({"listen.grpc.max_connections", "listen.grpc.tls.cert",
                                               "listen.grpc.tls.key", "listen.grpc.tls.client_ca",
                                               "listen.grpc.tls.client_names", "listen.grpc.tls.client_cert"}),
    listener_settings<&Settings::listen_http>({"listen.http.max_connections", "listen.http.tls.cert",
                                               "listen.http.tls.key", "listen.http.tls.client_ca",
                                               "listen.http.tls.client_names", "listen.http.tls.client_cert"}),
    listener_settings<&Settings::listen_resp>({"listen.resp.max_connections", "listen.resp.tls.cert",
                                               "listen.resp.tls.key", "listen.resp.tls.client_ca",
                                               "listen.resp.tls.client_names", "listen.resp.tls.client_cert"}),
    listener_settings<&Settings::listen_admin>({"listen.admin.max_connections", "listen.admin.tls.cert",
                                                "listen.admin.tls.key", "listen.admin.tls.client_ca",
                                                "listen.admin.tls.client_names", "listen.admin.tls.client_cert"}),
});

constexpr auto kPlainSettings = std::to_array<Setting>({
    {.name = "compat",
     .value = "SERVICE",
     .fallback = "off",
     .help = "envoyproxy: take the place of envoyproxy/ratelimit, see docs/migration/envoyproxy.md",
     .set = set_one<&Settings::compat, parse_compat>},
    {.name = "listen.grpc",
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8081",
     .help = "Envoy's RateLimitService v3 and gRPC health",
     .set = set_listen<&Settings::listen_grpc, &Listen::address, parse_address>},
    {.name = "listen.http",
     .value = "ADDRESS",
     .fallback = "127.0.0.1:8080",
     .help = "HTTP: /json, /v1/check, /healthcheck",
     .set = set_listen<&Settings::listen_http, &Listen::address, parse_address>},
    {.name = "listen.resp",
     .value = "ADDRESS",
     .fallback = "off",
     .help = "Redis protocol: CL.THROTTLE, THROTTLE, GCRA and SLUICE, see docs/resp.md",
     .set = set_listen<&Settings::listen_resp, &Listen::address, parse_address>},
    {.name = "listen.admin",
     .value = "ADDRESS",
     .fallback = "127.0.0.1:6070",
     .help = "HTTP for operators: /metrics, /healthcheck; keep it away from the public",
     .set = set_listen<&Settings::listen_admin, &Listen::address, parse_address>},
    {.name = "listen.proxy_protocol",
     .value = "LISTENER",
     .fallback = "",
     .help = "Listeners (http, grpc, resp, admin) on which every connection begins with a PROXY protocol header",
     .is_list = true,
     .set = set_proxy_protocol},
    {.name = "access.token_file",
     .value = "PATH",
     .fallback = "",
     .help = "File with lines of a name, a space and a bearer token: admin pages, figures and verbs that change "
             "counters ask "
             "for one, or a client certificate; read again when it has changed",
     .is_path = true,
     .set = set_one<&Settings::access_token_file, parse_text>},
    {.name = "policy",
     .value = "PATH",
     .fallback = "",
     .help = "Policy file or directory: what is limited",
     .is_list = true,
     .is_path = true,
     .set = set_policy},
    {.name = "policy_watch",
     .value = "BOOL",
     .fallback = "true",
     .help = "Load the policy again when its files have changed; false: on SIGHUP alone",
     .set = set_one<&Settings::policy_watch, parse_bool>},
    {.name = "store.redis.url",
     .value = "URL",
     .fallback = "",
     .help = "Redis that holds the counters, as redis://[user:password@]host[:port][/database]; rediss:// for TLS, "
             "unix://, "
             "redis-sentinel://, redis+cluster://: see docs/redis.md; without it they are in memory",
     .has_secret = true,
     .set = set_one<&Settings::redis_url, parse_redis_url>},
    {.name = "store.redis.master",
     .value = "NAME",
     .fallback = "",
     .help = "Name of the master: the addresses of the URL are sentinels",
     .set = set_one<&Settings::redis_master, parse_text>},
    {.name = "store.redis.username",
     .value = "TEXT",
     .fallback = "",
     .help = "User at Redis, when it is not in the URL",
     .set = set_one<&Settings::redis_username, parse_text>},
    {.name = "store.redis.password",
     .value = "TEXT",
     .fallback = "",
     .help = "Password at Redis, when it is not in the URL; better in a file",
     .is_secret = true,
     .set = set_one<&Settings::redis_password, parse_text>},
    {.name = "store.redis.password_file",
     .value = "PATH",
     .fallback = "",
     .help = "File whose first line is the password; read again when it has changed",
     .is_path = true,
     .set = set_one<&Settings::redis_password_file, parse_text>},
    {.name = "store.redis.tls.ca",
     .value = "PATH",
     .fallback = "",
     .help = "Certificates (PEM) of the authorities that Redis may be certified by; without it those of the system",
     .is_path = true,
     .set = set_one<&Settings::redis_tls_ca, parse_text>},
    {.name = "store.redis.tls.cert",
     .value = "PATH",
     .fallback = "",
     .help = "Certificate (PEM) that is shown to Redis",
     .is_path = true,
     .set = set_one<&Settings::redis_tls_cert, parse_text>},
    {.name = "store.redis.tls.key",
     .value = "PATH",
     .fallback = "",
     .help = "Key (PEM) of that certificate",
     .is_path = true,
     .set = set_one<&Settings::redis_tls_key, parse_text>},
    {.name = "store.redis.tls.server_name",
     .value = "NAME",
     .fallback = "",
     .help = "What the certificate of Redis must name; without it the host that is connected to",
     .set = set_one<&Settings::redis_tls_server_name, parse_text>},
    {.name = "store.redis.tls.verify",
     .value = "BOOL",
     .fallback = "true",
     .help = "false: any certificate will do, so anybody may pose as Redis",
     .set = set_one<&Settings::redis_tls_verify, parse_bool>},
    {.name = "store.redis.tls.verify_name",
     .value = "BOOL",
     .fallback = "true",
     .help = "false: the certificate may name any host, if a trusted authority gave it",
     .set = set_one<&Settings::redis_tls_verify_name, parse_bool>},
    {.name = "store.redis.sentinel.username",
     .value = "TEXT",
     .fallback = "",
     .help = "User at the sentinels themselves",
     .set = set_one<&Settings::redis_sentinel_username, parse_text>},
    {.name = "store.redis.sentinel.password",
     .value = "TEXT",
     .fallback = "",
     .help = "Password at the sentinels themselves; better in a file",
     .is_secret = true,
     .set = set_one<&Settings::redis_sentinel_password, parse_text>},
    {.name = "store.redis.sentinel.password_file",
     .value = "PATH",
     .fallback = "",
     .help = "File whose first line is the password at the sentinels",
     .is_path = true,
     .set = set_one<&Settings::redis_sentinel_password_file, parse_text>},
    {.name = "store.redis.sentinel.tls.mode",
     .value = "MODE",
     .fallback = "same",
     .help = "Do sentinels speak TLS? same (as Redis does), on or off",
     .set = set_one<&Settings::redis_sentinel_tls, parse_sentinel_tls>},
    {.name = "store.redis.sentinel.tls.ca",
     .value = "PATH",
     .fallback = "",
     .help = "As store.redis.tls.ca; when none of these is set, those of Redis hold for the sentinels, too",
     .is_path = true,
     .set = set_one<&Settings::redis_sentinel_tls_ca, parse_text>},
    {.name = "store.redis.sentinel.tls.cert",
     .value = "PATH",
     .fallback = "",
     .help = "As store.redis.tls.cert",
     .is_path = true,
     .set = set_one<&Settings::redis_sentinel_tls_cert, parse_text>},
    {.name = "store.redis.sentinel.tls.key",
     .value = "PATH",
     .fallback = "",
     .help = "As store.redis.tls.key",
     .is_path = true,
     .set = set_one<&Settings::redis_sentinel_tls_key, parse_text>},
    {.name = "store.redis.sentinel.tls.server_name",
     .value = "NAME",
     .fallback = "",
     .help = "As store.redis.tls.server_name",
     .set = set_one<&Settings::redis_sentinel_tls_server_name, parse_text>},
    {.name = "store.redis.sentinel.tls.verify",
     .value = "BOOL",
     .fallback = "true",
     .help = "As store.redis.tls.verify",
     .set = set_one<&Settings::redis_sentinel_tls_verify, parse_bool>},
    {.name = "store.redis.sentinel.tls.verify_name",
     .value = "BOOL",
     .fallback = "true",
     .help = "As store.redis.tls.verify_name",
     .set = set_one<&Settings::redis_sentinel_tls_verify_name, parse_bool>},
    {.name = "store.redis.cluster_groups",
     .value = "NUMBER",
     .fallback = "0",
     .help = "A cluster: so many hash tags for all keys, so that more share a call; 0: each first value is one",
     .set = set_one<&Settings::redis_cluster_groups, parse_number<0, 1'000'000>>},
    {.name = "store.redis.proxy",
     .value = "BOOL",
     .fallback = "false",
     .help = "The URL is that of a proxy (twemproxy, Envoy): one hash tag a call, and only EVALSHA and EVAL",
     .set = set_one<&Settings::redis_proxy, parse_bool>},
    {.name = "store.redis.wait_replicas",
     .value = "NUMBER",
     .fallback = "0",
     .help = "How many replicas must have a charge before it is answered; 0: none",
     .set = set_one<&Settings::redis_wait_replicas, parse_number<0, 100>>},
    {.name = "store.redis.wait_timeout",
     .value = "DURATION",
     .fallback = "10ms",
     .help = "How long that is waited for, at most store.redis.timeout; then it is answered all the same, and counted",
     .set = set_one<&Settings::redis_wait_timeout, parse_duration_of<1, 10 * kSecond>>},
    {.name = "store.redis.timeout",
     .value = "DURATION",
     .fallback = "20ms",
     .help = "How long a decision may wait for Redis",
     .set = set_one<&Settings::redis_timeout, parse_duration_of<1, 10 * kSecond>>},
    {.name = "store.redis.prefix",
     .value = "TEXT",
     .fallback = "sluice:",
     .help = "What the names of all keys in Redis begin with",
     .set = set_one<&Settings::redis_prefix, parse_prefix>},
    {.name = "store.redis.failures",
     .value = "NUMBER",
     .fallback = "5",
     .help = "Failures in a row after which Redis is not asked but probed",
     .set = set_one<&Settings::redis_failures, parse_number<1, 1'000'000>>},
    {.name = "store.redis.probe_interval",
     .value = "DURATION",
     .fallback = "500ms",
     .help = "Time between probes of a Redis that has failed, give or take 20 %",
     .set = set_one<&Settings::redis_probe_interval, parse_duration_of<1, kHour>>},
    {.name = "store.redis.connection_max_age",
     .value = "DURATION",
     .fallback = "1h",
     .help = "Age at which a connection to Redis is made anew, give or take 20 %; 0s: never",
     .set = set_one<&Settings::redis_connection_max_age, parse_duration_of<0, 366 * kDay>>},
    {.name = "store.redis.denial_cache_max",
     .value = "DURATION",
     .fallback = "1s",
     .help = "How long at most a denial by Redis is answered again without asking it; 0s: not at all",
     .set = set_one<&Settings::redis_denial_cache_max, parse_duration_of<0, 60 * kSecond>>},
    {.name = "store.redis.script_style",
     .value = "STYLE",
     .fallback = "fast",
     .help = "fast, or literal for a hosted Redis that checks scripts by their text: see docs/redis.md",
     .set = set_one<&Settings::redis_literal_script, parse_script_style>},
    {.name = "store.memory.max_keys",
     .value = "NUMBER",
     .fallback = "10000000",
     .help = "Most counters kept in memory; beyond it those nearest to fresh go first",
     .set = set_one<&Settings::memory_max_keys, parse_number<1, 1'000'000'000>>},
    {.name = "threads",
     .value = "NUMBER",
     .fallback = "auto",
     .help = "I/O threads; auto: one a core",
     .set = set_one<&Settings::threads, parse_threads>},
    {.name = "max_connections",
     .value = "NUMBER",
     .fallback = "20000",
     .help = "Most connections at once, all listeners together; more are refused",
     .set = set_one<&Settings::max_connections, parse_number<1, 1'000'000>>},
    {.name = "drain_timeout",
     .value = "DURATION",
     .fallback = "10s",
     .help = "How long a stop (SIGTERM) waits for what is in flight",
     .set = set_one<&Settings::drain_timeout, parse_duration_of<0, kHour>>},
    {.name = "http.headers.retry_after",
     .value = "BOOL",
     .fallback = "true",
     .help = "Retry-After in denied HTTP answers",
     .set = set_one<&Settings::http_header_retry_after, parse_bool>},
    {.name = "http.headers.rate_limit",
     .value = "BOOL",
     .fallback = "true",
     .help = "RateLimit and RateLimit-Policy (IETF draft) in HTTP answers",
     .set = set_one<&Settings::http_header_rate_limit, parse_bool>},
    {.name = "http.headers.x_rate_limit",
     .value = "BOOL",
     .fallback = "true",
     .help = "X-RateLimit-Limit, -Remaining and -Reset in HTTP answers",
     .set = set_one<&Settings::http_header_x_rate_limit, parse_bool>},
    {.name = "http.headers.on_allowed",
     .value = "BOOL",
     .fallback = "true",
     .help = "Those fields in allowed answers, too",
     .set = set_one<&Settings::http_headers_on_allowed, parse_bool>},
    {.name = "http.deny_status",
     .value = "STATUS",
     .fallback = "429",
     .help = "Status of a denial on /v1/check",
     .set = set_one<&Settings::http_deny_status, parse_number<400, 599>>},
    {.name = "http.store_failure_status",
     .value = "STATUS",
     .fallback = "503",
     .help = "Status when the store failed and the policy says deny",
     .set = set_one<&Settings::http_store_failure_status, parse_number<400, 599>>},
    {.name = "http.throttle",
     .value = "STATUS",
     .fallback = "off",
     .help = "POST /throttle and GET /health as throttlecrab has them; 200 or 429: the status of a denial",
     .set = set_one<&Settings::http_throttle, parse_throttle>},
    {.name = "http.max_hold",
     .value = "DURATION",
     .fallback = "10s",
     .help = "Longest that an answer waits for a leaky bucket's slot (delay: hold)",
     .set = set_one<&Settings::http_max_hold, parse_duration_of<0, kHour>>},
    {.name = "http.idle_timeout",
     .value = "DURATION",
     .fallback = "75s",
     .help = "How long an HTTP connection may be silent between requests",
     .set = set_one<&Settings::http_idle_timeout, parse_duration_of<1, kDay>>},
    {.name = "grpc.headers.retry_after",
     .value = "BOOL",
     .fallback = "true",
     .help = "Retry-After in response_headers_to_add of denied gRPC answers",
     .set = set_one<&Settings::grpc_header_retry_after, parse_bool>},
    {.name = "grpc.headers.rate_limit",
     .value = "BOOL",
     .fallback = "false",
     .help = "RateLimit and RateLimit-Policy in response_headers_to_add",
     .set = set_one<&Settings::grpc_header_rate_limit, parse_bool>},
    {.name = "grpc.headers.x_rate_limit",
     .value = "BOOL",
     .fallback = "false",
     .help = "X-RateLimit-* in response_headers_to_add; Envoy can make them itself",
     .set = set_one<&Settings::grpc_header_x_rate_limit, parse_bool>},
    {.name = "grpc.idle_timeout",
     .value = "DURATION",
     .fallback = "10m",
     .help = "How long a gRPC connection may be without a call",
     .set = set_one<&Settings::grpc_idle_timeout, parse_duration_of<1, kDay>>},
    {.name = "grpc.max_connection_age",
     .value = "DURATION",
     .fallback = "24h",
     .help = "Age at which a gRPC connection is ended in good order",
     .set = set_one<&Settings::grpc_max_connection_age, parse_duration_of<1, 366 * kDay>>},
    {.name = "resp.password",
     .value = "TEXT",
     .fallback = "",
     .help = "Password that RESP clients must give (AUTH, user default); better in a file",
     .is_secret = true,
     .set = set_one<&Settings::resp_password, parse_text>},
    {.name = "resp.password_file",
     .value = "PATH",
     .fallback = "",
     .help = "File whose first line is that password",
     .is_path = true,
     .set = set_one<&Settings::resp_password_file, parse_text>},
    {.name = "resp.idle_timeout",
     .value = "DURATION",
     .fallback = "0s",
     .help = "How long a RESP connection may be silent between commands; 0s: for ever",
     .set = set_one<&Settings::resp_idle_timeout, parse_duration_of<0, kDay>>},
    {.name = "log.level",
     .value = "LEVEL",
     .fallback = "info",
     .help = "Least level logged: debug, info, warn, error",
     .set = set_one<&Settings::log_level, parse_level>},
    {.name = "log.denials",
     .value = "NUMBER",
     .fallback = "0",
     .help = "Log one of so many denials, with limit and key; at most 100 a second; 0: none",
     .set = set_one<&Settings::log_denials, parse_number<0, 1'000'000'000>>},
    {.name = "log.denial_keys",
     .value = "KEYS",
     .fallback = "hashed",
     .help = "Keys of logged denials and of spans: plain, hashed (with a secret of this process) or none",
     .set = set_one<&Settings::log_denial_keys, parse_denial_keys>},
    {.name = "tracing.endpoint",
     .value = "URL",
     .fallback = "",
     .help = "Collector of OpenTelemetry that spans of decisions are sent to by OTLP/HTTP, as http://127.0.0.1:4318; "
             "without it "
             "there are none: see docs/observability.md",
     .set = set_one<&Settings::tracing_endpoint, parse_endpoint>},
    {.name = "tracing.ca",
     .value = "PATH",
     .fallback = "",
     .help =
         "Certificates (PEM) of the authorities that an https:// collector may be certified by; without it those of "
         "the "
         "system",
     .is_path = true,
     .set = set_one<&Settings::tracing_ca, parse_text>},
    {.name = "tracing.sample_ratio",
     .value = "RATIO",
     .fallback = "0.01",
     .help = "Part of the decisions that get a span, 0 to 1, where the caller has not said by traceparent whether its "
             "trace is sampled",
     .set = set_one<&Settings::tracing_sample_ratio, parse_ratio>},
    {.name = "tracing.service",
     .value = "NAME",
     .fallback = "sluice",
     .help = "What this service is called in traces (service.name)",
     .set = set_one<&Settings::tracing_service, parse_service>},
    {.name = "log.format",
     .value = "FORMAT",
     .fallback = "text",
     .help = "text or json, one line a message, on standard error",
     .set = set_one<&Settings::log_format, parse_format>},
});

// How many of them stand before those that each listener has.
constexpr std::size_t kAddresses = 5;

constexpr auto kSettings = [] {
  std::array<Setting, kPlainSettings.size() + kListenerSettings.size() * kListenerSettings[0].size()> all{};
  auto* next = std::copy_n(kPlainSettings.begin(), kAddresses, all.begin());
  for (const auto& rows : kListenerSettings) next = std::copy(rows.begin(), rows.end(), next);
  std::copy(kPlainSettings.begin() + kAddresses, kPlainSettings.end(), next);
  return all;
}();

}  // namespace

std::span<const Setting> all_settings() { return kSettings; }

std::string environment_name(const Setting& setting) {
  std::string name = "SLUICE_";
  for (const char c : setting.name) {
    const bool lower = c >= 'a' && c <= 'z';
    if (lower) {
      name += static_cast<char>(c - 'a' + 'A');
    } else {
      name += c == '.' ? '_' : c;
    }
  }
  return name;
}

std::string without_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t at = url.rfind('@');
  if (at == std::string_view::npos || at < begin) return std::string(url);
  const std::size_t colon = url.find(':', begin);
  if (colon == std::string_view::npos || colon > at) return std::string(url);
  return std::string(url.substr(0, colon + 1)) + "***" + std::string(url.substr(at));
}

}  // namespace sluice::config
