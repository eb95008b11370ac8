#include "tests/integration/brokers/rabbit_server.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::testing {
namespace {

// The package's own command changes users and folders; this is what it runs.
constexpr const char* kProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server";

bool logs_in(std::uint16_t port) {
  amqp_connection_state_t state = amqp_new_connection();
  amqp_socket_t* socket = amqp_tcp_socket_new(state);
  timeval patience{.tv_sec = 2, .tv_usec = 0};
  amqp_set_handshake_timeout(state, &patience);
  bool ready = false;
  if (amqp_socket_open_noblock(socket, "127.0.0.1", port, &patience) == AMQP_STATUS_OK) {
    ready = amqp_login(state, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest").reply_type ==
            AMQP_RESPONSE_NORMAL;
    if (ready) amqp_connection_close(state, AMQP_REPLY_SUCCESS);
  }
  amqp_destroy_connection(state);
  return ready;
}

}  // namespace

bool has_rabbit() { return std::filesystem::exists(kProgram); }

RabbitServer::RabbitServer(const std::string& settings)
    : port_(free_tcp_port()),
      secured_port_(free_tcp_port()),
      distribution_port_(free_tcp_port()),
      epmd_port_(free_tcp_port()) {
  for (const char* name : {"home", "logs", "mnesia"}) std::filesystem::create_directories(folder_.path() / name);
  folder_.write("rabbitmq.conf", "listeners.tcp.1 = 127.0.0.1:" + std::to_string(port_) +
                                     "\nlisteners.ssl.1 = 127.0.0.1:" + std::to_string(secured_port_) +
                                     "\nssl_options.certfile = " + certificates_.cert(Certificates::kLocal) +
                                     "\nssl_options.keyfile = " + certificates_.key(Certificates::kLocal) +
                                     "\nssl_options.verify = verify_none\nloopback_users.guest = "
                                     "true\nvm_memory_high_watermark.absolute = 512MiB\n"
                                     "disk_free_limit.absolute = 50MB\nlog.console = true\nlog.console.level = info\n" +
                                     settings);
  folder_.write("plugins", "[].");
  // Another epmd than the machine's, so that none is left behind.
  epmd_.start({"epmd", "-address", "127.0.0.1", "-port", std::to_string(epmd_port_)}, {}, folder_.path() / "epmd.log");
  wait_until_ready(epmd_, "epmd", folder_.path() / "epmd.log", [this] { return answers_tcp(epmd_port_); });
  start();
}

RabbitServer::~RabbitServer() {
  process_.kill();
  epmd_.kill();
}

void RabbitServer::start() {
  const std::string folder = folder_.path().string();
  const std::vector<std::string> environment = {
      "HOME=" + folder + "/home",
      "ERL_EPMD_ADDRESS=127.0.0.1",
      "ERL_EPMD_PORT=" + std::to_string(epmd_port_),
      "RABBITMQ_NODENAME=sluice@localhost",
      "RABBITMQ_NODE_PORT=" + std::to_string(port_),
      "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
      "RABBITMQ_DIST_PORT=" + std::to_string(distribution_port_),
      "RABBITMQ_MNESIA_BASE=" + folder + "/mnesia",
      "RABBITMQ_LOG_BASE=" + folder + "/logs",
      "RABBITMQ_LOGS=-",
      "RABBITMQ_ENABLED_PLUGINS_FILE=" + folder + "/plugins",
      "RABBITMQ_CONFIG_FILE=" + folder + "/rabbitmq",
      "RABBITMQ_CONF_ENV_FILE=/dev/null",
      "RABBITMQ_PID_FILE=" + folder + "/pid",
      "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none +sbwtdcpu "
      "none +sbwtdio none -rabbit channel_tick_interval 1000"};
  const auto log = folder_.path() / "rabbitmq.log";
  process_.start({kProgram}, environment, log);
  wait_until_ready(process_, "RabbitMQ", log, [this] { return logs_in(port_); });
}

void RabbitServer::pause() const { process_.pause(); }
void RabbitServer::resume() const { process_.signal(SIGCONT); }

std::string RabbitServer::log() const {
  std::ifstream in(folder_.path() / "rabbitmq.log");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace sluice::testing
