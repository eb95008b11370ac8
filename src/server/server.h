// The daemon: listeners, io threads, signals, from start to the last answer.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"
#include "front/grpc/grpc_options.h"
#include "front/http/http_context.h"
#include "front/resp/resp_options.h"
#include "metrics/metrics.h"
#include "policy/snapshot_holder.h"
#include "server/listener.h"
#include "server/proxy_handshake.h"
#include "server/waiting_room.h"
#include "server/worker_thread.h"
#include "sluice/clock.h"
#include "store/denial_table.h"
#include "store/memory/memory_store.h"
#include "store/redis/nodes.h"
#include "store/store.h"
#include "store/store_health.h"

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
  /// signal ends the process at once. SIGHUP reads the policy again: all of it or, when anything is wrong, nothing.
  /// Returns what kept it from serving, in one line; empty: it has served.
  [[nodiscard]] std::string run();

 private:
  /// A listener with what is started on its connections and what a connection too many is told.
  struct Port {
    std::unique_ptr<Listener> listener;
    std::unique_ptr<ProxyHandshakes> handshakes;  ///< null: connections come from their clients themselves
    StartSession start;
    std::string refusal;
  };

  [[nodiscard]] std::optional<Error> read_resp_password();
  [[nodiscard]] std::vector<std::string> load_policy();
  void open(std::vector<std::string>& problems, std::string name, const config::Address& address, StartSession start,
            std::string refusal);
  /// Where the counters are, for the log: never the password.
  [[nodiscard]] std::string store_name() const;
  [[nodiscard]] std::shared_ptr<store::Store> make_store(Worker& worker);
  void start_workers();
  void expose_memory();
  void serve(Port& port);
  void accepted(const Port& port, int descriptor, boost::asio::ip::tcp protocol, std::string client);
  void refuse(int descriptor, const std::string& farewell);
  void await_signal();
  void reload();
  void stop();
  void worker_ended();
  void join_memory_soon();

  const config::Settings settings_;
  std::vector<std::filesystem::path> policy_paths_;
  SystemClock clock_;
  metrics::Registry registry_;
  metrics::Shard& own_metrics_;
  policy::SnapshotHolder policies_;
  /// Holds the state, or with Redis what is counted while that fails.
  std::shared_ptr<store::MemoryStore> memory_;
  store::StoreHealth store_health_;
  store::DenialEpochs denial_epochs_;
  std::shared_ptr<store::redis::Nodes> redis_nodes_;  ///< of all workers; null: no Redis
  WaitingRoom waiting_room_;
  http::HttpContext service_context_;
  http::HttpContext admin_context_;
  front::GrpcOptions grpc_options_;
  resp::RespOptions resp_options_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer drain_timer_;
  boost::asio::steady_timer memory_timer_;
  std::vector<Port> ports_;
  std::vector<std::unique_ptr<WorkerThread>> workers_;
  std::size_t running_workers_ = 0;
  bool stopping_ = false;
  bool refusing_ = false;  ///< the limit of connections is reached and has been logged
};

}  // namespace sluice::server
