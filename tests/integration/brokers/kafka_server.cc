#include "tests/integration/brokers/kafka_server.h"

#include <librdkafka/rdkafka.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace sluice::testing {
namespace {

std::string jars() {
  const char* named = std::getenv("SLUICE_KAFKA_LIBS");
  return named != nullptr ? named : SLUICE_KAFKA_LIBS;
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct ClientDeleter {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using Client = std::unique_ptr<rd_kafka_t, ClientDeleter>;

Client make_client(const std::string& address) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> why{};
  rd_kafka_conf_set(conf, "bootstrap.servers", address.c_str(), why.data(), why.size());
  rd_kafka_conf_set(conf, "log_level", "0", why.data(), why.size());
  Client client(rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size()));
  if (client == nullptr) throw std::runtime_error(why.data());
  return client;
}

/// Why a topic was not made; empty: it is there.
std::string problem_of(rd_kafka_event_t& event) {
  if (rd_kafka_event_error(&event) != RD_KAFKA_RESP_ERR_NO_ERROR) return rd_kafka_event_error_string(&event);
  std::size_t count = 0;
  const rd_kafka_topic_result_t** topics =
      rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(&event), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const rd_kafka_resp_err_t error = rd_kafka_topic_result_error(topics[i]);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
      return rd_kafka_err2str(error);
    }
  }
  return {};
}

}  // namespace

bool has_kafka() {
  const std::filesystem::path folder = jars();
  return !folder.empty() && std::filesystem::is_directory(folder) && !std::filesystem::is_empty(folder);
}

std::vector<std::string> KafkaServer::java(const std::string& heap, const std::string& program) const {
  return {"java",
          "-Xmx" + heap,
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1",
          "-Dlog4j2.configurationFile=" + (folder_.path() / "log4j2.yaml").string(),
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
          "-cp",
          jars() + "/*",
          program};
}

KafkaServer::KafkaServer() : port_(free_tcp_port()), secured_port_(free_tcp_port()), controller_port_(free_tcp_port()) {
  const std::string port = std::to_string(port_);
  const std::string secured = std::to_string(secured_port_);
  const std::string controller = std::to_string(controller_port_);
  // The key and the certificate together.
  folder_.write("identity.pem",
                text_of(certificates_.key(Certificates::kLocal)) + text_of(certificates_.cert(Certificates::kLocal)));
  const std::string identity = (folder_.path() / "identity.pem").string();
  folder_.write("log4j2.yaml",
                "Configuration:\n  Appenders: {Console: {name: STDOUT, PatternLayout: {pattern: \"%d %p %m%n\"}}}\n"
                "  Loggers: {Root: {level: WARN, AppenderRef: [{ref: STDOUT}]}}\n");
  folder_.write("server.properties",
                "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:" + controller +
                    "\nlisteners=PLAINTEXT://127.0.0.1:" + port + ",SASL_SSL://127.0.0.1:" + secured +
                    ",CONTROLLER://127.0.0.1:" + controller + "\nadvertised.listeners=PLAINTEXT://127.0.0.1:" + port +
                    ",SASL_SSL://localhost:" + secured +
                    "\nlistener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL"
                    "\nssl.keystore.type=PEM\nssl.keystore.location=" +
                    identity +
                    "\nsasl.enabled.mechanisms=PLAIN\nlistener.name.sasl_ssl.plain.sasl.jaas.config="
                    "org.apache.kafka.common.security.plain.PlainLoginModule required user_" +
                    kUser + "=\"" + kPassword +
                    "\";\ncontroller.listener.names=CONTROLLER\ninter.broker.listener.name=PLAINTEXT\nlog.dirs=" +
                    (folder_.path() / "data").string() +
                    "\noffsets.topic.num.partitions=1\noffsets.topic.replication.factor=1\n"
                    "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
                    "share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n"
                    "group.initial.rebalance.delay.ms=0\nauto.create.topics.enable=false\nnum.network.threads=1\n"
                    "num.io.threads=2\nlog.cleaner.enable=false\nbroker.session.timeout.ms=3000\n"
                    "broker.heartbeat.interval.ms=500\n");
  ServerProcess format;
  std::vector<std::string> command = java("128m", "kafka.tools.StorageTool");
  for (const char* word : {"format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c"}) command.emplace_back(word);
  command.push_back((folder_.path() / "server.properties").string());
  const auto log = folder_.path() / "format.log";
  format.start(command, {}, log);
  while (!format.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (!std::filesystem::exists(folder_.path() / "data" / "meta.properties")) {
    throw std::runtime_error("the storage of Kafka cannot be made: is there Java, and are the jars whole?");
  }
  start();
}

void KafkaServer::start() {
  std::vector<std::string> command = java("512m", "kafka.Kafka");
  command.push_back((folder_.path() / "server.properties").string());
  const auto log = folder_.path() / "kafka.log";
  process_.start(command, {}, log);
  const Client client = make_client(address());
  wait_until_ready(process_, "Kafka", log, [&] {
    const rd_kafka_metadata_t* metadata = nullptr;
    if (rd_kafka_metadata(client.get(), 0, nullptr, &metadata, 500) != RD_KAFKA_RESP_ERR_NO_ERROR) return false;
    const bool ready = metadata->broker_cnt == 1;
    rd_kafka_metadata_destroy(metadata);
    return ready;
  });
}

void KafkaServer::make_topic(const std::string& name, int partitions) const {
  const Client client = make_client(address());
  std::array<char, 256> why{};
  // Tried again: a broker that was starved or stopped for a while is told to be gone until its next heartbeat.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (true) {
    rd_kafka_NewTopic_t* topic = rd_kafka_NewTopic_new(name.c_str(), partitions, 1, why.data(), why.size());
    rd_kafka_queue_t* answers = rd_kafka_queue_new(client.get());
    rd_kafka_CreateTopics(client.get(), &topic, 1, nullptr, answers);
    rd_kafka_event_t* event = rd_kafka_queue_poll(answers, 60'000);
    const std::string problem = event == nullptr ? "no answer" : problem_of(*event);
    if (event != nullptr) rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(answers);
    rd_kafka_NewTopic_destroy(topic);
    if (problem.empty()) return;
    if (std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("cannot make the topic " + name + ": " + problem);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void KafkaServer::pause() const { process_.pause(); }
void KafkaServer::resume() const { process_.signal(SIGCONT); }

}  // namespace sluice::testing
