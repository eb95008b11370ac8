#include "server/ports.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "base/log.h"

namespace sluice::server {
namespace {

using boost::asio::ip::tcp;
using namespace std::string_literals;

// What is not encrypted yet: a fatal alert, internal_error, as TLS has none for having too much to do.
const std::string kTlsRefusal = "\x15\x03\x03\x00\x02\x02\x50"s;

}  // namespace

Ports::Ports(boost::asio::io_context& io, const config::Settings& settings, metrics::Shard& metrics)
    : io_(io), settings_(settings), metrics_(metrics) {}

std::optional<Error> Ports::open(const config::Listen& listen, Protocol protocol) {
  if (listen.address.off) return std::nullopt;
  const std::string setting = "listen." + protocol.name + ".tls";
  Port port;
  if (!listen.tls.client_names.empty() && listen.tls.client_ca.empty()) {
    return Error{setting + ".client_ca: client_names needs it, as without authorities no certificate is asked for"};
  }
  if (listen.tls.enabled()) {
    auto context = tls::ServerContext::open(setting, listen.tls, protocol.alpn);
    if (!context) return context.error();
    port.tls = *std::move(context);
  } else if (!listen.tls.key.empty() || !listen.tls.client_ca.empty()) {
    return Error{setting + ".cert: TLS needs a certificate, too: name its file"};
  }
  auto listener = Listener::open(io_, std::move(protocol.name), listen.address);
  if (!listener) return listener.error();
  port.listener = *std::move(listener);
  port.start = std::move(protocol.start);
  port.refusal = port.tls != nullptr ? kTlsRefusal : std::move(protocol.refusal);
  port.max_connections = listen.max_connections;
  ports_.push_back(std::move(port));
  return std::nullopt;
}

void Ports::serve(Workers workers) {
  workers_ = workers;
  for (Port& port : ports_) serve(port);
}

void Ports::serve(Port& port) {
  const std::vector<std::string>& behind_balancers = settings_.listen_proxy_protocol;
  if (std::ranges::find(behind_balancers, port.listener->name()) == behind_balancers.end()) {
    port.listener->start([this, &port](int descriptor, tcp protocol) { accepted(port, descriptor, protocol, {}); });
  } else {
    port.handshakes = std::make_unique<ProxyHandshakes>(
        io_,
        [this, &port](int descriptor, tcp protocol, std::string client) {
          accepted(port, descriptor, protocol, std::move(client));
        },
        [this] { metrics_.add(metrics::Counter::protocol_errors); });
    port.listener->start([&port](int descriptor, tcp protocol) { port.handshakes->begin(descriptor, protocol); });
  }
  log::info("listening " + port.listener->name() + " " + port.listener->address());
}

void Ports::accepted(Port& port, int descriptor, tcp protocol, std::string client) {
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
    refuse(port, descriptor);
    if (!std::exchange(refusing_, true)) {
      log::warn("refusing connections: max_connections is reached",
                {{"max_connections", std::to_string(settings_.max_connections)}});
    }
    return;
  }
  refusing_ = false;
  const std::uint64_t here = port.connections->load(std::memory_order_relaxed);
  if (port.max_connections != 0 && here >= port.max_connections) {
    refuse(port, descriptor);
    if (!std::exchange(port.is_refusing, true)) {
      log::warn("refusing connections: listen." + port.listener->name() + ".max_connections is reached",
                {{"max_connections", std::to_string(port.max_connections)}});
    }
    return;
  }
  port.is_refusing = false;
  Arrival arrival{.descriptor = descriptor,
                  .protocol = protocol,
                  .client = std::move(client),
                  .start = &port.start,
                  .open = port.connections.get()};
  if (port.tls != nullptr) {
    arrival.tls = port.tls->accept();
    if (arrival.tls == nullptr) {
      refuse(port, descriptor);
      return;
    }
  }
  port.connections->fetch_add(1, std::memory_order_relaxed);
  least->assign(std::move(arrival));
}

void Ports::refuse(const Port& port, int descriptor) {
  metrics_.add(metrics::Counter::connections_refused);
  std::array<char, 4096> discarded{};
  // Best effort, without waiting: a close with bytes unread would reset the connection and take the farewell with it.
  std::ignore = ::send(descriptor, port.refusal.data(), port.refusal.size(), MSG_NOSIGNAL);
  ::shutdown(descriptor, SHUT_WR);
  std::ignore = ::recv(descriptor, discarded.data(), discarded.size(), 0);
  ::close(descriptor);
}

void Ports::close() {
  for (const Port& port : ports_) {
    port.listener->close();
    if (port.handshakes != nullptr) port.handshakes->stop();
  }
}

void Ports::look_at_certificates(bool anyway) {
  for (const Port& port : ports_) {
    if (port.tls == nullptr) continue;
    switch (anyway ? port.tls->reload() : port.tls->look()) {
      case tls::ServerContext::Reload::unchanged:
        break;
      case tls::ServerContext::Reload::loaded:
        metrics_.add(metrics::Counter::tls_reloads);
        break;
      case tls::ServerContext::Reload::refused:
        metrics_.add(metrics::Counter::tls_reloads_refused);
        break;
    }
  }
}

}  // namespace sluice::server
