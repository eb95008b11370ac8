#include "server/server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "config/redis_options.h"
#include "front/grpc/grpc_session.h"
#include "front/http/http_session.h"
#include "front/resp/resp_session.h"
#include "policy/policy.h"
#include "store/denial_cache.h"
#include "store/fallback_store.h"
#include "store/redis/exactness.h"
#include "store/redis/redis_store.h"

namespace sluice::server {
namespace {

using boost::asio::ip::tcp;
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
      policy_paths_(settings.policy.begin(), settings.policy.end()),
      own_metrics_(registry_.add_shard()),
      waiting_room_(settings_, policies_),
      signals_(io_),
      drain_timer_(io_),
      memory_timer_(io_) {
  http::HttpOptions http_options;
  http_options.headers = {.retry_after = settings.http_header_retry_after,
                          .rate_limit = settings.http_header_rate_limit,
                          .x_rate_limit = settings.http_header_x_rate_limit};
  http_options.headers_on_allowed = settings.http_headers_on_allowed;
  http_options.deny_status = static_cast<unsigned>(settings.http_deny_status);
  http_options.store_failure_status = static_cast<unsigned>(settings.http_store_failure_status);
  http_options.max_hold = settings.http_max_hold;
  http_options.idle_timeout = settings.http_idle_timeout;
  service_context_ = {.role = http::Role::service, .options = http_options, .registry = &registry_};
  admin_context_ = {.role = http::Role::admin, .options = http_options, .registry = &registry_};
  grpc_options_.headers = {.retry_after = settings.grpc_header_retry_after,
                           .rate_limit = settings.grpc_header_rate_limit,
                           .x_rate_limit = settings.grpc_header_x_rate_limit};
  grpc_options_.idle_timeout = settings.grpc_idle_timeout;
  grpc_options_.max_age = settings.grpc_max_connection_age;
  resp_options_.idle_timeout = settings.resp_idle_timeout;
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
  if (problems.empty()) problems = waiting_room_.prepare();
  if (!problems.empty()) return problems;
  service_context_.desk = admin_context_.desk = waiting_room_.desk();
  open(
      problems, "grpc", settings_.listen_grpc,
      [this](Worker& worker, tcp::socket socket, const std::string& /*client*/) {
        front::start_grpc_session(worker, std::move(socket), grpc_options_);
      },
      kGrpcRefusal);
  open(
      problems, "http", settings_.listen_http,
      [this](Worker& worker, tcp::socket socket, std::string client) {
        http::start_http_session(worker, std::move(socket), service_context_, std::move(client));
      },
      kHttpRefusal);
  open(
      problems, "resp", settings_.listen_resp,
      [this](Worker& worker, tcp::socket socket, const std::string& /*client*/) {
        resp::start_resp_session(worker, std::move(socket), resp_options_);
      },
      kRespRefusal);
  open(
      problems, "admin", settings_.listen_admin,
      [this](Worker& worker, tcp::socket socket, std::string client) {
        http::start_http_session(worker, std::move(socket), admin_context_, std::move(client));
      },
      kHttpRefusal);
  if (problems.empty() && ports_.empty()) problems.emplace_back("every listener is off: nothing to serve");
  return problems;
}

std::optional<Error> Server::read_resp_password() {
  resp_options_.password = settings_.resp_password;
  if (settings_.resp_password_file.empty()) return std::nullopt;
  std::ifstream file(settings_.resp_password_file);
  if (std::getline(file, resp_options_.password) && !resp_options_.password.empty()) return std::nullopt;
  return Error{"resp.password_file: " + settings_.resp_password_file + " cannot be read, or its first line is empty"};
}

std::vector<std::string> Server::load_policy() {
  if (policy_paths_.empty()) {
    // Commands over RESP can bring their own numbers.
    if (!settings_.listen_resp.off) return {};
    return {"no policy: name a file or directory with --policy"};
  }
  policy::LoadOptions options;
  if (!settings_.redis_url.empty()) options.refuse_limit = store::redis::inexact_in_redis;
  options.queues.emplace();
  for (const config::QueueSettings& queue : settings_.queues) options.queues->push_back(queue.name);
  policy::Loaded loaded = policy::load(policy_paths_, options);
  std::vector<std::string> problems;
  for (const policy::Finding& finding : loaded.findings) {
    if (loaded.policy) {
      log::warn(finding.to_string());
    } else {
      problems.push_back(finding.to_string());
    }
  }
  if (!loaded.policy) {
    if (problems.empty()) problems.emplace_back("the policy cannot be loaded");
    return problems;
  }
  policies_.set(std::move(loaded.policy));
  denial_epochs_.forget_all();
  return {};
}

void Server::open(std::vector<std::string>& problems, std::string name, const config::Address& address,
                  StartSession start, std::string refusal) {
  if (address.off) return;
  auto listener = Listener::open(io_, std::move(name), address);
  if (!listener) {
    problems.push_back(listener.error().message);
    return;
  }
  ports_.push_back(
      {.listener = *std::move(listener), .handshakes = {}, .start = std::move(start), .refusal = std::move(refusal)});
}

std::string Server::run() {
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  log::info("counters in " + store_name());
  try {
    start_workers();
  } catch (const std::exception& problem) {
    for (const auto& worker : workers_) worker->drain();
    workers_.clear();
    return std::string("cannot start the io threads: ") + problem.what();
  }
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) signals_.add(signal);
  await_signal();
  for (Port& port : ports_) serve(port);
  join_memory_soon();
  io_.run();
  waiting_room_.stop();
  workers_.clear();
  log::info("stopped");
  return {};
}

// All are made before any is started: then what they need is there, or nothing has begun.
void Server::start_workers() {
  memory_ = std::make_shared<store::MemoryStore>(settings_.memory_max_keys);
  expose_memory();
  waiting_room_.start(memory_, registry_);
  for (std::size_t left = thread_count(settings_); left > 0; --left) {
    workers_.push_back(std::make_unique<WorkerThread>(
        policies_, clock_, registry_.add_shard(), [this](Worker& worker) { return make_store(worker); },
        [this] { boost::asio::post(io_, [this] { worker_ended(); }); }));
  }
  for (const auto& worker : workers_) {
    worker->start();
    ++running_workers_;
  }
}

std::string Server::store_name() const {
  if (settings_.redis_url.empty()) return "memory";
  const store::redis::RedisOptions options = config::redis_options(settings_, settings_.redis_timeout);
  const auto resolved = store::redis::resolve_target(options.url, options.access);
  return resolved ? "Redis " + resolved->target.to_text() : "Redis";
}

std::shared_ptr<store::Store> Server::make_store(Worker& worker) {
  if (settings_.redis_url.empty()) return memory_;
  store::redis::RedisOptions options = config::redis_options(settings_, settings_.redis_timeout);
  // The workers are made one after the other, by one thread.
  if (redis_nodes_ == nullptr) redis_nodes_ = store::redis::make_nodes(options);
  options.nodes = redis_nodes_;
  auto redis = store::redis::RedisStore::create(worker.io, options, worker.metrics);
  if (!redis) throw std::runtime_error("store.redis: " + redis.error().message);
  std::unique_ptr<store::Store> primary = *std::move(redis);
  if (settings_.redis_denial_cache_max.count() > 0) {
    primary = std::make_unique<store::DenialCache>(std::move(primary), settings_.redis_denial_cache_max, denial_epochs_,
                                                   worker.metrics);
  }
  return std::make_shared<store::FallbackStore>(std::move(primary), *memory_, store_health_, worker.metrics);
}

void Server::expose_memory() {
  const auto figure = [memory = memory_](std::uint64_t store::MemoryStore::Figures::* member) {
    return [memory, member] { return memory->figures().*member; };
  };
  using Figures = store::MemoryStore::Figures;
  registry_.add_gauge("sluice_memory_keys", "Counters held in memory.", figure(&Figures::keys));
  registry_.add_gauge("sluice_memory_bytes", "Memory that the counters take.", figure(&Figures::bytes));
  registry_.add_counter("sluice_memory_evicted_total", "Counters dropped for want of room, not yet as fresh ones.",
                        figure(&Figures::evicted));
  registry_.add_counter("sluice_memory_expired_total", "Counters dropped because they equalled fresh ones.",
                        figure(&Figures::expired));
}

void Server::serve(Port& port) {
  const std::vector<std::string>& behind_balancers = settings_.listen_proxy_protocol;
  if (std::ranges::find(behind_balancers, port.listener->name()) == behind_balancers.end()) {
    port.listener->start([this, &port](int descriptor, tcp protocol) { accepted(port, descriptor, protocol, {}); });
  } else {
    port.handshakes = std::make_unique<ProxyHandshakes>(
        io_,
        [this, &port](int descriptor, tcp protocol, std::string client) {
          accepted(port, descriptor, protocol, std::move(client));
        },
        [this] { own_metrics_.add(metrics::Counter::protocol_errors); });
    port.listener->start([&port](int descriptor, tcp protocol) { port.handshakes->begin(descriptor, protocol); });
  }
  log::info("listening " + port.listener->name() + " " + port.listener->address());
}

void Server::accepted(const Port& port, int descriptor, tcp protocol, std::string client) {
  WorkerThread* least = workers_.front().get();
  std::uint64_t connections = 0;
  std::uint64_t fewest = UINT64_MAX;
  for (const auto& worker : workers_) {
    const std::uint64_t open = worker->connections();
    connections += open;
    if (open < fewest) {
      least = worker.get();
      fewest = open;
    }
  }
  if (connections >= settings_.max_connections) {
    refuse(descriptor, port.refusal);
    if (!std::exchange(refusing_, true)) {
      log::warn("refusing connections: max_connections is reached",
                {{"max_connections", std::to_string(settings_.max_connections)}});
    }
    return;
  }
  refusing_ = false;
  least->assign(descriptor, protocol, port.start, std::move(client));
}

void Server::refuse(int descriptor, const std::string& farewell) {
  own_metrics_.add(metrics::Counter::connections_refused);
  std::array<char, 4096> discarded{};
  // Best effort, without waiting: a close with bytes unread would reset the connection and take the farewell with it.
  std::ignore = ::send(descriptor, farewell.data(), farewell.size(), MSG_NOSIGNAL);
  ::shutdown(descriptor, SHUT_WR);
  std::ignore = ::recv(descriptor, discarded.data(), discarded.size(), 0);
  ::close(descriptor);
}

void Server::await_signal() {
  signals_.async_wait([this](const error_code& error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      reload();
    } else if (stopping_) {
      log::warn("second signal: ending at once");
      std::_Exit(1);
    } else {
      stop();
    }
    await_signal();
  });
}

void Server::reload() {
  const std::vector<std::string> problems = load_policy();
  if (problems.empty()) {
    own_metrics_.add(metrics::Counter::policy_reloads);
    log::info("policy loaded again");
    return;
  }
  own_metrics_.add(metrics::Counter::policy_reloads_refused);
  for (const std::string& problem : problems) log::error(problem);
  log::error("the policy was not loaded; the old one stays in force");
}

void Server::stop() {
  stopping_ = true;
  log::info("stopping", {{"drain_timeout", to_text(settings_.drain_timeout)}});
  for (const Port& port : ports_) {
    port.listener->close();
    if (port.handshakes != nullptr) port.handshakes->close();
  }
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
  memory_timer_.cancel();
  signals_.cancel();
}

// On this thread, as those that decide must not be held up.
void Server::join_memory_soon() {
  constexpr int most_at_once = 8;
  memory_timer_.expires_after(std::chrono::seconds(1));
  memory_timer_.async_wait([this](const error_code& cancelled) {
    if (cancelled || running_workers_ == 0) return;
    for (int joined = 0; joined < most_at_once && memory_->join_pages();) ++joined;
    join_memory_soon();
  });
}

}  // namespace sluice::server
