// A Kafka broker of one's own (KRaft, one node), for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/support/certificates.h"
#include "tests/integration/support/server.h"

namespace sluice::testing {

/// Needs Java and the jars that SLUICE_KAFKA_LIBS names (tests/integration/brokers/pom.xml). Throws std::runtime_error
/// when it cannot be started.
class KafkaServer {
 public:
  KafkaServer();

  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// The same broker over TLS, for user kUser (SASL PLAIN) alone. Its certificate names localhost.
  [[nodiscard]] std::string secured_address(const std::string& host = "localhost") const {
    return host + ":" + std::to_string(secured_port_);
  }
  static constexpr const char* kUser = "sluice";
  static constexpr const char* kPassword = "a secret";
  [[nodiscard]] const Certificates& certificates() const { return certificates_; }
  void make_topic(const std::string& name, int partitions) const;
  void kill() { process_.kill(); }
  void start();  ///< again, with the same data
  void pause() const;
  void resume() const;

 private:
  [[nodiscard]] std::vector<std::string> java(const std::string& heap, const std::string& program) const;

  ServerFolder folder_{"kafka"};
  Certificates certificates_{folder_.path()};
  std::uint16_t port_ = 0;
  std::uint16_t secured_port_ = 0;
  std::uint16_t controller_port_ = 0;
  ServerProcess process_;
};

/// Are the jars there?
[[nodiscard]] bool has_kafka();

}  // namespace sluice::testing
