#include "server/server.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/read_file.h"
#include "compat/envoy_policy.h"
#include "config/redis_options.h"
#include "front/grpc/grpc_session.h"
#include "front/http/http_session.h"
#include "front/resp/resp_session.h"
#include "identity/api_keys.h"
#include "limiter/denial_log.h"
#include "policy/policy.h"
#include "server/service_manager.h"
#include "store/redis/exactness.h"
#include "store/redis/redis_store.h"

namespace sluice::server {
namespace {

using boost::system::error_code;
using namespace std::string_literals;

// SETTINGS (empty) and GOAWAY: no stream was looked at, ENHANCE_YOUR_CALM.
const std::string kGrpcRefusal =
    "\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x08\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0b"s;
const std::string kHttpRefusal =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const std::string kRespRefusal = "-ERR max number of clients reached\r\n";

std::size_t thread_count(const config::Settings& settings) {
  if (settings.threads > 0) return settings.threads;
  return std::max(1U, std::thread::hardware_concurrency());
}

limiter::DenialLog::Keys denial_keys(config::DenialKeys keys) {
  if (keys == config::DenialKeys::plain) return limiter::DenialLog::Keys::plain;
  return keys == config::DenialKeys::hashed ? limiter::DenialLog::Keys::hashed : limiter::DenialLog::Keys::none;
}

// Connections are descriptors: take all that the system lets this process have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Server::Server(const config::Settings& settings)
    : settings_(settings),
      own_metrics_(registry_.add_shard()),
      stores_(settings_),
      waiting_room_(settings_, policies_),
      span_export_(settings_, clock_),
      policy_keeper_(io_, policy_sources(), policies_, registry_, own_metrics_, [this] { policy_in_force(); }),
      ports_(io_, settings_, own_metrics_),
      signals_(io_),
      drain_timer_(io_),
      tend_timer_(io_),
      ask_timer_(io_) {
  http::HttpOptions http_options;
  http_options.headers = {.retry_after = settings.http_header_retry_after,
                          .rate_limit = settings.http_header_rate_limit,
                          .x_rate_limit = settings.http_header_x_rate_limit};
  http_options.headers_on_allowed = settings.http_headers_on_allowed;
  http_options.deny_status = static_cast<unsigned>(settings.http_deny_status);
  http_options.store_failure_status = static_cast<unsigned>(settings.http_store_failure_status);
  http_options.max_hold = settings.http_max_hold;
  http_options.idle_timeout = settings.http_idle_timeout;
  service_context_ = {
      .role = http::Role::service, .options = http_options, .registry = &registry_, .reloads = &policy_keeper_.state()};
  // Without one, commands that bring their own numbers are served all the same.
  service_context_.needs_policy = !settings.policy.empty() || settings.compat == config::Compat::envoyproxy;
  admin_context_ = service_context_;
  admin_context_.role = http::Role::admin;
  admin_context_.store_trouble = [this] { return stores_.trouble(); };
  grpc_options_.headers = {.retry_after = settings.grpc_header_retry_after,
                           .rate_limit = settings.grpc_header_rate_limit,
                           .x_rate_limit = settings.grpc_header_x_rate_limit};
  grpc_options_.idle_timeout = settings.grpc_idle_timeout;
  grpc_options_.max_age = settings.grpc_max_connection_age;
  resp_options_.idle_timeout = settings.resp_idle_timeout;
  constexpr unsigned ok = 200;
  constexpr unsigned too_many = 429;
  if (settings.http_throttle != config::Throttle::off) {
    service_context_.throttle_deny_status = settings.http_throttle == config::Throttle::ok ? ok : too_many;
  }
  metrics_context_ = admin_context_;
  if (replaces_envoyproxy()) {
    envoy_.emplace(settings_.envoy, registry_);
    const auto is_store_up = [this] { return stores_.trouble().empty(); };
    envoy_->set_up(service_context_, admin_context_, metrics_context_, is_store_up);
    grpc_options_.headers = envoy_->headers();
    grpc_options_.is_healthy = envoy_->health(is_store_up);
  }
}

Server::~Server() = default;

std::vector<std::string> Server::prepare() {
  std::vector<std::string> problems = load_policy();
  if (!settings_.redis_url.empty()) {
    if (const auto error = store::redis::check_options(config::redis_options(settings_, settings_.redis_timeout))) {
      problems.push_back("store.redis: " + error->message);
    }
  }
  if (auto problem = read_resp_password()) problems.push_back(std::move(problem)->message);
  if (auto problem = guard()) problems.push_back(std::move(problem)->message);
  if (auto problem = span_export_.prepare()) problems.push_back(std::move(problem)->message);
  service_context_.options.tracer = grpc_options_.tracer = span_export_.tracer();
  if (problems.empty()) problems = waiting_room_.prepare();
  if (!problems.empty()) return problems;
  service_context_.desk = admin_context_.desk = waiting_room_.desk();
  open_ports(problems);
  if (problems.empty() && ports_.empty()) problems.emplace_back("every listener is off: nothing to serve");
  return problems;
}

void Server::open_ports(std::vector<std::string>& problems) {
  const auto open = [&](const config::Listen& listen, Ports::Protocol protocol) {
    if (auto problem = ports_.open(listen, std::move(protocol))) problems.push_back(std::move(problem)->message);
  };
  // As there, decisions go on when the pages for people cannot be shown.
  const auto open_page = [&](const config::Listen& listen, Ports::Protocol protocol) {
    if (!envoy_) {
      open(listen, std::move(protocol));
    } else if (const auto problem = ports_.open(listen, std::move(protocol))) {
      log::error(problem->message);
    }
  };
  const auto http = [](const http::HttpContext& context) {
    return [&context](Worker& worker, Transport transport, std::string client) {
      http::start_http_session(worker, std::move(transport), context, std::move(client));
    };
  };
  open(settings_.listen_grpc, {.name = "grpc",
                               .alpn = "h2",
                               .start =
                                   [this](Worker& worker, Transport transport, const std::string& /*client*/) {
                                     front::start_grpc_session(worker, std::move(transport), grpc_options_);
                                   },
                               .refusal = kGrpcRefusal});
  open(settings_.listen_http,
       {.name = "http", .alpn = "http/1.1", .start = http(service_context_), .refusal = kHttpRefusal});
  open(settings_.listen_resp, {.name = "resp",
                               .alpn = {},
                               .start =
                                   [this](Worker& worker, Transport transport, const std::string& /*client*/) {
                                     resp::start_resp_session(worker, std::move(transport), resp_options_);
                                   },
                               .refusal = kRespRefusal});
  open_page(settings_.listen_admin,
            {.name = "admin", .alpn = "http/1.1", .start = http(admin_context_), .refusal = kHttpRefusal});
  if (!envoy_) return;
  if (const std::optional<config::Address>& address = envoy_->metrics_address()) {
    open_page({.address = *address, .max_connections = 0, .tls = {}},
              {.name = "metrics", .alpn = "http/1.1", .start = http(metrics_context_), .refusal = kHttpRefusal});
  }
}

std::optional<Error> Server::guard() {
  const auto guard_of = [&](const config::Listen& listen) {
    return identity::Guard{.is_on = tokens_ != nullptr || !listen.tls.client_ca.empty(), .tokens = tokens_.get()};
  };
  if (!settings_.access_token_file.empty()) {
    auto tokens = identity::open_api_keys(settings_.access_token_file, "token");
    if (!tokens) return Error{"access.token_file: " + tokens.error().message};
    tokens_ = *std::move(tokens);
  }
  service_context_.guard = guard_of(settings_.listen_http);
  admin_context_.guard = guard_of(settings_.listen_admin);
  grpc_options_.guard = guard_of(settings_.listen_grpc);
  resp_options_.guard = guard_of(settings_.listen_resp);
  return std::nullopt;
}

/// What is open to more than it need be, once, at the start.
void Server::warn_of_exposure() const {
  if (::geteuid() == 0) log::warn("running as root, which nothing here needs: give it a user of its own");
  const config::Address& admin = settings_.listen_admin.address;
  error_code error;
  const auto address = boost::asio::ip::make_address(admin.host, error);
  const bool is_local = error ? admin.host == "localhost" : address.is_loopback();
  if (!admin.off && !is_local && !admin_context_.guard.is_on) {
    log::warn(
        "the admin listener may be reached from other machines and lets everybody in: set access.token_file, "
        "listen.admin.tls.client_ca, or a loopback address",
        {{"listen.admin", config::to_text(admin)}});
  }
}

void Server::policy_in_force() {
  stores_.forget_denials();
  warn_of_nameless_peers();
}

/// Limits by address that no request comes under, whenever a policy is put in force.
void Server::warn_of_nameless_peers() const {
  const config::Address& http = settings_.listen_http.address;
  const std::vector<std::string>& behind_balancers = settings_.listen_proxy_protocol;
  if (http.off || http.socket.empty() || std::ranges::find(behind_balancers, "http") != behind_balancers.end()) return;
  for (const auto& rules : policies_.get()->requests()) {
    if (!rules->counts_address || rules->trusts_unix) continue;
    log::warn(
        "the HTTP listener is a Unix socket, where peers have no address, so limits by remote_address limit nobody, "
        "or deny all: trust what the proxy there tells of its clients, `trusted_proxies: [unix]` in `requests`",
        {{"listen.http", config::to_text(http)}, {"domain", rules->domain}});
  }
}

std::optional<Error> Server::read_resp_password() {
  resp_options_.password = settings_.resp_password;
  if (settings_.resp_password_file.empty()) return std::nullopt;
  auto password = read_password(settings_.resp_password_file);
  if (!password) return Error{"resp.password_file: " + settings_.resp_password_file + ": " + password.error().message};
  resp_options_.password = *std::move(password);
  return std::nullopt;
}

PolicySources Server::policy_sources() const {
  policy::LoadOptions options;
  if (!settings_.redis_url.empty()) options.refuse_limit = store::redis::inexact_in_redis;
  options.queues.emplace();
  for (const config::QueueSettings& queue : settings_.queues) options.queues->push_back(queue.name);
  PolicySources sources{.paths = {settings_.policy.begin(), settings_.policy.end()},
                        .options = std::move(options),
                        .watch = settings_.policy_watch && (!settings_.policy.empty() || replaces_envoyproxy()),
                        .read = {}};
  if (replaces_envoyproxy()) {
    sources.options.envoy = compat::envoy_rules(settings_.envoy);
    if (sources.paths.empty()) {
      const policy::RuntimeFiles files = compat::runtime_files(settings_.envoy);
      sources.paths = files.watched();
      sources.read = compat::runtime_reader(files);
    }
  }
  return sources;
}

std::vector<std::string> Server::load_policy() {
  if (replaces_envoyproxy()) {
    // It starts all the same, and answers errors until the files are right.
    const std::vector<std::string> problems = policy_keeper_.load_first();
    for (const std::string& problem : problems) log::error(problem);
    if (!problems.empty()) own_metrics_.add(metrics::Counter::policy_reloads_refused);
    const auto& loaded = policies_.get();
    if (loaded != nullptr && loaded->domain_names().empty()) {
      log::warn(
          "nothing is limited: no policy file was found by RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and "
          "RUNTIME_APPDIRECTORY");
    }
    return {};
  }
  if (!settings_.policy.empty()) return policy_keeper_.load_first();
  // Commands over RESP can bring their own numbers.
  if (!settings_.listen_resp.address.off) return {};
  return {"no policy: name a file or directory with --policy"};
}

std::string Server::run() {
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  limiter::DenialLog::configure(settings_.log_denials, denial_keys(settings_.log_denial_keys));
  log::info("counters in " + stores_.name());
  warn_of_exposure();
  try {
    span_export_.start(registry_);
    start_workers();
  } catch (const std::exception& problem) {
    for (const auto& worker : workers_) worker->drain();
    workers_.clear();
    return std::string("cannot start the io threads: ") + problem.what();
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) signals_.add(signal);
  await_signal();
  ports_.serve(workers_);
  policy_keeper_.start();
  if (envoy_) envoy_->start([this] { return policies_.get() != nullptr; });
  if (!tell_service_manager("READY=1")) log::warn("the service manager was not told that this is ready: NOTIFY_SOCKET");
  tend_soon();
  if (!settings_.redis_url.empty()) ask_soon();
  io_.run();
  if (envoy_) envoy_->stop();
  waiting_room_.stop();
  workers_.clear();
  span_export_.stop();
  log::info("stopped");
  return {};
}

// All are made before any is started: then what they need is there, or nothing has begun.
void Server::start_workers() {
  stores_.start(registry_);
  waiting_room_.start(stores_.memory(), registry_);
  for (std::size_t left = thread_count(settings_); left > 0; --left) {
    workers_.push_back(std::make_unique<WorkerThread>(
        policies_, clock_, registry_.add_shard(), [this](Worker& worker) { return stores_.make(worker); },
        [this] { boost::asio::post(io_, [this] { worker_ended(); }); }));
  }
  stores_.expose_shared(registry_);
  for (const auto& worker : workers_) {
    worker->start();
    ++running_workers_;
  }
}

void Server::await_signal() {
  signals_.async_wait([this](const error_code& error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      policy_keeper_.reload();
      ports_.look_at_certificates(true);
    } else if (stopping_) {
      log::warn("second signal: ending at once");
      std::_Exit(1);
    } else {
      stop();
    }
    await_signal();
  });
}

void Server::stop() {
  stopping_ = true;
  policy_keeper_.stop();
  tell_service_manager("STOPPING=1");
  log::info("stopping", {{"drain_timeout", to_text(settings_.drain_timeout)}});
  ports_.close();
  for (const auto& worker : workers_) worker->drain();
  drain_timer_.expires_after(settings_.drain_timeout);
  drain_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled) return;
    log::warn("drain_timeout is over: closing what is left");
    for (const auto& worker : workers_) worker->abort();
  });
}

