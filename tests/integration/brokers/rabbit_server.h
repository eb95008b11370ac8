// A RabbitMQ of one's own, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/integration/support/certificates.h"
#include "tests/integration/support/server.h"

namespace sluice::testing {

/// Needs the package rabbitmq-server. Runs with a node name, ports, data and an epmd of its own. Throws
/// std::runtime_error when it cannot be started.
/// It looks once a second whether a consumer keeps a message too long, not once a minute.
class RabbitServer {
 public:
  /// `settings`: lines for rabbitmq.conf.
  explicit RabbitServer(const std::string& settings = {});
  ~RabbitServer();
  RabbitServer(const RabbitServer&) = delete;
  RabbitServer& operator=(const RabbitServer&) = delete;

  [[nodiscard]] std::string url() const { return "amqp://guest:guest@127.0.0.1:" + std::to_string(port_); }
  /// The same over TLS; its certificate names localhost.
  [[nodiscard]] std::string secured_url(const std::string& host = "localhost") const {
    return "amqps://guest:guest@" + host + ":" + std::to_string(secured_port_);
  }
  [[nodiscard]] const Certificates& certificates() const { return certificates_; }
  void kill() { process_.kill(); }
  void start();  ///< again, with the same data
  void pause() const;
  void resume() const;
  [[nodiscard]] std::string log() const;

 private:
  ServerFolder folder_{"rabbitmq"};
  Certificates certificates_{folder_.path()};
  std::uint16_t port_ = 0;
  std::uint16_t secured_port_ = 0;
  std::uint16_t distribution_port_ = 0;
  std::uint16_t epmd_port_ = 0;
  ServerProcess epmd_;
  ServerProcess process_;
};

/// Is the server installed?
[[nodiscard]] bool has_rabbit();

}  // namespace sluice::testing
