// The listeners of a daemon: what comes to them is counted, bounded, and handed to the worker that has the least.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "metrics/metrics.h"
#include "server/listener.h"
#include "server/proxy_handshake.h"
#include "server/worker_thread.h"
#include "tls/server_context.h"

namespace sluice::server {

/// One thread only, that of the io_context. Outlives the workers; `settings` and `metrics` outlive it.
class Ports {
 public:
  /// What a protocol brings to its port.
  struct Protocol {
    std::string name;
    std::string_view alpn;
    StartSession start;
    std::string refusal;  ///< what a connection too many is told
  };
  using Workers = std::span<const std::unique_ptr<WorkerThread>>;

  Ports(boost::asio::io_context& io, const config::Settings& settings, metrics::Shard& metrics);
  Ports(const Ports&) = delete;
  Ports& operator=(const Ports&) = delete;

  /// Binds one more, unless it is off. What is wrong, or nothing. Not after serve().
  [[nodiscard]] std::optional<Error> open(const config::Listen& listen, Protocol protocol);
  [[nodiscard]] bool empty() const { return ports_.empty(); }
  /// Begins to accept, for workers that are there until close().
  void serve(Workers workers);
  /// Accepts what has connected already, and nothing after that.
  void close();
  /// Reads certificates again that look changed; `anyway`: whether they do or not.
  void look_at_certificates(bool anyway);

 private:
  struct Port {
    std::unique_ptr<Listener> listener;
    std::unique_ptr<ProxyHandshakes> handshakes;  ///< null: connections come from their clients themselves
    StartSession start;
    std::string refusal;
    std::uint64_t max_connections = 0;        ///< 0: no bound of its own
    std::unique_ptr<tls::ServerContext> tls;  ///< null: plain
    std::unique_ptr<OpenCount> connections = std::make_unique<OpenCount>(0);
    bool is_refusing = false;  ///< its bound is reached, and that has been logged
  };

  void serve(Port& port);
  void accepted(Port& port, int descriptor, boost::asio::ip::tcp protocol, std::string client);
  void refuse(const Port& port, int descriptor);

  boost::asio::io_context& io_;
  const config::Settings& settings_;
  metrics::Shard& metrics_;
  std::vector<Port> ports_;
  Workers workers_;
  bool refusing_ = false;  ///< the limit of connections is reached and has been logged
};

}  // namespace sluice::server