void Server::worker_ended() {
  if (--running_workers_ > 0) return;
  drain_timer_.cancel();
  tend_timer_.cancel();
  ask_timer_.cancel();
  signals_.cancel();
}

// What is done again and again, on this thread, as those that decide must not be held up.
void Server::tend_soon() {
  tend_timer_.expires_after(std::chrono::seconds(1));
  tend_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled || running_workers_ == 0) return;
    stores_.tend();
    ports_.look_at_certificates(false);
    look_at_keys();
    tend_soon();
  });
}

// Bans that other daemons have made: one worker asks for all, each in turn.
void Server::ask_soon() {
  ask_timer_.expires_after(store::BanWatch::kAskEvery);
  ask_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled || running_workers_ == 0) return;
    workers_[turns_++ % workers_.size()]->tend();
    ask_soon();
  });
}

// By time, not by requests alone: what was revoked between two of them must not be in force again when the file breaks
// before the next.
void Server::look_at_keys() {
  const std::int64_t now = clock_.now().steady;
  if (tokens_ != nullptr) tokens_->look_now(now);
  const auto& policy = policies_.get();
  if (policy == nullptr) return;
  for (const auto& rules : policy->requests()) {
    if (rules->api_keys != nullptr) rules->api_keys->look_now(now);
    if (rules->jwt == nullptr) continue;
    for (const auto& file : rules->jwt->files) file->look_now(now);
  }
}

}  // namespace sluice::server
