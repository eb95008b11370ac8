// The daemon: listeners, io threads, signals, from start to the last answer.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compat/envoy_service.h"
#include "config/settings.h"
#include "front/grpc/grpc_options.h"
#include "front/http/http_context.h"
#include "front/resp/resp_options.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "server/policy_keeper.h"
#include "server/ports.h"
#include "server/span_export.h"
#include "server/stores.h"
#include "server/waiting_room.h"
#include "server/worker_thread.h"
#include "sluice/clock.h"

namespace sluice::server {

/// Everything runs on the thread that calls run(), but for the workers' own.
class Server {
 public:
  explicit Server(const config::Settings& settings);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Loads the policy and binds the listeners. What is wrong, one line each; empty: run() may be called.
  [[nodiscard]] std::vector<std::string> prepare();
  /// Serves until SIGTERM or SIGINT, then drains: finishes what is in flight within the drain time-out. A second such
  /// signal ends the process at once. SIGHUP reads the policy again, as does a change of its files: see PolicyKeeper.
  /// Returns what kept it from serving, in one line; empty: it has served.
  [[nodiscard]] std::string run();

 private:
  [[nodiscard]] std::optional<Error> read_resp_password();
  [[nodiscard]] std::optional<Error> guard();
  void warn_of_exposure() const;
  void policy_in_force();
  void warn_of_nameless_peers() const;
  [[nodiscard]] PolicySources policy_sources() const;
  [[nodiscard]] bool replaces_envoyproxy() const { return settings_.compat == config::Compat::envoyproxy; }
  [[nodiscard]] std::vector<std::string> load_policy();
  void open_ports(std::vector<std::string>& problems);
  void start_workers();
  void await_signal();
  void stop();
  void worker_ended();
  void tend_soon();
  void ask_soon();
  void look_at_keys();

  const config::Settings settings_;
  SystemClock clock_;
  metrics::Registry registry_;
  metrics::Shard& own_metrics_;
  policy::SnapshotHolder policies_;
  Stores stores_;
  WaitingRoom waiting_room_;
  SpanExport span_export_;
  std::shared_ptr<identity::ApiKeyFile> tokens_;  ///< null: none
  http::HttpContext service_context_;
  http::HttpContext admin_context_;
  http::HttpContext metrics_context_;          ///< of the port of USE_PROMETHEUS
  std::optional<compat::EnvoyService> envoy_;  ///< in the place of envoyproxy/ratelimit
  front::GrpcOptions grpc_options_;
  resp::RespOptions resp_options_;
  boost::asio::io_context io_{1};
  PolicyKeeper policy_keeper_;
  Ports ports_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer drain_timer_;
  boost::asio::steady_timer tend_timer_;
  boost::asio::steady_timer ask_timer_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::size_t running_workers_ = 0;
  std::size_t turns_ = 0;  ///< of tending the workers' stores
  bool stopping_ = false;
};

}  // namespace sluice::server
